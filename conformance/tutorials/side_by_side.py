"""Runs the cells of tutorials with ipykernel and with our runner, and compares what they show.

    target/venv/bin/python conformance/tutorials/side_by_side.py             3.11, in target/venv
    target/venv/bin/python conformance/tutorials/side_by_side.py --prepare   makes environments for 3.8, 3.11 and 3.13
    target/venv/bin/python conformance/tutorials/side_by_side.py 3.8 3.13    runs in those environments

Each file `NAME.cells` is a notebook: cells separated by `# %%`. Every cell runs in ipykernel, in our runner with IPython
installed ("with"), and in our runner without it ("without"). `differences.toml` has each difference with a verdict; a
difference that is not there, and a row without a difference, are printed and fail.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parents[1]
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(WORKSPACE / "target/debug/cellwright"))
ENVIRONMENTS = WORKSPACE / "target/tutorials"
PACKAGES = ("numpy", "pandas", "matplotlib", "plotly", "sympy", "scikit-learn")
# What target/venv, which the tests use, does not have.
NOT_IN_VENV = ("sympy", "sklearn")
VERDICTS = ("better", "other", "ours")  # ours: worse, with a reason
# A Python in which IPython is not installed, whatever is installed.
HIDE = """\
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('IPython', 'ipykernel', 'nbformat'):
            raise ModuleNotFoundError('No module named %r' % name, name=name)
sys.meta_path.insert(0, Hide())
"""


@dataclass(frozen=True)
class Difference:
    tutorial: str
    code: str
    """The first line of the cell."""
    where: str
    """With IPython, without it, or both."""
    verdict: str
    why: str
    pythons: str = "3.8 3.11 3.13"
    """The versions that show it."""
    sometimes: bool = False
    """Whether it depends on how fast things go."""

    def concerns(self, tutorial: str, code: str, where: str, python: str) -> bool:
        return (
            (self.tutorial, self.code) == (tutorial, first_line(code))
            and self.where in (where, "both")
            and python in self.pythons.split()
        )


def differences() -> list[Difference]:
    rows = tomllib.loads((HERE / "differences.toml").read_text())["difference"]
    return [Difference(**row) for row in rows]


def first_line(code: str) -> str:
    return code.split("\n")[0]


def tutorials() -> dict[str, list[str]]:
    files = sorted(HERE.glob("*.cells"))
    return {path.stem: re.split(r"\n?# %%\n", path.read_text().rstrip("\n")) for path in files}


def notebook_of(cells: list[str]):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    return notebook


async def in_ipykernel(python: str, cells: list[str], folder: Path) -> list[dict]:
    manager = AsyncKernelManager(transport="ipc", ip=str(folder / "kernel"))
    manager._kernel_spec = KernelSpec(argv=[python, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    notebook = notebook_of(cells)
    client = NotebookClient(
        notebook, km=manager, timeout=60, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    await client.async_execute(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(None))
    return [shown(cell["outputs"]) for cell in json.loads(nbformat.writes(notebook))["cells"]]


async def in_runner(python: str, cells: list[str], folder: Path, hide: Path | None) -> list[dict]:
    path = folder / "notebook.ipynb"
    nbformat.write(notebook_of(cells), path)
    command = [CELLWRIGHT, "run", str(path), "--kernel", "runner", "--allow-errors"]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment(hide) | {"CELLWRIGHT_PYTHON": python},
    )
    printed, _ = await process.communicate()
    if process.returncode not in (0, 1):
        raise AssertionError(f"exit {process.returncode}: {printed.decode()}")
    return [shown(cell["outputs"]) for cell in json.loads(path.read_bytes())["cells"]]


def environment(hide: Path | None) -> dict[str, str]:
    fonts = {"MPLCONFIGDIR": str(WORKSPACE / "target/matplotlib")}
    return os.environ | fonts | ({"PYTHONPATH": str(hide)} if hide else {})


def shown(outputs: list[dict]) -> dict:
    """What a reader sees of a cell's outputs, without what differs from run to run."""
    streams = {"stdout": "", "stderr": ""}
    rich = []
    for output in outputs:
        match output["output_type"]:
            case "stream":
                streams[output["name"]] += joined(output["text"])
            case "error":
                rich.append(f"{output['ename']}: {settled(output['evalue'])}")
            case _:
                rich.append(
                    {mime: picture_or_text(mime, data) for mime, data in sorted(output["data"].items())}
                )
    return {"rich": rich} | {name: settled(carried_back(text)) for name, text in streams.items() if text}


def joined(text) -> str:
    return text if isinstance(text, str) else "".join(text)


def picture_or_text(mime: str, data) -> object:
    if mime.startswith("image/") or mime == "application/pdf":
        return "picture"
    return settled(joined(data)) if isinstance(data, (str, list)) else data


