"""Starts, runs, prints and interrupts: Cellwright beside bare Python, a bare runner, jupyter_client and nbclient.

bench/run/run.sh builds what this needs and starts it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from measure import ENVIRONMENT, Contender, first_line, milliseconds, run_once, table, target  # noqa: E402

CELLWRIGHT = Path(os.environ["CELLWRIGHT_BIN"])
DRIVER = Path(os.environ["CELLWRIGHT_BENCH_DRIVER"])
PYTHON = Path(sys.executable)
# A user with the virtual environment active, so that every contender finds the same interpreter.
ACTIVE = ENVIRONMENT | {
    "VIRTUAL_ENV": str(PYTHON.parent.parent),
    "PATH": f"{PYTHON.parent}:{ENVIRONMENT['PATH']}",
}
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "a",
            "metadata": {},
            "outputs": [],
            "source": "print(2)",
        }
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}

CLI, KERNEL, BARE, PLAIN = "cellwright run -c", "kernel from Rust", "bare runner", "python -c"
CLIENT, NBCLIENT = "jupyter_client + ipykernel", "nbclient, one-cell notebook"

PRINTS = {
    "100 MB in 64 KiB chunks": (
        "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')",
        1600 * 65536,
        3.0,
    ),
    "100 MB in a million lines": ("for _ in range(1_000_000): print('x' * 104)", 105_000_000, 1.5),
    "20,000 flushed lines": ("for _ in range(20_000): print('x' * 9, flush=True)", 200_000, 20.0),
}
INTERRUPTED = {
    "a busy loop": "print('go', flush=True)\nwhile True: pass",
    "time.sleep": "import time\nprint('go', flush=True)\ntime.sleep(60)",
    "await asyncio.sleep": "import asyncio\nprint('go', flush=True)\nawait asyncio.sleep(60)",
    "subprocess.run": "import subprocess\nprint('go', flush=True)\nsubprocess.run(['sleep', '60'])",
}
Samples = dict[str, list[float]]


class Driver:
    """A program that keeps interpreters warm and times what it is asked to, one line a task."""

    def __init__(self, *command: object):
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ACTIVE,
            text=True,
        )

    def ask(self, task: str, **details: object) -> dict:
        self.process.stdin.write(json.dumps({"task": task, **details}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} exited {self.process.wait()}")
        return json.loads(answer)

    def seconds(self, task: str, **details: object) -> list[float]:
        seconds = self.ask(task, **details)["seconds"]
        return seconds if isinstance(seconds, list) else [seconds]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def in_turns(contenders: dict[str, Callable[[], list[float]]], rounds: int) -> Samples:
    """Every contender once per round, `rounds` times after a warm-up."""
    samples: Samples = {name: [] for name in contenders}
    for round_number in range(rounds + 1):
        for name, measure in contenders.items():
            seconds = measure()
            if round_number > 0:
                samples[name] += seconds
    return samples


def start(ours: Driver, peers: Driver, folder: Path, rounds: int) -> Samples:
    printed, notebook = folder / "printed", folder / "one.ipynb"
    notebook.write_text(json.dumps(NOTEBOOK))

    def whole(name: str, *command: object) -> Callable[[], list[float]]:
        contender = Contender(name, [str(part) for part in command], stdout=printed, environment=ACTIVE)

        def measure() -> list[float]:
            seconds = run_once(contender).seconds
            if name != NBCLIENT:  # which stores what it found instead of printing it
                assert printed.read_text() == "2\n", (name, printed.read_text())
            return [seconds]

        return measure

    code = "print(2)"
    return in_turns(
        {
            PLAIN: whole(PLAIN, PYTHON, "-c", code),
            CLI: whole(CLI, CELLWRIGHT, "run", "-c", code),
            KERNEL: lambda: ours.seconds("start", runner="kernel", code=code),
            BARE: lambda: ours.seconds("start", runner="bare", code=code),
            CLIENT: lambda: peers.seconds("start", code=code),
            NBCLIENT: whole(NBCLIENT, PYTHON.parent / "jupyter-execute", notebook),
        },
        rounds,
    )


def warm(ours: Driver, peers: Driver, rounds: int) -> Samples:
    def often(driver: Driver, times: int, **details: object) -> Callable[[], list[float]]:
        return lambda: driver.seconds("warm", code="1", times=times, **details)

    return in_turns(
        {
            KERNEL: often(ours, 200, runner="kernel"),
            BARE: often(ours, 200, runner="bare"),
            CLIENT: often(peers, 20),
        },
        rounds,
    )


def prints(ours: Driver, peers: Driver, code: str, size: int, rounds: int) -> tuple[Samples, dict[str, int]]:
    """Also the most bytes each contender lost in one run."""
    lost = {KERNEL: 0, CLIENT: 0}

    def counted(name: str, driver: Driver) -> Callable[[], list[float]]:
        def measure() -> list[float]:
            answer = driver.ask("print", code=code)
            lost[name] = max(lost[name], abs(size - answer["bytes"]))
            return [answer["seconds"]]

        return measure

    return in_turns({KERNEL: counted(KERNEL, ours), CLIENT: counted(CLIENT, peers)}, rounds), lost


def rows(work: str, samples: Samples, base: str, lost: dict[str, int] | None = None) -> list[list[str]]:
    return [
        [
            f"{work}: {name}",
            time_of(statistics.median(seconds)),
            f"{time_of(min(seconds))} to {time_of(max(seconds))}",
            f"{ratio(samples, name, base):.2f}x",
            str(len(seconds)),
            f"{lost[name]:,} bytes" if lost else "",
        ]
        for name, seconds in samples.items()
    ]


def time_of(seconds: float) -> str:
    return milliseconds(seconds) if seconds >= 0.01 else f"{seconds * 1e6:,.0f} µs"


def ratio(samples: Samples, name: str, base: str) -> float:
    return statistics.median(samples[name]) / statistics.median(samples[base])


def at_most(work: str, samples: Samples, ours: str, peer: str, factor: float) -> str:
    found = ratio(samples, ours, peer)
    return target(found <= factor, f"{work}, {ours}: {found:.2f}x {peer} (asked: at most {factor:g}x)")


def faster(work: str, samples: Samples, ours: str, peer: str, factor: float) -> str:
    found = ratio(samples, peer, ours)
    return target(found >= factor, f"{work}, {ours}: {found:.1f}x faster than {peer} (asked: {factor:g}x)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--rounds", type=int, default=9, help="of starts, warm cells, interrupts (default 9)"
    )
    options.add_argument("--print-rounds", type=int, default=3, help="of large outputs (default 3)")
    options = options.parse_args()

    print(f"{first_line(CELLWRIGHT, '--version')}, {first_line(PYTHON, '--version')}")
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    found, verdict = [], []
    with (
        tempfile.TemporaryDirectory(prefix="cellwright-bench-") as folder,
        closing(Driver(DRIVER, PYTHON, HERE / "bare.py", Path(folder) / "cache")) as ours,
        closing(Driver(PYTHON, HERE / "peers.py")) as peers,
    ):
        starts = start(ours, peers, Path(folder), options.rounds)
        found += rows("start", starts, PLAIN)
        for mine in (CLI, KERNEL):
            verdict.append(at_most("start to first result", starts, mine, PLAIN, 2.5))
            verdict.append(faster("start to first result", starts, mine, CLIENT, 8))

        cells = warm(ours, peers, options.rounds)
        found += rows("warm `1`", cells, BARE)
        verdict.append(at_most("warm execute of `1`", cells, KERNEL, BARE, 1.5))
        verdict.append(faster("warm execute of `1`", cells, KERNEL, CLIENT, 20))

        for work, (code, size, factor) in PRINTS.items():
            samples, lost = prints(ours, peers, code, size, options.print_rounds)
            found += rows(work, samples, KERNEL, lost)
            verdict.append(faster(work, samples, KERNEL, CLIENT, factor))
            verdict.append(target(lost[KERNEL] == 0, f"{work}: {lost[KERNEL]} bytes lost"))

        # The driver fails unless each cell was interrupted and the kernel and its variables stayed.
        stops = in_turns(
            {
                work: lambda code=code: ours.seconds("interrupt", code=code)
                for work, code in INTERRUPTED.items()
            },
            options.rounds,
        )
        found += [[*row[:3], "", *row[4:]] for row in rows("interrupt", stops, "a busy loop")]
        for work, seconds in stops.items():
            median = statistics.median(seconds)
            verdict.append(
                target(
                    median < 0.005, f"interrupt of {work}: {time_of(median)}, state kept (asked: under 5 ms)"
                )
            )

    headings = ["work", "median", "range", "ratio", "runs", "lost at most"]
    print(table(headings, found))
    print(f"\nRatios: starts to {PLAIN}, warm cells to the {BARE}, outputs to the {KERNEL}.")
    print(f"load average after: {os.getloadavg()[0]:.1f}\n")
    print("\n".join(verdict))


if __name__ == "__main__":
    main()
