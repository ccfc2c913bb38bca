"""`cellwright run --check` beside nbval: the cells that nbval 0.11.0 fails and passes, as it said when this was written.

nbval itself is not installed here, for it brings pytest. To ask it again: write the notebook below to a file, then run
`pytest --nbval --nbval-sanitize-with rules.cfg` on it, and the same with `--nbval-lax`.
"""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output
from runs import CELLWRIGHT, active_environment

# In each case: what nbval says with `--nbval`, with `--nbval-lax`, the source, and the stored outputs.
PASSED, FAILED = True, False
NEVER = "never run"


def printed(text: str, name: str = "stdout") -> dict:
    return new_output("stream", name=name, text=text)


def result(data: dict) -> dict:
    return new_output("execute_result", data=data, execution_count=1)


def shown(data: dict) -> dict:
    return new_output("display_data", data=data)


def raised(name: str, value: str) -> dict:
    return new_output("error", ename=name, evalue=value, traceback=["another"])


HTML = "<IPython.core.display.HTML object>"
CASES = [
    (PASSED, PASSED, "print('same')", [printed("same\n")]),
    (FAILED, PASSED, "print('new')", [printed("old\n")]),
    (PASSED, PASSED, "# NBVAL_IGNORE_OUTPUT\nprint('new')", [printed("old\n")]),
    (
        PASSED,
        PASSED,
        "import sys\nprint('a')\nprint('e', file=sys.stderr)\nprint('b')",
        [printed("a\nb\n"), printed("e\n", "stderr")],
    ),
    (PASSED, PASSED, "1 + 1", [result({"text/plain": "2"})]),
    (FAILED, PASSED, "1 + 1", [result({"text/plain": "3"})]),
    (FAILED, PASSED, "1 + 1", []),
    (FAILED, PASSED, "x = 1", [result({"text/plain": "3"})]),
    (FAILED, FAILED, "1 / 0", []),
    (PASSED, PASSED, "# NBVAL_RAISES_EXCEPTION\n1 / 0", [raised("ZeroDivisionError", "division by zero")]),
    (FAILED, PASSED, "# NBVAL_RAISES_EXCEPTION\n1 / 0", [raised("ZeroDivisionError", "other")]),
    (PASSED, PASSED, "# NBVAL_SKIP\nraise SystemExit", []),
    (PASSED, PASSED, f"print('{NEVER}')", []),
    (FAILED, FAILED, f"print('{NEVER}')", [printed("x\n")]),
    (
        PASSED,
        PASSED,
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))",
        [shown({"text/html": "<b>x</b>", "text/plain": HTML})],
    ),
    (FAILED, PASSED, "display(HTML('<b>x</b>'))", [shown({"text/html": "<b>y</b>", "text/plain": HTML})]),
    (PASSED, PASSED, "print('10%\\r100%')", [printed("100%\n")]),
    (
        PASSED,
        PASSED,
        "display(1)\nprint('x')\ndisplay(2)",
        [shown({"text/plain": "1"}), shown({"text/plain": "2"}), printed("x\n")],
    ),
    (FAILED, PASSED, "display(2)\ndisplay(1)", [shown({"text/plain": "1"}), shown({"text/plain": "2"})]),
    (PASSED, PASSED, "print('took 3.5 s')", [printed("took 9.1 s\n")]),
    (
        PASSED,
        PASSED,
        "from IPython.display import JSON\nJSON({'a': 1})",
        [result({"application/json": {"a": 1}, "text/plain": "<IPython.core.display.JSON object>"})],
    ),
    (FAILED, FAILED, "# NBVAL_CHECK_OUTPUT\nprint('new')", [printed("old\n")]),
]


class Check(unittest.TestCase):
    def differing(self, mode: str) -> list[int]:
        """The cells that differ."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cellwright-")))
        cells = [new_code_cell(source, outputs=outputs, execution_count=1) for _, _, source, outputs in CASES]
        for cell in cells:
            if NEVER in cell.source:
                cell.execution_count = None
        kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
        path = folder / "cases.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        (folder / "rules.cfg").write_text("[times]\nregex: \\d\\.\\d s\nreplace: TIME\n")
        before = path.read_bytes()
        command = [CELLWRIGHT, "run", str(path), "--kernel", "jupyter:python3", f"--check={mode}", "--json"]
        command += ["--sanitize", str(folder / "rules.cfg")]
        run = subprocess.run(
            command, capture_output=True, text=True, env=active_environment(), stdin=subprocess.DEVNULL
        )
        self.assertEqual(1, run.returncode, run.stderr)
        self.assertEqual(before, path.read_bytes())
        events = map(json.loads, run.stdout.splitlines())
        return [event["cell"] for event in events if event["event"] == "difference"]

    def test_the_cells_that_nbval_fails_differ_and_no_others(self) -> None:
        self.assertEqual([at for at, case in enumerate(CASES) if case[0] is FAILED], self.differing("exact"))

    def test_lax_is_what_nbval_calls_lax(self) -> None:
        self.assertEqual([at for at, case in enumerate(CASES) if case[1] is FAILED], self.differing("lax"))


if __name__ == "__main__":
    unittest.main()
