"""The tour that the README starts with: it needs nothing but Python, and shows more where more is installed."""

import json
import subprocess
import sys
import tempfile
import unittest
import venv
from pathlib import Path

from runs import CELLWRIGHT, WORKSPACE, problems_of

TOUR = WORKSPACE / "examples/tour.ipynb"


class Tour(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cellwright-")))

    def outputs(self, python: Path) -> dict[str, list[dict]]:
        """What each code cell left, by its id."""
        path = self.folder / "tour.ipynb"
        command = [CELLWRIGHT, "run", str(TOUR), "-o", str(path), "--python", str(python)]
        run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual([], problems_of(path))
        cells = json.loads(path.read_text())["cells"]
        return {cell["id"]: cell["outputs"] for cell in cells if cell["cell_type"] == "code"}

    def check(self, outputs: dict[str, list[dict]], table: str, is_plotted: bool) -> None:
        text, result = outputs["tour-01"]
        self.assertTrue(text["text"][0].startswith("Python 3."))
        self.assertEqual(["{1: 1, 2: 4, 3: 9, 4: 16, 5: 25}"], result["data"]["text/plain"])
        self.assertIn(table, outputs["tour-05"][-1]["data"])
        plotted = any("image/png" in output.get("data", {}) for output in outputs["tour-07"])
        self.assertEqual(is_plotted, plotted)
        self.assertEqual(["100 % done\n"], outputs["tour-09"][0]["text"])
        self.assertEqual("KeyError", outputs["tour-11"][0]["ename"])
        self.assertEqual(["handled: no square of 6\n"], outputs["tour-12"][0]["text"])

    def test_it_needs_nothing_but_python(self) -> None:
        venv.create(self.folder / "bare")
        self.check(self.outputs(self.folder / "bare/bin/python"), "text/markdown", is_plotted=False)

    def test_it_uses_what_is_installed(self) -> None:
        self.check(self.outputs(Path(sys.executable)), "text/html", is_plotted=True)

    def test_it_is_kept_without_outputs(self) -> None:
        cells = json.loads(TOUR.read_text())["cells"]
        self.assertFalse([cell for cell in cells if cell.get("outputs") or cell.get("execution_count")])


if __name__ == "__main__":
    unittest.main()