def carried_back(text: str) -> str:
    return re.sub(r"[^\n]*\r(?!\n)", "", text).replace("\r\n", "\n")


def settled(text: str) -> str:
    """Without addresses, times, process ids and temporary names."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    text = re.sub(r"/tmp/[\w/.-]+", "/tmp/…", text)
    text = re.sub(r"[\d.,]+ ?(ns|µs|μs|us|ms|s)\b", "TIME", text)
    text = re.sub(r"Thread-\d+", "Thread-N", text)
    return re.sub(r"(id=\"T_|#T_)[0-9a-f]+", r"\1…", text)


async def run_all(
    python: str, path: str, without: str | None, names: list[str]
) -> dict[str, dict[str, list[dict]]]:
    """What each way to run showed, by tutorial. `without` is a Python without IPython; none where it is to be hidden."""
    found: dict[str, dict[str, list[dict]]] = {name: {} for name in names}
    free = asyncio.Semaphore((os.cpu_count() or 2) + 1)
    with tempfile.TemporaryDirectory(prefix="cw-") as folder:
        hide = Path(folder) / "hide"
        hide.mkdir()
        (hide / "sitecustomize.py").write_text(HIDE)

        async def one(name: str, by: str) -> None:
            async with free:
                place = Path(folder) / name / by
                place.mkdir(parents=True)
                cells = tutorials()[name]
                match by:
                    case "ipykernel":
                        found[name][by] = await in_ipykernel(path, cells, place)
                    case "with":
                        found[name][by] = await in_runner(path, cells, place, None)
                    case _:
                        found[name][by] = await in_runner(
                            without or path, cells, place, None if without else hide
                        )

        await asyncio.gather(*(one(name, by) for name in names for by in ("ipykernel", "with", "without")))
    return found


def compare(python: str, found: dict[str, dict[str, list[dict]]]) -> tuple[list[str], list[str]]:
    """Differences that have no verdict, and verdicts without a difference."""
    known = differences()
    used: set[Difference] = set()
    unknown = []
    for name, by in found.items():
        for number, code in enumerate(tutorials()[name]):
            for where in ("with", "without"):
                theirs, ours = by["ipykernel"][number], by[where][number]
                if theirs == ours:
                    continue
                rows = [row for row in known if row.concerns(name, code, where, python)]
                used.update(rows)
                if not rows:
                    unknown.append(
                        f"{name} {where} {python}: {first_line(code)}\n"
                        f"  ipykernel {json.dumps(theirs, ensure_ascii=False)[:600]}\n"
                        f"  ours      {json.dumps(ours, ensure_ascii=False)[:600]}"
                    )
    stale = [
        f"{row.tutorial}: {row.code}"
        for row in known
        if row.tutorial in found and python in row.pythons.split() and row not in used and not row.sometimes
    ]
    return unknown, stale


def prepare(version: str) -> None:
    """Environments with and without IPython, by pip, under target/."""
    base = next((Path.home() / ".pyenv/versions").glob(f"{version}.*"), None)
    program = str(base / "bin/python") if base else f"python{version}"
    for name, more in (("with", ("ipykernel", "nbformat")), ("without", ())):
        folder = ENVIRONMENTS / f"{name}-{version}"
        if not (folder / "bin/python").exists():
            subprocess.run([program, "-m", "venv", folder], check=True)
            subprocess.run([folder / "bin/pip", "install", "--quiet", *PACKAGES, *more], check=True)


def main() -> int:
    options = argparse.ArgumentParser(description="Runs tutorials in ipykernel and in our runner.")
    options.add_argument(
        "versions", nargs="*", help="such as 3.8 3.11 3.13, in the environments under target/tutorials"
    )
    options.add_argument("--prepare", action="store_true", help="make these environments")
    options.add_argument("--only", action="append", help="only this tutorial")
    given = options.parse_args()
    failed = False
    if given.prepare:
        for version in given.versions or ["3.8", "3.11", "3.13"]:
            prepare(version)
        return 0
    for version in given.versions or ["venv"]:
        begun = time.monotonic()
        if version == "venv":
            version, path, without = "3.11", sys.executable, None
            names = [name for name in tutorials() if name not in NOT_IN_VENV]
        else:
            path, without = (
                str(ENVIRONMENTS / f"{name}-{version}/bin/python") for name in ("with", "without")
            )
            names = list(tutorials())
        found = asyncio.run(run_all(version, path, without, given.only or names))
        unknown, stale = compare(version, found)
        print("\n".join(["no verdict:", *unknown] if unknown else []))
        print("\n".join(["no difference:", *stale] if stale else []))
        cells = sum(len(by["with"]) for by in found.values())
        print(f"Python {version}: {cells} cells, {time.monotonic() - begun:.0f} s")
        failed = failed or bool(unknown or stale)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
