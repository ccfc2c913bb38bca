"""Magics, sessions and questions, as a notebook uses them."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from kernels import FAULT_AGENT, TIMEOUT, collect, execute, install, running


class Magics(unittest.TestCase):
    def setUp(self):
        context = running()
        self.manager, self.client = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def run_cell(self, code: str, **options) -> str:
        outcome = execute(self.client, code, **options)
        self.assertEqual(outcome.status, "ok", outcome.error)
        return outcome.text.strip()

    def failure(self, code: str) -> str:
        outcome = execute(self.client, code)
        self.assertEqual(outcome.status, "error", outcome.text)
        return outcome.error

    def test_several_magics_and_a_prompt_in_one_cell(self):
        text = self.run_cell("%agent permissions auto\n%agent render rich\npermission")
        self.assertIn("permission: once", text)
        self.assertIn("allowed by the mode `auto`", self.run_cell("%permissions list"))

    def test_rules_decide_before_anyone_is_asked(self):
        self.run_cell("%permissions allow edit /tmp/**")
        self.assertIn("permission: once", self.run_cell("permission edit /tmp/file"))
        self.assertIn("permission: no", self.run_cell("permission execute /tmp/file"))
        self.run_cell("%permissions deny edit /tmp/secret/**")
        self.assertIn("permission: no", self.run_cell("permission edit /tmp/secret/x"))

    def test_adding_a_server_keeps_the_conversation(self):
        self.run_cell("remember the milk")
        self.assertIn("added", self.run_cell("%mcp add tools -- some-server --flag"))
        self.assertEqual(self.run_cell("servers\nrecall").split("\n"), ['["tools"]', "the milk"])
        self.run_cell("%mcp disable tools\n%mcp add web https://example.org/mcp")
        self.assertEqual(self.run_cell("servers"), '["web"]')
        self.assertIn("some-server --flag", self.run_cell("%mcp list"))
        self.run_cell("%mcp clear")
        self.assertEqual(self.run_cell("servers\nrecall").split("\n"), ["[]", "the milk"])
        self.assertIn("NoSuchServer", self.failure("%mcp remove nothing"))

    def test_modes_models_options_and_commands(self):
        self.assertIn("* plan", self.run_cell("%agent mode"))
        self.assertIn("Act", self.run_cell("%agent mode act"))
        self.assertIn("* act", self.run_cell("%agent mode"))
        self.assertIn("* small", self.run_cell("%agent model"))
        self.run_cell("%agent model large")
        self.assertIn("large", self.run_cell("%agent options"))
        self.assertIn("/web", self.run_cell("%agent commands"))
        self.assertIn("It has: plan, act", self.failure("%agent mode nonsense"))

    def test_sessions_are_apart(self):
        self.run_cell("remember one")
        self.run_cell("%session new other\nremember two")
        self.assertEqual(self.run_cell("recall"), "two")
        self.assertEqual(self.run_cell("%%agent main\nrecall"), "one")
        self.run_cell("%session use main")
        self.assertEqual(self.run_cell("recall"), "one")
        listed = self.run_cell("%session list")
        self.assertIn("* main", listed)
        self.assertIn("other", listed)
        self.run_cell("%session close other")
        self.assertIn("NoSuchSession", self.failure("%%agent other\nrecall"))
        self.run_cell("%session new")
        self.assertEqual(self.run_cell("recall"), "None")

    def test_a_turn_in_the_background_writes_to_its_own_cell(self):
        first = self.client.execute("%session new slow\n%%agent slow --background\nsleep 0.3\nsay behind")
        collect(self.client, first)
        second = self.client.execute("%session use main\nsay before")
        collect(self.client, second)
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if "behind" in str(message["content"].get("data") or message["content"].get("text")):
                self.assertEqual(message["parent_header"]["msg_id"], first)
                break

    def test_restart_resume_load_and_fork(self):
        self.run_cell("remember me")
        session = next(line for line in self.run_cell("%session info").split("\n") if line.startswith("id"))
        self.run_cell("%session fork")
        self.assertEqual(self.run_cell("recall"), "me")
        loaded = self.run_cell(f"%session load {session.split()[1]}")
        self.assertIn("an old question", loaded)
        self.assertIn("an old answer", loaded)
        before = self.run_cell("pid")
        self.run_cell("%session restart")
        self.assertNotEqual(self.run_cell("pid"), before)

    def test_the_log_shows_standard_error(self):
        self.run_cell("stderr 1")
        self.assertTrue(self.run_cell("%agent log 2").endswith("last words"))

    def test_signing_in(self):
        install("auth", *FAULT_AGENT, "--auth")
        with running("auth") as (_, client):
            self.assertEqual(execute(client, "hello").reply["ename"], "AuthRequired")
            self.assertIn("Log in", execute(client, "%agent login").text)
            self.assertEqual(execute(client, "%agent login login").status, "ok")
            self.assertIn("hello", execute(client, "say hello").text)

    def test_the_environment_of_the_agent(self):
        self.run_cell("%agent env NEW_NAME=value")
        self.assertIn("NEW_NAME", self.run_cell("%agent env"))

    def test_mentioned_files_and_cells_travel_with_the_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data.txt").write_text("rows")
            with running(cwd=folder) as (_, client):
                execute(client, "say first")
                blocks = json.loads(execute(client, "echo @data.txt #1").text)
                texts = [block["resource"]["text"] for block in blocks]
                self.assertEqual(texts, ["rows", "say first"])

    def test_forms_are_filled_in_field_by_field(self):
        answers = iter(["Ada", "y"])
        text = self.run_cell("elicit", allow_stdin=True, answer=lambda prompt: next(answers))
        self.assertIn('{"action": "accept", "content": {"name": "Ada", "sure": true}}', text)
        self.assertIn('{"action": "cancel"}', self.run_cell("elicit"))

    def test_commands_and_files_through_us(self):
        self.run_cell("%permissions auto")
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("written", self.run_cell(f"write {folder}/new.txt text"))
            self.assertIn("read 4", self.run_cell(f"read {folder}/new.txt"))
        self.assertIn("ran 0 'hi\\n'", self.run_cell("run echo hi"))

    def test_a_failed_cell_aborts_those_behind_it(self):
        first = self.client.execute("fail on purpose")
        second = self.client.execute("say never")
        self.assertEqual(collect(self.client, first).status, "error")
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        self.assertEqual((reply["parent_header"]["msg_id"], reply["content"]["status"]), (second, "aborted"))

    def test_buttons_where_the_client_has_widgets(self):
        session = self.client.session
        open_control = session.msg(
            "comm_open", {"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}}
        )
        self.client.shell_channel.send(open_control)
        buttons = {}

        def click(message):
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "comm_open":
                buttons[content["data"]["state"].get("description")] = content["comm_id"]
            if "application/vnd.jupyter.widget-view+json" in content.get("data", {}):
                clicked = {
                    "comm_id": buttons["Allow"],
                    "data": {"method": "custom", "content": {"event": "click"}},
                }
                self.client.shell_channel.send(session.msg("comm_msg", clicked))

        outcome = execute(self.client, "permission", on_output=click)
        self.assertIn("permission: once", outcome.text)
        self.assertNotIn("widget-view", json.dumps(outcome.outputs), "no dead buttons are left")


if __name__ == "__main__":
    unittest.main()
