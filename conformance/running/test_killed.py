"""Cellwright killed at random moments of a run: the notebook is whole, and holds every output that was saved.

Saved is what `--json` had told as saved, at most once a second. Each cell begins by appending its number to a log, so that a
kill is known to have come before, into or after the run.
"""

import json
import os
import random
import subprocess
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from runs import CELLWRIGHT, active_environment, problems_of
from written.cells import markdown, written

CELLS = 30
KILLS = 50

CELL = """
import time
with open("log", "a") as log:
    log.write("{n}\\n")
time.sleep(0.05)
print("printed by {n}")
display("displayed by {n}")
{n} * 2
"""
NOTEBOOK = written("killed", markdown("# Title"), *(CELL.format(n=n) for n in range(CELLS))).notebook()


def started(folder: Path) -> subprocess.Popen:
    nbformat.write(NOTEBOOK, folder / "notebook.ipynb")
    command = [CELLWRIGHT, "run", "notebook.ipynb", "--kernel", "runner", "--json"]
    with open(folder / "told", "wb") as told:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=active_environment(),
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.DEVNULL,
        )


def told_as_saved(folder: Path) -> set[int]:
    """Places of cells. The last line may be torn."""
    lines = (folder / "told").read_text().split("\n")[:-1]
    events = [json.loads(line) for line in lines]
    return {cell for event in events if event["event"] == "saved" for cell in event["cells"]}


def begun(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


class Killed(unittest.TestCase):
    def test_a_killed_run_leaves_a_whole_notebook_with_every_saved_output(self) -> None:
        with tempfile.TemporaryDirectory(prefix="cellwright-") as folder:
            begin = time.monotonic()
            self.assertEqual(0, started(Path(folder)).wait())
            whole = time.monotonic() - begin
            self.check(Path(folder), set(range(1, CELLS + 1)))

        seed = random.randrange(2**32)
        moments = [random.Random(seed + kill).uniform(0, whole * 1.2) for kill in range(KILLS)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            saved = sorted(pool.map(lambda moment: self.killed_after(moment, seed), moments))
        # A moment is random, but fifty of them fall before, into and after the run, which saves at least three times.
        self.assertGreater(len(set(saved)), 2, f"seed {seed}: {saved}")

    def killed_after(self, seconds: float, seed: int) -> int:
        """How many cells had been saved."""
        with tempfile.TemporaryDirectory(prefix="cellwright-") as name:
            folder = Path(name)
            process = started(folder)
            time.sleep(seconds)
            process.kill()
            process.wait()
            saved = told_as_saved(folder)
            self.assertLessEqual(len(saved), begun(folder))
            self.check(folder, saved, f"seed {seed}, killed after {seconds:.3f} s")
            return len(saved)

    def check(self, folder: Path, saved: set[int], told: str = "") -> None:
        path = folder / "notebook.ipynb"
        self.assertEqual([], problems_of(path), told)
        notebook = nbformat.read(path, as_version=4)
        self.assertEqual(
            [(cell.id, cell.source) for cell in NOTEBOOK.cells],
            [(cell.id, cell.source) for cell in notebook.cells],
            told,
        )
        for place in saved:
            n, cell = place - 1, notebook.cells[place]
            self.assertEqual(3, len(cell.outputs), f"{told}: cell {place}")
            stream, display, result = cell.outputs
            self.assertEqual(f"printed by {n}\n", stream.text, told)
            self.assertEqual(f"'displayed by {n}'", display.data["text/plain"], told)
            self.assertEqual(str(n * 2), result.data["text/plain"], told)
            self.assertEqual(n + 1, cell.execution_count, told)


if __name__ == "__main__":
    unittest.main()
