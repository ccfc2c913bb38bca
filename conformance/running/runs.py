"""Runs every notebook with nbclient and with `cellwright run`, side by side on all cores."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.validator import iter_validate
from shipped import FOLDER, SHIPPED
from traitlets.config import Config
from written import ALL, LANGUAGE

WORKSPACE = Path(__file__).resolve().parents[2]
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(WORKSPACE / "target/debug/cellwright"))

NBCLIENT = "nbclient"
# What `--kernel` is given for each of ours.
OURS = {"ipykernel": "jupyter:python3", "runner": "runner"}


@dataclass
class Ran:
    """What a run left."""

    cells: list[dict]
    stopped: bool
    """Whether an error ended it."""


@dataclass
class Task:
    name: str
    path: Path
    allow_errors: bool
    kernels: tuple[str, ...]
    """Ours to run it on. What the code of a cell means is ipykernel's own there: once is enough."""


def tasks(folder: Path) -> list[Task]:
    """Writes every notebook into `folder`."""
    found = []
    for notebook in ALL:
        path = folder / f"{notebook.name}.ipynb"
        nbformat.write(notebook.notebook(), path)
        kernels = ("runner",) if notebook in LANGUAGE else tuple(OURS)
        found.append(Task(notebook.name, path, notebook.allow_errors, kernels))
    for name in SHIPPED:
        found.append(Task(name, Path(shutil.copy(FOLDER / f"{name}.ipynb", folder)), False, ("runner",)))
    return found


def run_all(folder: Path) -> dict[tuple[str, str], Ran]:
    """By notebook and by what ran it."""
    return asyncio.run(_run_all(tasks(folder)))


async def _run_all(all_tasks: list[Task]) -> dict[tuple[str, str], Ran]:
    found: dict[tuple[str, str], Ran] = {}
    # One more than cores: kernels spend part of their start waiting.
    free = asyncio.Semaphore((os.cpu_count() or 2) + 1)

    async def one(task: Task, by: str, run: Coroutine[None, None, Ran]) -> None:
        async with free:
            found[task.name, by] = await run

    def runs(task: Task) -> Iterable[Coroutine[None, None, None]]:
        yield one(task, NBCLIENT, with_nbclient(task, in_folder(task, NBCLIENT)))
        for by in task.kernels:
            yield one(task, by, with_cellwright(task, in_folder(task, by), OURS[by]))

    await asyncio.gather(*(run for task in all_tasks for run in runs(task)))
    return found


def in_folder(task: Task, by: str) -> Path:
    """A copy in a folder of its own, since cells may write files. The names are equally long: they are printed."""
    folder = task.path.with_suffix("") / f"{by:_<9}"
    folder.mkdir(parents=True)
    return Path(shutil.copy(task.path, folder / "notebook.ipynb"))


async def with_nbclient(task: Task, path: Path) -> Ran:
    notebook = nbformat.read(path, as_version=4)
    stopped = False
    # Sockets in a folder of their own: TCP ports are chosen free, and may be taken when the kernel comes to bind them.
    with tempfile.TemporaryDirectory(prefix="cellwright-") as sockets:
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            allow_errors=task.allow_errors,
            resources={"metadata": {"path": str(path.parent)}},
            config=Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"}),
        )
        try:
            await client.async_execute(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except CellExecutionError:
            stopped = True
    return Ran(left(json.loads(nbformat.writes(notebook)), path.parent), stopped)


async def with_cellwright(task: Task, path: Path, kernel: str) -> Ran:
    command = [
        CELLWRIGHT,
        "run",
        path,
        "--kernel",
        kernel,
        *(["--allow-errors"] if task.allow_errors else []),
    ]
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=path.parent,
        env=active_environment(),
    )
    told, _ = await process.communicate()
    if process.returncode not in (0, 1, 130):
        raise AssertionError(f"{task.name} on {kernel}: exit {process.returncode}: {told.decode()}")
    if problems := problems_of(path):
        raise AssertionError(f"{task.name} on {kernel}: {problems}")
    return Ran(left(json.loads(path.read_bytes()), path.parent), process.returncode != 0)


def problems_of(path: Path) -> list[str]:
    """Strict: `nbformat.validate` itself repairs missing and repeated ids before it looks."""
    notebook = json.loads(path.read_bytes())
    ids = [cell["id"] for cell in notebook["cells"] if "id" in cell]
    repeated = ["repeated ids"] if len(ids) != len(set(ids)) else []
    return [str(problem) for problem in iter_validate(notebook)] + repeated


def active_environment() -> dict[str, str]:
    """A user whose virtual environment is this one."""
    venv = Path(sys.executable).parent.parent
    return os.environ | {"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:{os.environ['PATH']}"}


def left(notebook: dict, folder: Path) -> list[dict]:
    """The code cells' counts and outputs; what is random in them, or the folder's, by name."""
    cells = [
        {"execution_count": cell["execution_count"], "outputs": cell["outputs"]}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    text = json.dumps(cells, ensure_ascii=False)
    for pattern, name in RANDOM:
        text = re.sub(pattern, name, text)
    return json.loads(text.replace(str(folder), "FOLDER"))


# Ids, addresses and timings: what differs between two runs of the same program.
RANDOM = [
    (r"0x[0-9a-fA-F]{6,}", "ADDRESS"),
    (r"(CPU times|Wall time): [^\"\\]*", r"\1: TIMING"),
    (r"/tmp/ipykernel_\d+/\d+\.py", "CELLFILE"),
    (r"altair-viz-[0-9a-f]{32}", "altair-viz-ID"),
]
