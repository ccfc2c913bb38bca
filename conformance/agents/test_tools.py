"""Agents that were given our tools by `cellwright mcp install` list them and use them."""

import re
import subprocess
import unittest

from model import Call, Model, Say, Script, Think
from workspace import CELLWRIGHT, Folder

from agents.agent import Agent, GeminiCli, OpenCode, environment

TOOLS = ["bash", "edit", "eval", "kernel", "notebook", "read", "write"]
PROMPT = "How many prime numbers are there below one hundred?"
CODE = "len([n for n in range(2, 100) if all(n % d for d in range(2, n))])"


class InstalledTools:
    """Tests for every agent; `agent` comes from the test case."""

    agent: Agent

    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def run_here(self, command: list[str], environment: dict[str, str]) -> str:
        run = subprocess.run(
            command,
            cwd=self.folder.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def test_an_agent_that_was_set_up_lists_our_tools_and_uses_them(self):
        first = [Think("This wants counting."), Say("I count them."), Call("eval", {"code": CODE})]
        with Model(Script(PROMPT, [first, [Say("There are twenty-five.")]])) as model:
            variables = environment(self.agent, self.folder, model)
            self.run_here([CELLWRIGHT, "mcp", "install", self.agent.name], self.folder.environment)

            listed = self.run_here(self.agent.listing(), variables)
            self.assertRegex(listed, r"(?i)cellwright.*connected")

            said = self.run_here(self.agent.ask(PROMPT), variables)
            self.assertIn("There are twenty-five.", said)

            asked, told = model.requests
            ours = [name for tool in asked.tools if (name := re.search(r"cellwright_+(\w+)$", tool))]
            self.assertEqual(sorted(name[1] for name in ours), TOOLS)
            [result] = told.results
            self.assertRegex(result, r"\b25\b")


class OpenCodeTools(InstalledTools, unittest.TestCase):
    agent = OpenCode()


class GeminiTools(InstalledTools, unittest.TestCase):
    agent = GeminiCli()


if __name__ == "__main__":
    unittest.main()
