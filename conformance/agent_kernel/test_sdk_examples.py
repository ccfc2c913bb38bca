"""The example agents of the protocol's Python SDK, as its authors wrote them."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path

from kernels import ROOT, execute, install, running

EXAMPLES = Path(os.environ.get("CELLWRIGHT_ACP_EXAMPLES", ROOT / "target/acp-examples"))


def example(name: str) -> str:
    """A kernelspec for one of the examples."""
    path = EXAMPLES / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; run: scripts/check.sh conformance")
    return install(f"sdk-{path.stem}", sys.executable, str(path))


class SdkExamples(unittest.TestCase):
    def test_the_echo_agent_gives_the_prompt_back(self):
        with running(example("echo_agent.py")) as (_, client):
            for prompt in ("hello", "and\n\nagain"):
                outcome = execute(client, prompt)
                self.assertEqual((outcome.status, outcome.text.strip()), ("ok", prompt), outcome.error)

    def test_the_example_agent_talks_logs_and_keeps_its_session(self):
        with running(example("agent.py")) as (_, client):
            outcome = execute(client, "hello")
            self.assertEqual(outcome.status, "ok", outcome.error)
            self.assertIn("Client sent:", outcome.text)
            self.assertIn("hello", outcome.text)
            self.assertIn("Received prompt request for session 0", execute(client, "%agent log").text)
            # It can neither load nor resume: a server added now waits for the next session.
            self.assertIn("with the next session", execute(client, "%mcp add tools some-server").text)
            self.assertNotIn("forgotten", execute(client, "hello").text)
            self.assertIn("does not support `session/load`", execute(client, "%session load 0").error)
