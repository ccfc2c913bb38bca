"""Agents in our Jupyter kernel, by Jupyter's own client: a tool, a permission that is asked for, a turn that is interrupted."""

import json
import unittest
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from model import Model, Say, Script, Stall, Think
from workspace import CELLWRIGHT, Folder

from agents.agent import Agent, GeminiCli, OpenCode, environment

MAKE = "Please make the file."
MAKE_ANOTHER = "Please make another one."
WAIT = "Please take your time."
GO_ON = "Please go on."


@dataclass
class Cell:
    """What a cell came to."""

    reply: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    questions: list[str] = field(default_factory=list)


class AgentInKernel:
    """Tests for every agent; `agent` comes from the test case."""

    agent: Agent

    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        command = self.agent.shell("echo by the agent > made.txt; cat made.txt")
        self.model = self.enterContext(
            Model(
                Script(MAKE, [[Think("A file."), Say("I make it."), command], [Say("It is made.")]]),
                Script(MAKE_ANOTHER, [[self.agent.shell("touch another.txt")], [Say("Then not.")]]),
                Script(WAIT, [[Say("Well,"), Stall()]]),
                Script(GO_ON, [[Say("On I go.")]]),
            )
        )
        specs = self.folder.path.parent / "kernels"
        (specs / "agent").mkdir(parents=True)
        command = [CELLWRIGHT, "kernel", "run", "-f", "{connection_file}", "--", *self.agent.acp()]
        spec = {"argv": command, "display_name": "Agent", "language": "agent", "interrupt_mode": "message"}
        (specs / "agent/kernel.json").write_text(json.dumps(spec))
        self.manager = KernelManager(
            kernel_name="agent", kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs)])
        )
        variables = environment(self.agent, self.folder, self.model)
        self.manager.start_kernel(env=variables, cwd=str(self.folder.path))
        self.addCleanup(self.manager.shutdown_kernel)
        self.client = self.manager.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=60)

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


class OpenCodeInKernel(AgentInKernel, unittest.TestCase):
    agent = OpenCode()


class GeminiInKernel(AgentInKernel, unittest.TestCase):
    agent = GeminiCli()


if __name__ == "__main__":
    unittest.main()
