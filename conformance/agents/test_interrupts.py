"""Turns of real agents, interrupted at random moments: all that an agent said is in the cell of its turn."""

import json
import queue
import random
import re
import tempfile
import time
import unittest
from typing import Any, ClassVar

from model import Say, Script, Stall, Think

from agents.agent import GeminiCli, OpenCode
from agents.test_kernel import RunningAgent

ROUNDS = 20
WORDS = 40
PATIENCE = 300
GO_ON = "Please go on now."
# A line of the log of updates has the update as JSON.
UPDATE = re.compile(r'cellwright::updates.*?(\{".*\})')


class InterruptedAgent(RunningAgent):
    """Tests for every agent."""

    variables: ClassVar[dict[str, str]] = {"CELLWRIGHT_DEBUG_UPDATES": "agent_message_chunk"}

    def setUp(self):
        self.log = self.enterContext(tempfile.TemporaryFile())
        super().setUp()
        # By the request of their cell: what each display shows, in order.
        self.cells: dict[str, dict[Any, str]] = {}
        self.idle: set[str] = set()

    def scripts(self) -> list[Script]:
        def words(number: int) -> str:
            return "".join(f"turn{number}x{word} " for word in range(WORDS))

        turns = [Script(f"Round {n}.", [[Think("Well."), Say(words(n)), Stall()]]) for n in range(ROUNDS)]
        return [*turns, Script(GO_ON, [[Say("On I go.")]])]

    def receive(self) -> None:
        """Takes the next message, and notes what it says about its cell."""
        try:
            message = self.client.get_iopub_msg(timeout=1)
        except queue.Empty:
            return
        parent, content = message["parent_header"].get("msg_id"), message["content"]
        shown = self.cells.setdefault(parent, {})
        match message["header"]["msg_type"]:
            case "status" if content["execution_state"] == "idle":
                self.idle.add(parent)
            case "stream":
                shown[len(shown)] = content["text"] if content["name"] == "stdout" else ""
            case "display_data" | "update_display_data":
                shown[content["transient"].get("display_id", len(shown))] = content["data"].get(
                    "text/plain", ""
                )

    def until(self, true, what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self.cells}")
            self.receive()

    def text(self, cell: str) -> str:
        return "".join(self.cells.get(cell, {}).values())

    def test_interrupts_lose_nothing_and_mix_nothing(self):
        moments = random.Random(17)
        cells = []
        for number in range(ROUNDS):
            cell = self.client.execute(f"Round {number}.", allow_stdin=False)
            word = f"turn{number}x{moments.randrange(WORDS)} "
            self.until(lambda cell=cell, word=word: word in self.text(cell), f"{cell} says {word}")
            self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))
            self.until(lambda cell=cell: cell in self.idle, f"{cell} ends")
            cells.append(cell)
        last = self.client.execute(GO_ON, allow_stdin=False)
        self.until(lambda: last in self.idle, "the last cell ends")
        self.assertIn("On I go.", self.text(last))

        for number, cell in enumerate(cells):
            turns = set(re.findall(r"turn(\d+)x", self.text(cell)))
            self.assertEqual(turns, {str(number)}, self.text(cell))
            self.assertNotIn("not shown", self.text(cell))
        # What the kernel heard from the agent, and what the cells show of it.
        self.log.seek(0)
        logged = self.log.read().decode()
        updates = [json.loads(found) for found in UPDATE.findall(logged)]
        self.assertTrue(updates, "nothing was logged")
        said = "".join(update["content"].get("text", "") for update in updates)
        heard = re.findall(r"turn\d+x\d+", said)
        self.assertGreaterEqual(len(heard), ROUNDS)
        shown = re.findall(r"turn\d+x\d+", "".join(self.text(cell) for cell in cells))
        self.assertEqual(shown, heard)


class InterruptedOpenCode(InterruptedAgent, unittest.TestCase):
    agent = OpenCode()


class InterruptedGemini(InterruptedAgent, unittest.TestCase):
    agent = GeminiCli()


if __name__ == "__main__":
    unittest.main()
