"""An agent on the protocol's Python SDK, as its examples are: what we say must be what that SDK understands."""

from __future__ import annotations

import base64
import os
import signal
import sys
import tempfile
import unittest
from pathlib import Path

from kernels import alive, execute, install, running, wait_until

AGENT = install("sdk", sys.executable, str(Path(__file__).with_name("sdk_agent.py")))
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class SdkAgent(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.manager, self.client = self.enterContext(running(AGENT, cwd=str(self.folder)))

    def test_it_sends_back_text_files_and_images(self):
        (self.folder / "data.txt").write_text("rows and rows")
        (self.folder / "dot.png").write_bytes(base64.b64decode(PIXEL))
        outcome = execute(self.client, "What is in @data.txt and @dot.png?")
        self.assertEqual(outcome.status, "ok", outcome.error)
        self.assertIn("Client sent:", outcome.text)
        self.assertIn("What is in @data.txt and @dot.png?", outcome.text)
        self.assertIn("rows and rows", outcome.text)
        images = [output["data"]["image/png"] for output in outcome.outputs if "image/png" in output["data"]]
        self.assertEqual(images, [PIXEL])

    def test_a_permission_decides_whether_a_file_is_written(self):
        target = self.folder / "new.txt"
        for answer, said, written in [("n", "Then not.", False), ("y", "It is written.", True)]:
            questions = []

            def decide(prompt, answer=answer, questions=questions):
                questions.append(prompt)
                return answer

            outcome = execute(self.client, f"edit {target}", allow_stdin=True, answer=decide)
            self.assertEqual(outcome.status, "ok", outcome.error)
            # Asked once: writing through us what was just allowed is no second question.
            self.assertEqual(len(questions), 1, questions)
            self.assertIn(said, outcome.text)
            self.assertEqual(target.exists(), written)
        self.assertEqual(target.read_text(), "new text\n")
        self.assertIn("Write the file", outcome.text)
        self.assertIn(f"Edit {target}", outcome.text)

    def test_a_command_runs_and_its_output_is_shown(self):
        execute(self.client, "%permissions auto")
        outcome = execute(self.client, "run echo one; echo two >&2; exit 3")
        self.assertEqual(outcome.status, "ok", outcome.error)
        self.assertIn("It exited with 3.", outcome.text)
        self.assertIn("one\n  two\n  [exit 3]", outcome.text)

    def test_a_turn_is_cancelled(self):
        seen = []

        def interrupt(message):
            # Once: the text is shown again when it is whole.
            if "waiting" in str(message["content"].get("data")) and not seen:
                seen.append(message)
                self.manager.interrupt_kernel()

        outcome = execute(self.client, "wait", on_output=interrupt)
        self.assertEqual(outcome.reply["ename"], "Interrupted")
        self.assertNotIn("did not stop", outcome.text)
        self.assertIn("Client sent:", execute(self.client, "hello").text)

    def test_one_that_died_and_remembers_nothing_says_so(self):
        execute(self.client, "hello")
        [agent] = [
            pid
            for pid in children_of(self.manager.provisioner.process.pid)
            if b"sdk_agent.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: not alive(agent), "the agent ends")
        outcome = execute(self.client, "hello again")
        self.assertIn("has forgotten the conversation", outcome.text)
        self.assertIn("hello again", outcome.text)


def children_of(pid: int) -> list[int]:
    """All children, whichever thread started them."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in tasks for child in children.read_text().split()]


if __name__ == "__main__":
    unittest.main()
