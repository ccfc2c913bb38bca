"""A kernel starts whatever is set, and its notebook's conversation outlives it."""

from __future__ import annotations

import os
import signal
import tempfile
import unittest
from pathlib import Path

from kernels import FAULT_AGENT, TIMEOUT, alive, execute, install, running, wait_until

CONTINUES = "the conversation of this notebook continues"


class BadSettings(unittest.TestCase):
    """A kernel that dies for a bad setting is started again and again, and nobody reads why."""

    def test_a_bad_setting_is_shown_in_the_first_cell_with_its_place(self):
        user, project = ".config/cellwright/config.toml", "project/.cellwright/config.toml"
        files = [
            (user, b"[agent\n"),
            (user, b"[agent]\npermisions = 'ask'\n"),
            (user, b"[agent]\npermissions = 3\n"),
            (user, b"[agent]\npermissions = 'perhaps'\n"),
            (user, b"[agents.mine]\nargs = []\n"),
            (user, b"\xff\xfe"),
            (project, b"[agent\n"),
            (project, b"[agent]\npermissions = 'auto'\n"),
            (project, b"[agents.mine]\ncommand = 'x'\n"),
        ]
        variables = [
            ("CELLWRIGHT_PERMISSIONS", "perhaps"),
            ("CELLWRIGHT_AGENT_LOG", "loud"),
            ("ACP_LOG_LEVEL", "loud"),
        ]
        for name, content in files:
            with self.subTest(name, content=content), tempfile.TemporaryDirectory() as home:
                settings = Path(home) / name
                settings.parent.mkdir(parents=True)
                settings.write_bytes(content)
                self.reported(home, {}, str(settings))
        for name, value in variables:
            with self.subTest(name), tempfile.TemporaryDirectory() as home:
                self.reported(home, {name: value}, name)

    def test_settings_that_are_a_folder_are_reported(self):
        with tempfile.TemporaryDirectory() as home:
            settings = Path(home) / ".config/cellwright/config.toml"
            settings.mkdir(parents=True)
            self.reported(home, {}, str(settings))

    def reported(self, home: str, variables: dict, place: str) -> None:
        folder = Path(home) / "project"
        folder.mkdir(exist_ok=True)
        environment = {"HOME": home, "PATH": home, "LANG": "C.UTF-8", "CELLWRIGHT_AGENT_TOOLS": "none"}
        environment.update(variables)
        environment["CELLWRIGHT_TRUSTED_FOLDERS"] = home
        with running(env=environment, cwd=folder) as (_, client):
            outcome = execute(client, "say hello")
            self.assertEqual(outcome.status, "error")
            self.assertIn("the settings cannot be used", outcome.error)
            self.assertIn(place, outcome.error)
            # It answers everything else as always.
            self.assertEqual(execute(client, "%permissions").text, "deny")


class Conversations(unittest.TestCase):
    def test_a_restart_and_a_reopened_notebook_continue_the_conversation(self):
        with tempfile.TemporaryDirectory() as home:
            install("remembers", *FAULT_AGENT, "--store", f"{home}/store.json")
            variables = os.environ | {"XDG_STATE_HOME": home, "JPY_SESSION_NAME": f"{home}/nb.ipynb"}
            with running("remembers", env=variables, cwd=home) as (manager, client):
                self.assertEqual(execute(client, "remember the cat\nsay yes").text, "yes\n")
                manager.restart_kernel()
                client.wait_for_ready(timeout=TIMEOUT)
                continued = execute(client, "recall").text
                self.assertIn(CONTINUES, continued)
                self.assertIn("the cat", continued)
            with running("remembers", env=variables, cwd=home) as (_, client):
                self.assertIn("the cat", execute(client, "recall").text)
            # A console names no notebook, and another notebook has a conversation of its own.
            for name in (f"{home}/console-1", f"{home}/other.ipynb"):
                other = variables | {"JPY_SESSION_NAME": name}
                with self.subTest(name), running("remembers", env=other, cwd=home) as (_, client):
                    self.assertEqual(execute(client, "recall").text, "None\n")


class Leftovers(unittest.TestCase):
    def test_a_command_in_its_own_session_ends_with_a_killed_kernel(self):
        with running() as (manager, client):
            pid = int(execute(client, "detach 600").text)
            self.assertTrue(alive(pid))
            os.kill(manager.provisioner.process.pid, signal.SIGKILL)
            wait_until(lambda: not alive(pid), f"{pid} ends")
