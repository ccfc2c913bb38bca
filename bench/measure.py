"""Measures whole processes, as a user would run them, and prints what it found.

Contenders take turns, so that a busy moment of the machine hits all of them; the first round warms the file
cache and the bytecode caches and is not counted; a figure is the median of the rest.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Without what this shell tells Python (no bytecode, no buffering): it would slow the peers down, not us.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@dataclass
class Contender:
    """One program doing the work. `prepare` runs untimed before each run; `check` runs after
    the warm-up and raises unless the work was done."""

    name: str
    command: Sequence[str | Path]
    stdin: Path | None = None
    stdout: Path | None = None
    cwd: Path | None = None
    environment: dict[str, str] = field(default_factory=lambda: ENVIRONMENT)
    prepare: Callable[[], object] = field(default=lambda: None)
    check: Callable[[], object] = field(default=lambda: None)


@dataclass
class Run:
    seconds: float
    cpu_seconds: float
    """Of all its threads, in user code and in the kernel: what a busy machine does not stretch."""
    peak_bytes: int
    """Resident set at its largest. The kernel counts what the child shared with us before exec: nothing below
    the size of this process can be seen, so keep it small (`floor` says how small)."""


@dataclass
class Measured:
    contender: Contender
    runs: list[Run]

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def fastest(self) -> float:
        return min(run.seconds for run in self.runs)

    @property
    def slowest(self) -> float:
        return max(run.seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        return max(run.peak_bytes for run in self.runs)


def run_once(contender: Contender) -> Run:
    """Starts the program, waits for its end and fails loudly when it failed."""
    with (
        open(contender.stdin or os.devnull, "rb") as stdin,
        open(contender.stdout or os.devnull, "wb") as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        start = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=contender.cwd,
            env=contender.environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)  # reaped: Popen must not wait again
        if process.returncode:
            stderr.seek(0)
            raise RuntimeError(
                f"{contender.name} exited {process.returncode}: {stderr.read().decode()[-2000:]}"
            )
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def in_turns(contenders: Sequence[Contender], rounds: int) -> dict[str, Measured]:
    """Every contender once per round, `rounds` times after a warm-up; by name."""
    measured = {contender.name: Measured(contender, []) for contender in contenders}
    for round_number in range(rounds + 1):
        for contender in contenders:
            contender.prepare()
            run = run_once(contender)
            if round_number > 0:
                measured[contender.name].runs.append(run)
            else:
                contender.check()
    return measured


def floor() -> Measured:
    """What a process that does nothing costs here."""
    return in_turns([Contender("nothing", ["true"])], 20)["nothing"]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table that also reads well unrendered; all but the first column align right."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        return " | ".join(
            [first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        )

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(f"| {text} |" for text in [line(headings), " | ".join(rule), *map(line, rows)])


def target(met: bool, sentence: str) -> str:
    """One line of the verdict."""
    return f"{'met   ' if met else 'MISSED'}  {sentence}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def first_line(*command: str | Path) -> str:
    """What a program says its version is."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split("\n")[0]
