"""The clients people have: nbclient, papermill and Jupyter's console."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import nbformat
import papermill
import pexpect
from kernels import FAULTS, TIMEOUT
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def notebook(*sources: str):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    metadata = {"kernelspec": {"name": FAULTS, "display_name": FAULTS, "language": "agent"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def text(cell) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)


class Clients(unittest.TestCase):
    def test_nbclient_stores_every_chunk(self):
        saved = notebook("chunks 100000 50", "say next")
        NotebookClient(saved, kernel_name=FAULTS, timeout=TIMEOUT).execute()
        nbformat.validate(saved)
        chunks = [line.split()[0] for line in text(saved.cells[0]).splitlines() if line.endswith("x")]
        self.assertEqual(chunks, [str(number) for number in range(100_000)])
        self.assertEqual(text(saved.cells[1]).strip(), "next")

    def test_nbclient_stores_the_last_state_of_everything(self):
        saved = notebook("tool /tmp/x\nplan build it\ndiff /tmp/y\nimage\nusage\nthink hard\npermission")
        NotebookClient(saved, kernel_name=FAULTS, timeout=TIMEOUT).execute()
        nbformat.validate(saved)
        shown = text(saved.cells[0])
        for expected in ("Read /tmp/x", "build it", "three", "permission: no"):
            self.assertIn(expected, shown)
        self.assertNotIn("in progress", shown)
        html = "".join(output.data.get("text/html", "") for output in saved.cells[0].outputs)
        self.assertNotIn("<b>what it read</b>", html, "what an agent sends is text")

    def test_nbclient_sees_a_failure(self):
        with self.assertRaisesRegex(CellExecutionError, "no model today"):
            NotebookClient(notebook("fail no model today"), kernel_name=FAULTS, timeout=TIMEOUT).execute()

    def test_papermill_runs_a_notebook(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        source, target = folder / "in.ipynb", folder / "out.ipynb"
        nbformat.write(notebook("say one", "permission", "say two"), source)
        papermill.execute_notebook(source, target, kernel_name=FAULTS, progress_bar=False)
        cells = nbformat.read(target, as_version=4).cells
        self.assertEqual([text(cells[0]).strip(), text(cells[2]).strip()], ["one", "two"])
        self.assertIn("permission: no", text(cells[1]))

    def test_the_console_streams_asks_and_is_interrupted(self):
        command = ["-m", "jupyter_console", "--kernel", FAULTS, "--simple-prompt"]
        console = pexpect.spawn(sys.executable, command, timeout=TIMEOUT, encoding="utf-8")
        self.addCleanup(console.close, force=True)
        console.expect_exact("In [1]:")
        console.sendline("shout hello")
        console.expect_exact("HELLO")
        console.expect_exact("In [2]:")
        console.sendline("permission")
        console.expect("Number, y or n:")
        console.sendline("y")
        console.expect("permission: once")
        console.expect_exact("In [3]:")
        console.sendline("%agent render")
        console.expect("auto")
        console.expect_exact("In [4]:")
        # Ctrl-C is an interrupt of the turn and not of the kernel.
        console.sendline("shout begun and wait")
        console.expect_exact("BEGUN AND WAIT")
        console.sendintr()
        console.expect("Interrupted")
        console.expect_exact("In [5]:")
        console.sendline("shout still here")
        console.expect_exact("STILL HERE")
        console.sendline("exit")
        console.expect(pexpect.EOF)


if __name__ == "__main__":
    unittest.main()
