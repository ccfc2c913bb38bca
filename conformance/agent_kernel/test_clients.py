"""The clients people have: nbclient, papermill and Jupyter's console."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nbformat
import papermill
import pexpect
from kernels import FAULTS, ROOT, TIMEOUT, execute, running
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

    def test_nbclient_stores_the_help_for_magics(self):
        saved = notebook("%agent?", "%agent mcp?")
        NotebookClient(saved, kernel_name=FAULTS, timeout=TIMEOUT).execute()
        self.assertIn("%agent session list [--all]", text(saved.cells[0]))
        self.assertIn("%agent mcp add", text(saved.cells[1]))

    def test_an_export_as_script_does_not_replace_the_export_as_markdown(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        saved = notebook("say one")
        NotebookClient(saved, kernel_name=FAULTS, timeout=TIMEOUT).execute()
        nbformat.write(saved, folder / "nb.ipynb")
        for kind in ("markdown", "script"):
            command = [sys.executable, "-m", "nbconvert", "--to", kind, str(folder / "nb.ipynb")]
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        self.assertEqual({file.name for file in folder.iterdir()}, {"nb.ipynb", "nb.md", "nb.txt"})
        self.assertIn("one", (folder / "nb.md").read_text())

    def test_papermill_gives_parameters_to_a_notebook_of_an_agent(self):
        # papermill writes parameters in the languages that it knows. Python's are readable for an agent, too.
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        source, target = folder / "in.ipynb", folder / "out.ipynb"
        nbformat.write(notebook("say one"), source)
        command = [sys.executable, "-m", "papermill", str(source), str(target), "-p", "region", "north"]
        command += ["--language", "python", "--no-progress-bar", "--kernel", FAULTS]
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        cells = nbformat.read(target, as_version=4).cells
        self.assertIn('region = "north"', text(cells[0]))
        self.assertEqual(text(cells[1]).strip(), "one")

    def test_a_console_of_its_own_gets_a_long_answer_at_once(self):
        # A server would drop it. This client started the kernel itself, so no server stands between.
        streams = []

        def follow(message):
            if message["header"]["msg_type"] == "stream":
                streams.append(message["content"]["text"])

        with running() as (_, client):
            execute(client, "%agent render stream")
            outcome = execute(client, "line 5", on_output=follow)
        self.assertEqual(outcome.text, "y" * 5_000_000 + " end")
        # Paced, it would be more than 50.
        self.assertLess(len(streams), 12)

    def test_the_tour_of_the_agent_runs_from_top_to_bottom(self):
        tour = nbformat.read(ROOT / "examples/agent-tour.ipynb", as_version=4)
        nbformat.validate(tour)
        self.assertFalse([cell for cell in tour.cells if cell.get("outputs")], "it is kept without outputs")
        # The agent of the tests says what it reads.
        NotebookClient(tour, kernel_name=FAULTS, timeout=TIMEOUT).execute()
        cells = {cell.id: cell for cell in tour.cells}
        self.assertEqual(text(cells["agent-tour-02"]), "4")
        self.assertIn("Which region sold more", text(cells["agent-tour-04"]))
        self.assertEqual(cells["agent-tour-06"].outputs[0]["ename"], "KeyError")
        self.assertIn("corrected line", text(cells["agent-tour-07"]))

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
