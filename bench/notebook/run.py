"""Reads a notebook as text and edits one cell of it, beside Python's json, nbformat, jupytext and Node.

bench/notebook/run.sh builds what this needs and starts it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from measure import (  # noqa: E402
    Contender,
    Measured,
    first_line,
    floor,
    in_turns,
    megabytes,
    milliseconds,
    table,
    target,
)

CELLWRIGHT = Path(os.environ["CELLWRIGHT_BIN"])
PYTHON = Path(sys.executable)
JUPYTEXT = PYTHON.parent / "jupytext"
OURS = "cellwright"
PRINT_SOURCE = (
    "import json, sys; print(*json.load(open(sys.argv[1]))['cells'][int(sys.argv[2])]['source'], sep='')"
)


@dataclass
class Size:
    name: str
    cells: int
    bytes: int


LARGE = Size("50 MB, 2,000 cells", 2_000, 50_000_000)
SMALL = Size("200 KB, 60 cells", 60, 200_000)


@dataclass
class Bench:
    size: Size
    notebook: Path
    """The original, never written to."""
    edited: Path
    text: Path
    """What a reader printed."""
    script: Path
    """The notebook as jupytext's percent script with the edit made: what jupytext's users save."""

    @classmethod
    def prepare(cls, size: Size, folder: Path) -> "Bench":
        paths = [folder / f"{size.cells}{suffix}" for suffix in (".ipynb", "-edited.ipynb", ".txt", ".py")]
        bench = cls(size, *paths)
        run(PYTHON, HERE / "generate.py", bench.notebook, size.cells, size.bytes)
        run(JUPYTEXT, "--quiet", "--to", "py:percent", "--output", bench.script, bench.notebook)
        run("sed", "--in-place", "s/^MIDDLE_CELL = 1$/MIDDLE_CELL = 2/", bench.script)
        return bench

    @property
    def middle(self) -> str:
        return str(self.size.cells // 2)

    def readers(self) -> list[Contender]:
        peers = HERE / "peers.py"
        commands = {
            OURS: [CELLWRIGHT, "read", self.notebook],
            "python json": [PYTHON, peers, "json", "read", self.notebook],
            "nbformat": [PYTHON, peers, "nbformat", "read", self.notebook],
            "jupytext": [JUPYTEXT, "--quiet", "--to", "py:percent", "--output", "-", self.notebook],
            "node": ["node", HERE / "peers.mjs", "read", self.notebook],
        }
        return [
            Contender(name, command, stdout=self.text, check=self.check_text)
            for name, command in commands.items()
        ]

    def editors(self) -> list[Contender]:
        peers, edit = HERE / "peers.py", ["edit", self.edited, self.middle, "MIDDLE_CELL = 2"]
        replace = ["--old", "MIDDLE_CELL = 1", "--new", "MIDDLE_CELL = 2"]
        commands = {
            OURS: [CELLWRIGHT, "edit", self.edited, *replace],
            "python json": [PYTHON, peers, "json", *edit],
            "nbformat": [PYTHON, peers, "nbformat", *edit],
            "jupytext": [
                JUPYTEXT,
                "--quiet",
                "--update",
                "--to",
                "ipynb",
                "--output",
                self.edited,
                self.script,
            ],
            "node": ["node", HERE / "peers.mjs", *edit],
        }
        return [
            Contender(name, command, prepare=self.restore, check=self.check_edit)
            for name, command in commands.items()
        ]

    def restore(self) -> None:
        # On disk before the clock starts: nobody pays for our copy.
        with open(self.notebook, "rb") as original, open(self.edited, "wb") as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
            os.fsync(copy.fileno())

    # Both checks read in a process of their own: what this one holds would show in every later peak.

    def check_text(self) -> None:
        for part in ("MIDDLE_CELL = 1", f"last_{self.size.cells - 1}"):
            run("grep", "--quiet", "--line-regexp", part, self.text)

    def check_edit(self) -> None:
        source = run(PYTHON, "-c", PRINT_SOURCE, self.edited, self.middle)
        assert source.startswith("MIDDLE_CELL = 2"), source


def run(*command: object) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def rows(work: str, measured: dict[str, Measured], file_size: int) -> list[list[str]]:
    ours = measured[OURS]
    return [
        [
            f"{work}: {name}",
            milliseconds(one.seconds),
            f"{milliseconds(one.fastest)} to {milliseconds(one.slowest)}",
            f"{one.seconds / ours.seconds:.1f}x",
            milliseconds(one.cpu_seconds),
            megabytes(one.peak_bytes),
            f"{one.peak_bytes / file_size:.1f}x",
        ]
        for name, one in measured.items()
    ]


def faster(work: str, size: Size, measured: dict[str, Measured], peer: str, factor: float) -> str:
    ratio = measured[peer].seconds / measured[OURS].seconds
    return target(
        ratio >= factor, f"{size.name}: {work} {ratio:.1f}x faster than {peer} (asked: {factor:g}x)"
    )


def lean(size: Size, *results: dict[str, Measured], file_size: int) -> str:
    peak = max(measured[OURS].peak_bytes for measured in results)
    ratio = peak / file_size
    return target(
        ratio <= 2.5, f"{size.name}: peak memory {megabytes(peak)}, {ratio:.1f}x the file (asked: 2.5x)"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5, help="counted runs of each contender (default 5)")
    rounds = options.parse_args().rounds

    programs = [CELLWRIGHT, PYTHON, JUPYTEXT, "node"]
    print(", ".join(f"{Path(program).name} {first_line(program, '--version')}" for program in programs))
    verdict = []
    with tempfile.TemporaryDirectory(prefix="cellwright-bench-") as folder:
        for size in (LARGE, SMALL):
            bench = Bench.prepare(size, Path(folder))
            file_size = bench.notebook.stat().st_size
            reads = in_turns(bench.readers(), rounds)
            edits = in_turns(bench.editors(), rounds)
            headings = [size.name, "median", "range", "to ours", "CPU time", "peak memory", "to file"]
            print()
            print(table(headings, rows("read", reads, file_size) + rows("edit", edits, file_size)))
            verdict += [
                faster("read", size, reads, "nbformat", 10),
                faster("edit", size, edits, "nbformat", 10),
                faster("edit", size, edits, "node", 3),
            ]
            # No process fits into 2.5 times 200 KB: memory is judged where the notebook decides it.
            if size is LARGE:
                verdict.append(lean(size, reads, edits, file_size=file_size))
    print(
        f"\nA process that does nothing: {milliseconds(floor().seconds)}, {megabytes(floor().peak_bytes)}.\n"
    )
    print("\n".join(verdict))


if __name__ == "__main__":
    main()
