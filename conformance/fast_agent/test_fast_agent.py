"""fast-agent, with a model that gives back what it gets. `scripts/check.sh fast_agent` starts this."""

from __future__ import annotations

import os
import tempfile
import unittest

from kernels import execute, install, running

AGENT = install("fast-agent", os.environ["FAST_AGENT"], "--model", "passthrough")


class FastAgent(unittest.TestCase):
    def test_a_conversation(self):
        with tempfile.TemporaryDirectory() as folder:
            home = os.environ | {"HOME": folder}
            with running(AGENT, cwd=folder, env=home) as (_, client):
                outcome = execute(client, "Does anybody listen?")
                self.assertEqual(outcome.status, "ok", outcome.error)
                self.assertIn("Does anybody listen?", outcome.text)
                self.assertEqual(execute(client, "%agent commands").status, "ok")
                self.assertEqual(execute(client, "%session info").status, "ok")
                again = execute(client, "%session restart")
                self.assertEqual(again.status, "ok", again.error)
                self.assertIn("Still there?", execute(client, "Still there?").text)
