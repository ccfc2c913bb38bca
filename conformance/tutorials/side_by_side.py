"""Runs the cells of tutorials with ipykernel and with our runner, and compares what they show.

    target/venv/bin/python conformance/tutorials/side_by_side.py             3.11, in target/venv
    target/venv/bin/python conformance/tutorials/side_by_side.py --prepare   makes environments for 3.8, 3.11 and 3.13
    target/venv/bin/python conformance/tutorials/side_by_side.py 3.8 3.13    runs in those environments
    target/venv/bin/python conformance/tutorials/side_by_side.py --only magics --rows   rows to judge, as TOML
    target/venv/bin/python conformance/tutorials/side_by_side.py --page      rewrites docs/tutorials.md

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
import textwrap
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parents[1]
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(WORKSPACE / "target/debug/cellwright"))
ENVIRONMENTS = WORKSPACE / "target/tutorials"
PAGE = WORKSPACE / "docs/tutorials.md"
VERSIONS = ("3.8", "3.11", "3.13")
PACKAGES = ("numpy", "pandas", "matplotlib", "plotly", "sympy", "scikit-learn")
# What target/venv, which the tests use, does not have.
NOT_IN_VENV = ("sympy", "sklearn")
WAYS = ("ipykernel", "with", "without")
VERDICTS = {
    "better": "Cellwright does better",
    "other": "neither is better",
    "worse": "ipykernel does better, and there is a reason",
}
# Seconds that one cell may take; only one that hangs reaches it.
CELL = 60
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
    """The first line of the cell, which no other cell of the tutorial has."""
    where: str
    """With IPython, without it, or both."""
    verdict: str
    why: str
    ours: str
    """What our side shows, in part: the row speaks for nothing else."""
    pythons: str = " ".join(VERSIONS)
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
        notebook,
        km=manager,
        timeout=CELL,
        interrupt_on_timeout=True,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    ended = len(cells)
    async with client.async_setup_kernel(
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(folder, None)
    ):
        for number, cell in enumerate(notebook.cells):
            try:
                await client.async_execute_cell(cell, number)
            except DeadKernelError:
                ended = number
                break
    left = [shown(cell["outputs"]) for cell in json.loads(nbformat.writes(notebook))["cells"][:ended]]
    return left + [{"rich": ["the kernel is dead"]}] * (len(cells) - ended)


async def in_runner(python: str, cells: list[str], folder: Path, hide: Path | None) -> list[dict]:
    path = folder / "notebook.ipynb"
    nbformat.write(notebook_of(cells), path)
    command = [CELLWRIGHT, "run", str(path), "--kernel", "runner", "--allow-errors", "--timeout", str(CELL)]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment(folder, hide) | {"CELLWRIGHT_PYTHON": python},
    )
    printed, _ = await process.communicate()
    if process.returncode not in (0, 1):
        raise AssertionError(f"exit {process.returncode}: {printed.decode()}")
    return [shown(cell["outputs"]) for cell in json.loads(path.read_bytes())["cells"]]


def environment(folder: Path, hide: Path | None) -> dict[str, str]:
    """That of the caller, with a home of its own: nobody's startup files and login files count."""
    ours = {
        "HOME": str(folder),
        "MPLCONFIGDIR": str(WORKSPACE / "target/matplotlib"),
        "XDG_CACHE_HOME": str(folder.parents[1] / "cache"),
    }
    return os.environ | ours | ({"PYTHONPATH": str(hide)} if hide else {})


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
    """Without addresses, times, temporary names, and what a cell's code is called."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r" \(\d+\.py, line \d+\)", "", text)
    text = re.sub(r"/tmp/ipykernel_\d+/\d+\.py|<cell \d+(?:, In \[\d+\])?>", "CELL", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    text = re.sub(r"/tmp/[\w/.-]+", "/tmp/…", text)
    text = re.sub(r"[\d.,]+(?:e[+-]?\d+)? ?(ns|µs|μs|us|ms|s)\b", "TIME", text)
    text = re.sub(r"Thread-\d+", "Thread-N", text)
    return re.sub(r"(id=\"T_|#T_)[0-9a-f]+", r"\1…", text)


async def run_all(
    path: str, without: str | None, names: list[str], ways=WAYS
) -> dict[str, dict[str, list[dict]]]:
    """What each way to run showed, by tutorial. `without` is a Python without IPython; none where it is to be hidden."""
    found: dict[str, dict[str, list[dict]]] = {name: {} for name in names}
    free = asyncio.Semaphore(os.cpu_count() or 2)
    with tempfile.TemporaryDirectory(prefix="cw-", ignore_cleanup_errors=True) as folder:
        hide = Path(folder) / "hide"
        hide.mkdir()
        (hide / "sitecustomize.py").write_text(HIDE)

        async def one(name: str, by: str) -> None:
            async with free:
                begun = time.monotonic()
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
                print(f"{time.monotonic() - begun:6.1f} s  {name} {by}", file=sys.stderr, flush=True)

        await asyncio.gather(*(one(name, by) for name in names for by in ways))
    return found


@dataclass(frozen=True)
class Unlike:
    """A cell that shows something else in ipykernel and in our runner."""

    tutorial: str
    code: str
    where: str
    theirs: str
    ours: str

    def __str__(self) -> str:
        return (
            f"{self.tutorial} {self.where}: {first_line(self.code)}\n"
            f"  ipykernel {self.theirs[:700]}\n"
            f"  ours      {self.ours[:700]}"
        )

    def as_row(self, python: str) -> str:
        """A row for `differences.toml`, without its verdict."""
        fields = {"tutorial": self.tutorial, "code": first_line(self.code), "where": self.where}
        lines = [f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in fields.items()]
        lines += [f"# {python} ipykernel {self.theirs[:400]}", f"# {python} ours      {self.ours[:400]}"]
        return "\n".join(["[[difference]]", *lines, 'verdict = ""', 'ours = ""', 'why = ""', ""])


def unlike(found: dict[str, dict[str, list[dict]]]) -> list[Unlike]:
    cells = [
        Unlike(name, code, where, as_text(by["ipykernel"][number]), as_text(by[where][number]))
        for name, by in found.items()
        for number, code in enumerate(tutorials()[name])
        for where in ("with", "without")
    ]
    return [cell for cell in cells if cell.theirs != cell.ours]


def as_text(what: dict) -> str:
    return json.dumps(what, ensure_ascii=False, sort_keys=True)


def compare(python: str, found: dict[str, dict[str, list[dict]]]) -> tuple[list[Unlike], list[str]]:
    """Differences that have no verdict, and verdicts without a difference."""
    known = differences()
    used: set[tuple[Difference, str]] = set()
    unknown = []
    for cell in unlike(found):
        rows = [
            row
            for row in known
            if row.concerns(cell.tutorial, cell.code, cell.where, python) and row.ours in cell.ours
        ]
        used.update((row, cell.where) for row in rows)
        if not rows:
            unknown.append(cell)
    stale = [
        f"{row.tutorial} {where}: {row.code}"
        for row in known
        for where in (("with", "without") if row.where == "both" else (row.where,))
        if row.tutorial in found and python in row.pythons.split()
        if (row, where) not in used and not row.sometimes
    ]
    return unknown, stale


def page() -> str:
    """The table as people read it."""
    known, all_cells = differences(), tutorials()
    count = sum(map(len, all_cells.values()))
    prose = (
        f"{count} cells as tutorials have them run in Cellwright's runner and in ipykernel, on Python "
        f"{', '.join(VERSIONS[:-1])} and {VERSIONS[-1]}, with and without IPython installed. This page lists every "
        "cell that shows something else, with a verdict. All other cells show the same in both. Not compared "
        "are addresses, times, temporary names, the lines of tracebacks, and what a cell's code is called: "
        "`<cell 3>` here, `/tmp/ipykernel_…/….py` there.",
        f"The cells are in `conformance/tutorials/`: {', '.join(all_cells)}. "
        "`conformance/tutorials/side_by_side.py` runs them; its first lines show how. The checks of every "
        "change run a part of them.",
        "The column IPython says where the runner differs: with IPython installed, without it, or both. "
        "ipykernel always has it.",
    )
    lines = ["# Tutorials in Cellwright and in ipykernel", ""]
    for paragraph in prose:
        lines += [*textwrap.wrap(paragraph, 100, break_on_hyphens=False), ""]
    lines.append(
        "<!-- generated from conformance/tutorials/differences.toml; side_by_side.py --page rewrites it -->"
    )
    for verdict, heading in VERDICTS.items():
        rows = [row for row in known if row.verdict == verdict]
        lines += ["", f"## {heading[0].upper()}{heading[1:]}", ""]
        lines += ["| tutorial | cell | IPython | Python | what differs |", "|---|---|---|---|---|"]
        for row in rows:
            code = first_line(row.code).replace("|", "\\|")
            code = f"`{code}`" if len(code) <= 60 else f"`{code[:59]}…`"
            pythons = "all" if row.pythons == " ".join(VERSIONS) else row.pythons.replace(" ", ", ")
            lines.append(f"| {row.tutorial} | {code} | {row.where} | {pythons} | {row.why} |")
    return "\n".join(lines) + "\n"


def prepare(version: str) -> None:
    """Environments with and without IPython, by pip, under target/."""
    base = next((Path.home() / ".pyenv/versions").glob(f"{version}.*"), None)
    program = str(base / "bin/python") if base else f"python{version}"
    for name, more in (("with", ("ipykernel", "nbformat")), ("without", ())):
        folder = ENVIRONMENTS / f"{name}-{version}"
        if not (folder / "ready").exists():
            subprocess.run([program, "-m", "venv", folder], check=True)
            subprocess.run([folder / "bin/pip", "install", "--quiet", *PACKAGES, *more], check=True)
            (folder / "ready").touch()


def main() -> int:
    options = argparse.ArgumentParser(description="Runs tutorials in ipykernel and in our runner.")
    options.add_argument(
        "versions", nargs="*", help="such as 3.8 3.11 3.13, in the environments under target/tutorials"
    )
    options.add_argument("--prepare", action="store_true", help="make these environments")
    options.add_argument("--page", action="store_true", help="rewrite docs/tutorials.md")
    options.add_argument("--rows", action="store_true", help="print what has no verdict as TOML")
    options.add_argument("--only", action="append", help="only this tutorial")
    given = options.parse_args()
    if given.page:
        PAGE.write_text(page())
        return 0
    if given.prepare:
        for version in given.versions or VERSIONS:
            prepare(version)
        return 0
    failed = False
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
        found = asyncio.run(run_all(path, without, given.only or names))
        unknown, stale = compare(version, found)
        for cell in unknown:
            print(cell.as_row(version) if given.rows else f"no verdict on {version}: {cell}")
        for row in stale:
            print(f"no difference on {version}: {row}")
        cells = sum(len(by["with"]) for by in found.values())
        print(f"# Python {version}: {cells} cells, {time.monotonic() - begun:.0f} s", flush=True)
        failed = failed or bool(unknown or stale)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
