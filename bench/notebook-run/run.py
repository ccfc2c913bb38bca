"""Notebooks from start to saved outputs: `cellwright run` beside `jupyter execute` and papermill.

bench/notebook-run/run.sh builds what this needs and starts it.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from measure import ENVIRONMENT, Contender, Measured, first_line, in_turns, milliseconds, table, target  # noqa: E402

CELLWRIGHT = Path(os.environ["CELLWRIGHT_BIN"])
PYTHON = Path(sys.executable)
BIN = PYTHON.parent
# A user with the virtual environment active, so that every contender finds the same interpreter.
ACTIVE = ENVIRONMENT | {"VIRTUAL_ENV": str(BIN.parent), "PATH": f"{BIN}:{ENVIRONMENT['PATH']}"}
RUNNER, IPYKERNEL = "cellwright run", "cellwright run, ipykernel"
EXECUTE, PAPERMILL = "jupyter execute", "papermill"

FLUSHED = 20_000


@dataclass
class Work:
    name: str
    sources: list[str]
    lines: int
    """How many lines the cells print in all."""

    def notebook(self) -> dict:
        cells = [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"cell-{number}",
                "metadata": {},
                "outputs": [],
                "source": source,
            }
            for number, source in enumerate(self.sources)
        ]
        kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
        return {
            "cells": cells,
            "metadata": {"kernelspec": kernelspec},
            "nbformat": 4,
            "nbformat_minor": 5,
        }


TRIVIAL = Work("60 trivial cells", [f"x = {n}\nprint(x)" for n in range(60)], 60)
PRINTING = Work(
    "20,000 flushed lines", [f"for n in range({FLUSHED}):\n    print('line', n, flush=True)"], FLUSHED
)


class Bench:
    """One notebook, run by each contender in a copy of its own."""

    def __init__(self, work: Work, folder: Path):
        self.work, self.folder = work, folder
        self.lost: dict[str, int] = {}

    def contender(self, name: str, *command: object) -> Contender:
        """Its command is given the notebook's path."""
        path = self.folder / f"{name}.ipynb"
        command = [str(part).replace("NOTEBOOK", str(path)) for part in command]

        def count() -> None:
            """How many lines are missing in the notebook it left."""
            cells = json.loads(path.read_text())["cells"]
            texts = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
            printed = sum("".join(text).count("\n") for text in texts)
            self.lost[name] = max(self.lost.get(name, 0), self.work.lines - printed)

        def prepare() -> None:
            if path.exists():
                count()  # of the run before
            path.write_text(json.dumps(self.work.notebook(), indent=1) + "\n")

        return Contender(name, command, cwd=self.folder, environment=ACTIVE, prepare=prepare, check=count)

    def contenders(self) -> Iterator[Contender]:
        yield self.contender(RUNNER, CELLWRIGHT, "run", "NOTEBOOK", "--kernel", "runner")
        yield self.contender(IPYKERNEL, CELLWRIGHT, "run", "NOTEBOOK", "--kernel", "jupyter:python3")
        yield self.contender(EXECUTE, BIN / "jupyter-execute", "--inplace", "NOTEBOOK")
        # Of the long output messages are lost; papermill then ends with an error, and there is nothing to measure.
        if self.work is TRIVIAL:
            yield self.contender(PAPERMILL, BIN / "papermill", "--no-progress-bar", "NOTEBOOK", "NOTEBOOK")


def rows(bench: Bench, measured: dict[str, Measured]) -> list[list[str]]:
    ours = measured[RUNNER]
    return [
        [
            f"{bench.work.name}: {name}",
            milliseconds(one.seconds),
            f"{milliseconds(one.fastest)} to {milliseconds(one.slowest)}",
            f"{one.seconds / ours.seconds:.1f}x",
            milliseconds(one.cpu_seconds),
            f"{bench.lost[name]:,} lines",
        ]
        for name, one in measured.items()
    ]


def faster(bench: Bench, measured: dict[str, Measured], ours: str, peer: str, factor: float) -> str:
    found = measured[peer].seconds / measured[ours].seconds
    return target(
        found >= factor, f"{bench.work.name}, {ours}: {found:.1f}x faster than {peer} (asked: {factor:g}x)"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5, help="counted runs of each contender (default 5)")
    options.add_argument("--print-rounds", type=int, default=3, help="of the long output (default 3)")
    options = options.parse_args()

    print(f"{first_line(CELLWRIGHT, '--version')}, {first_line(PYTHON, '--version')}")
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    found, verdict = [], []
    for work, rounds in ((TRIVIAL, options.rounds), (PRINTING, options.print_rounds)):
        with tempfile.TemporaryDirectory(prefix="cellwright-bench-") as folder:
            bench = Bench(work, Path(folder))
            contenders = list(bench.contenders())
            measured = in_turns(contenders, rounds)
            for contender in contenders:
                contender.check()
        found += rows(bench, measured)
        if work is TRIVIAL:
            for peer in (EXECUTE, PAPERMILL):
                verdict.append(faster(bench, measured, RUNNER, peer, 15))
                verdict.append(faster(bench, measured, IPYKERNEL, peer, 1.5))
        else:
            verdict.append(faster(bench, measured, RUNNER, EXECUTE, 20))
        for ours in (RUNNER, IPYKERNEL):
            verdict.append(
                target(bench.lost[ours] == 0, f"{work.name}, {ours}: {bench.lost[ours]} lines lost")
            )

    print(table(["work", "median", "range", "to ours", "CPU time", "lost at most"], found))
    print("\nCPU time is that of the program and of the children it waited for.")
    print(f"load average after: {os.getloadavg()[0]:.1f}\n")
    print("\n".join(verdict))


if __name__ == "__main__":
    main()
