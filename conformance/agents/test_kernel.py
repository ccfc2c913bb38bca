"""Agents in our Jupyter kernel, by Jupyter's own client: a tool, a permission that is asked for, a turn that is interrupted."""

import asyncio
import json
import os
import signal
import time
import unittest
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from model import Model, Say, Script, Stall, Think
from workspace import CELLWRIGHT, Folder, all_gone

from agents.agent import Agent, GeminiCli, OpenCode, environment

MAKE = "Please make the file."
MAKE_ANOTHER = "Please make another one."
WAIT = "Please take your time."
GO_ON = "Please go on."
SLEEP = "Please sleep."


@dataclass
class Cell:
    """What a cell came to."""

    reply: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    questions: list[str] = field(default_factory=list)


class RunningAgent:
    """A kernel with an agent; `agent` comes from the test case."""

    agent: Agent
    # Where the kernel logs, and what it gets in its environment besides.
    log: Any = None
    variables: ClassVar[dict[str, str]] = {}

    def scripts(self) -> list[Script]:
        """What the model says."""
        raise NotImplementedError

    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        self.model = self.enterContext(Model(*self.scripts()))
        specs = self.folder.path.parent / "kernels"
        (specs / "agent").mkdir(parents=True)
        command = [CELLWRIGHT, "kernel", "run", "-f", "{connection_file}", "--", *self.agent.acp()]
        spec = {"argv": command, "display_name": "Agent", "language": "agent", "interrupt_mode": "message"}
        (specs / "agent/kernel.json").write_text(json.dumps(spec))
        self.manager = KernelManager(
            kernel_name="agent", kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs)])
        )
        variables = {**environment(self.agent, self.folder, self.model), **self.variables}
        variables["JPY_SESSION_NAME"] = str(self.folder.path / "nb.ipynb")
        self.manager.start_kernel(env=variables, cwd=str(self.folder.path), stderr=self.log)
        self.addCleanup(self.manager.shutdown_kernel)
        self.client = self.manager.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=60)


class AgentInKernel(RunningAgent):
    """Tests for every agent."""

    def scripts(self) -> list[Script]:
        command = self.agent.shell("echo by the agent > made.txt; cat made.txt")
        return [
            Script(MAKE, [[Think("A file."), Say("I make it."), command], [Say("It is made.")]]),
            Script(MAKE_ANOTHER, [[self.agent.shell("touch another.txt")], [Say("Then not.")]]),
            Script(WAIT, [[Say("Well,"), Stall()]]),
            Script(GO_ON, [[Say("On I go.")]]),
            Script(SLEEP, [[self.agent.shell("echo $$ > pid.new; mv pid.new pid.txt; sleep 600")]]),
        ]

    def run_cell(self, prompt: str, answer: str = "no", interrupt_at: str | None = None) -> Cell:
        """Runs a cell, answers what it asks, and interrupts it when it has shown a text."""
        cell = Cell()

        def show(message: dict[str, Any]) -> None:
            match message["content"]:
                case {"text": text}:
                    cell.shown += text
                case {"data": data}:
                    cell.shown += json.dumps(data)
            nonlocal interrupt_at
            if interrupt_at and interrupt_at in cell.shown:
                interrupt_at = None
                self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))

        def ask(message: dict[str, Any]) -> None:
            cell.questions.append(message["content"]["prompt"])
            self.client.input(answer)

        run = self.client.execute_interactive
        cell.reply = run(prompt, allow_stdin=True, stdin_hook=ask, output_hook=show, timeout=300)["content"]
        return cell

    def test_a_tool_a_permission_and_an_interrupt(self):
        made = self.run_cell(MAKE, answer="yes")
        self.assertEqual(made.reply["status"], "ok", made)
        [question] = made.questions
        self.assertIn("made.txt", question + made.shown)
        self.assertIn("It is made.", made.shown)
        self.assertEqual((self.folder.path / "made.txt").read_text(), "by the agent\n")
        self.assertIn("by the agent", self.model.requests[-1].results[0])

        refused = self.run_cell(MAKE_ANOTHER, answer="no")
        self.assertEqual(len(refused.questions), 1, refused)
        self.assertFalse((self.folder.path / "another.txt").exists())

        stopped = self.run_cell(WAIT, interrupt_at="Well,")
        self.assertEqual(stopped.reply["status"], "error", stopped)
        self.assertTrue(self.model.hung_up.wait(60), "the agent still listens to the model")

        # The same conversation goes on.
        self.assertIn("On I go.", self.run_cell(GO_ON).shown)
        self.assertIn(MAKE, "".join(turn.text for turn in self.model.requests[-1].turns))
        # What it asked about is not called unasked.
        self.assertNotIn("not in force", made.shown + refused.shown)

    def test_the_conversation_continues_after_a_restart_or_the_cell_says_that_it_does_not(self):
        self.run_cell(MAKE, answer="yes")
        self.manager.restart_kernel()
        self.client.wait_for_ready(timeout=60)
        shown = self.run_cell(GO_ON).shown
        self.assertIn("On I go.", shown)
        known = MAKE in "".join(turn.text for turn in self.model.requests[-1].turns)
        told = "the conversation of this notebook continues" if known else "the agent starts afresh"
        self.assertIn(told, shown)

    def test_a_command_ends_with_a_killed_kernel(self):
        marker = self.folder.path / "pid.txt"
        self.run_cell("%permissions auto")
        self.client.execute(SLEEP)
        deadline = time.monotonic() + 120
        while not marker.exists():
            self.assertLess(time.monotonic(), deadline, "the command does not run")
            time.sleep(0.05)
        os.kill(self.manager.provisioner.process.pid, signal.SIGKILL)
        asyncio.run(all_gone([int(marker.read_text())]))


class OpenCodeInKernel(AgentInKernel, unittest.TestCase):
    agent = OpenCode()


class Unasked(OpenCode):
    """As it is without settings of its own: it runs commands and does not ask."""

    def set_up(self, folder, model):
        variables = super().set_up(folder, model)
        settings = json.loads(variables["OPENCODE_CONFIG_CONTENT"])
        del settings["permission"]
        return variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}


class UnaskedInKernel(AgentInKernel, unittest.TestCase):
    agent = Unasked()
    test_a_tool_a_permission_and_an_interrupt = None
    test_the_conversation_continues_after_a_restart_or_the_cell_says_that_it_does_not = None
    test_a_command_ends_with_a_killed_kernel = None

    def test_a_cell_says_that_permissions_are_not_in_force(self):
        self.run_cell("%permissions deny")
        made = self.run_cell(MAKE)
        self.assertEqual(made.questions, [])
        self.assertTrue((self.folder.path / "made.txt").exists())
        self.assertIn("the mode `deny` was not in force: the agent ran this without asking", made.shown)
        self.assertIn("but not in force: 1 call", self.run_cell("%session info").shown)


class GeminiInKernel(AgentInKernel, unittest.TestCase):
    agent = GeminiCli()


if __name__ == "__main__":
    unittest.main()
