"""Magics, sessions and questions, as a notebook uses them."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import unittest
from pathlib import Path

from kernels import FAULT_AGENT, TIMEOUT, collect, execute, install, running


def bare(home: str) -> dict[str, str]:
    """An environment without any agent in it."""
    # Its agents use no MCP servers, and would be waited for.
    return {"HOME": home, "PATH": home, "LANG": "C.UTF-8", "CELLWRIGHT_AGENT_TOOLS": "none"}


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

    def test_without_any_agent_the_first_cell_tells_what_to_install(self):
        with tempfile.TemporaryDirectory() as home:
            install("none")
            with running("none", env=bare(home), cwd=home) as (_, client):
                told = execute(client, "hello")
                self.assertEqual(told.reply["ename"], "NoAgent")
                self.assertIn("npm install -g", told.error)
                self.assertIn("%agent config my-agent --acp", told.error)
                # And from there it works.
                command = shlex.join(FAULT_AGENT)
                outcome = execute(client, f"%agent config {command}\nsay hello")
                self.assertIn("hello", outcome.text, outcome.error)

    def test_an_agent_that_is_not_there_is_not_replaced_by_another(self):
        with tempfile.TemporaryDirectory() as home:
            settings = Path(home) / ".config/cellwright/config.toml"
            settings.parent.mkdir(parents=True)
            # JSON's strings and lists are TOML's, too.
            declared = f"command = {json.dumps(FAULT_AGENT[0])}\nargs = {json.dumps(FAULT_AGENT[1:])}\n"
            settings.write_text(f"[agents.mine]\n{declared}env = {{ FROM_SETTINGS = 'yes' }}\n")
            install("absent", options=("--agent", "absent"))
            with running("absent", env=bare(home), cwd=home) as (_, client):
                told = execute(client, "hello")
                self.assertEqual(told.reply["ename"], "NoSuchAgent")
                self.assertIn("There are: mine.", told.error)
                self.assertIn("hello", execute(client, "%agent use mine\nsay hello").text)
                self.assertIn("FROM_SETTINGS", execute(client, "%agent env").text)

    def test_the_environment_names_an_agent(self):
        with tempfile.TemporaryDirectory() as home:
            variables = {"ACP_AGENT_COMMAND": FAULT_AGENT[0], "ACP_AGENT_ARGS": shlex.join(FAULT_AGENT[1:])}
            install("none")
            with running("none", env=bare(home) | variables, cwd=home) as (_, client):
                self.assertIn("hello", execute(client, "say hello").text)

    def test_what_goes_on_is_logged_to_standard_error(self):
        with tempfile.TemporaryFile("w+") as log:
            variables = os.environ | {
                "ACP_LOG_LEVEL": "DEBUG",
                "ACP_DEBUG_UPDATES": "ToolCallStart,AgentThoughtChunk",
            }
            with running(env=variables, stderr=log) as (_, client):
                execute(client, "tool /tmp/x\nsay loudly\nthink quietly\nunknown")
            log.seek(0)
            logged = log.read()
        self.assertIn("cellwright::updates", logged)
        self.assertIn('update="tool_call"', logged)
        self.assertIn("quietly", logged)
        updates = "".join(line for line in logged.splitlines() if "cellwright::updates" in line)
        self.assertNotIn("loudly", updates, "what was not asked for by name")
        self.assertIn("DEBUG", logged)
        # Every message is there, to the agent and from it.
        for line in ("to the agent: ", "session/prompt", "from the agent: ", "agent_message_chunk", "loudly"):
            self.assertIn(line, logged)

    def test_without_being_asked_nothing_is_logged(self):
        with tempfile.TemporaryFile("w+") as log:
            with running(stderr=log) as (_, client):
                execute(client, "tool /tmp/x\nsay loudly\nunknown")
            log.seek(0)
            self.assertEqual(log.read(), "")

    def test_updates_that_are_not_known_are_shown_to_those_who_debug(self):
        self.assertNotIn("from_the_future", self.run_cell("unknown"))
        with running(env=os.environ | {"ACP_DEBUG_UPDATES": "all"}) as (_, client):
            self.assertIn("from_the_future", execute(client, "unknown").text)

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

    def test_a_refused_command_does_not_run_in_a_terminal_either(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "kept"
            kept.touch()
            self.run_cell("%permissions auto\n%permissions deny execute rm*")
            for line in (f"rm -rf {kept}", f"true; rm -rf {kept}", f"sh -c 'rm -rf {kept}'"):
                self.assertIn("run error the user did not allow this", self.run_cell(f"run {line}"))
            self.assertTrue(kept.exists())
        self.run_cell("%permissions ask\n%permissions allow execute echo *")
        self.assertIn("ran 0 'hi\\n'", self.run_cell("run echo hi"))

    def test_a_file_of_the_workspace_is_not_read_against_rule_or_mode(self):
        with tempfile.TemporaryDirectory() as folder:
            secret, plain, link = (Path(folder) / name for name in (".env", "plain.txt", "link"))
            secret.write_text("secret")
            plain.write_text("text")
            link.symlink_to(secret)
            with running(cwd=folder) as (_, client):
                execute(client, "%permissions deny read .env")
                for refused in (secret, link):
                    self.assertIn("read error -32603", execute(client, f"read {refused}").text)
                self.assertIn("read 4", execute(client, f"read {plain}").text)
                execute(client, "%permissions deny")
                self.assertIn("read error -32603", execute(client, f"read {plain}").text)
                listed = execute(client, "%permissions list").text
        self.assertIn(f"✗ Read {secret}: refused by the rule `deny read .env`", listed)
        self.assertIn(f"✓ Read {plain}: allowed by default: it is in the workspace", listed)
        self.assertIn(f"✗ Read {plain}: refused by the mode `deny`", listed)

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

    def test_adding_a_server_keeps_the_conversation_of_an_agent_that_can_not_reopen_it(self):
        install("forgetful", *FAULT_AGENT, "--forgetful")
        with running("forgetful") as (_, client):
            agent = execute(client, "remember me\npid").text
            added = execute(client, "%mcp add tools some-server").text
            self.assertIn("with the next session", added)
            self.assertNotIn("forgotten", added)
            self.assertEqual(execute(client, "recall\npid").text, f"me\n{agent}")
            execute(client, "%session new")
            self.assertEqual(execute(client, "servers").text.strip(), '["tools"]')

    def test_every_session_is_told_of_servers(self):
        self.run_cell("remember one\n%session new")
        self.run_cell("%session new other\nremember two")
        self.run_cell("%mcp add tools some-server\n%session use main")
        self.assertEqual(self.run_cell("servers"), '["tools"]')
        self.assertEqual(self.run_cell("%%agent other\nservers\nrecall").split("\n"), ['["tools"]', "two"])

    def test_an_agent_is_only_told_of_servers_that_it_takes(self):
        install("no-http", *FAULT_AGENT, "--no-http")
        with running("no-http") as (_, client):
            execute(client, "%mcp add web https://example.org/mcp\n%mcp add tools some-server")
            outcome = execute(client, "servers")
            self.assertIn('["tools"]', outcome.text)
            self.assertIn("does not get `web`", outcome.text)

    def test_servers_of_the_agents_own_settings_are_listed(self):
        with tempfile.TemporaryDirectory() as home:
            settings = Path(home) / ".gemini/settings.json"
            settings.parent.mkdir()
            settings.write_text('{"mcpServers": {"docs": {"command": "docs-server", "args": ["--all"]}}}')
            with running(env=os.environ | {"HOME": home}) as (_, client):
                execute(client, "%mcp add mine my-server\n%agent config gemini --acp")
                listed = execute(client, "%mcp list").text
        self.assertIn("my-server", listed)
        self.assertIn(f"docs-server --all  (from {settings})", listed)

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

    def test_restart_resume_load_fork_and_delete(self):
        self.run_cell("remember me")
        session = next(line for line in self.run_cell("%session info").split("\n") if line.startswith("id"))
        self.run_cell("%session fork")
        self.assertEqual(self.run_cell("recall"), "me")
        self.run_cell("%session fork copy\nremember another")
        self.assertEqual(self.run_cell("recall"), "another")
        self.run_cell("%session use main")
        self.assertEqual(self.run_cell("recall"), "me")
        stored = self.run_cell("%session list")
        self.assertIn(session.split()[1], stored)
        matches = self.client.complete("%session resume session-", reply=True, timeout=TIMEOUT)["content"][
            "matches"
        ]
        self.assertIn(session.split()[1], matches)
        self.run_cell(f"%session resume {session.split()[1]}")
        self.assertEqual(self.run_cell("recall"), "me")
        self.run_cell(f"%session delete {session.split()[1]}")
        self.assertEqual(self.run_cell("recall"), "None")
        loaded = self.run_cell(f"%session load {session.split()[1]}")
        self.assertIn("an old question", loaded)
        self.assertIn("an old answer", loaded)
        before = self.run_cell("pid")
        self.run_cell("%session restart")
        self.assertNotEqual(self.run_cell("pid"), before)

    def test_a_session_that_can_not_be_loaded_costs_nothing(self):
        self.run_cell("%mcp add tools some-server\nremember me")
        info = self.run_cell("%session info")
        for way in ("load", "resume"):
            self.assertIn("No such session", self.failure(f"%session {way} missing"))
            self.assertEqual(self.run_cell("%session info"), info)
            self.assertEqual(self.run_cell("recall"), "me")
        self.assertIn("/web", self.run_cell("%agent commands"))
        install("forgetful", *FAULT_AGENT, "--forgetful")
        with running("forgetful") as (_, client):
            execute(client, "remember me")
            for way in ("load", "resume"):
                failed = execute(client, f"%session {way} some-id")
                self.assertIn(f"does not support `session/{way}`", failed.error)
            self.assertEqual(execute(client, "recall").text.strip(), "me")

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

    def test_signing_in_at_a_terminal_is_explained(self):
        install("auth", *FAULT_AGENT, "--auth")
        with running("auth") as (_, client):
            told = execute(client, "%agent login").text
            self.assertIn("run in a cell: %agent login login", told)
            self.assertIn(f"run in a terminal: {shlex.join(FAULT_AGENT)} --auth --login", told)
            self.assertIn("run in a terminal: A=1 some-agent 'sign in'", told)
            self.assertIn("needs a terminal", execute(client, "%agent login older").error)

    def test_a_page_to_sign_in_at_is_shown_and_waited_for(self):
        install("ask-at-login", *FAULT_AGENT, "--auth", "--ask-at-login")
        with running("ask-at-login") as (_, client):
            outcome = execute(client, "%agent login login", allow_stdin=True, answer=lambda prompt: "y")
            self.assertEqual(outcome.status, "ok", outcome.error)
            self.assertIn("https://login.example/code?a=1&b=2", outcome.text)
            self.assertIn("hello", execute(client, "say hello").text)

    def test_the_environment_of_the_agent(self):
        self.assertIn("`NEW_NAME` is set", self.run_cell("%agent env NEW_NAME=value"))
        self.assertIn("NEW_NAME", self.run_cell("%agent env"))

    def test_files_are_read_and_written_through_us_where_that_is_offered(self):
        with tempfile.TemporaryDirectory() as home:
            settings = Path(home) / ".config/cellwright/config.toml"
            settings.parent.mkdir(parents=True)
            declared = f"command = {json.dumps(FAULT_AGENT[0])}\nargs = {json.dumps(FAULT_AGENT[1:])}\n"
            settings.write_text(f"[agent]\nfiles = true\n\n[agents.mine]\n{declared}")
            install("files", options=("--agent", "mine"))
            with running("files", env=bare(home), cwd=home) as (_, client):
                self.assertEqual(
                    json.loads(execute(client, "capabilities").text)["fs"],
                    {"readTextFile": True, "writeTextFile": True},
                )
                cell = f"write {home}/new.txt text\nread {home}/new.txt"
                text = execute(client, cell, allow_stdin=True, answer=lambda _: "y").text
                self.assertIn("written\nread 4", text)

    def test_a_session_in_a_folder_of_the_user(self):
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / "proj").mkdir()
            with running(env=os.environ | {"HOME": home}) as (_, client):
                execute(client, "%session new ~/proj")
                self.assertIn(f"{home}/proj\n", execute(client, "%session info").text + "\n")

    def test_what_a_prompt_mentions_and_is_not_there_is_told(self):
        told = self.run_cell("say @missing.txt #77")
        self.assertIn("there is no file `missing.txt`", told)
        self.assertIn("there is no cell #77", told)

    def test_a_server_of_a_name_that_is_taken_is_replaced_and_says_so(self):
        self.assertIn("was added", self.run_cell("%mcp add tools some-server"))
        self.assertIn("was replaced", self.run_cell("%mcp add tools another-server"))
        self.assertIn("neither a command nor an address", self.failure("%mcp add y ftp://x"))

    def test_a_reason_to_stop_that_is_not_known_is_told(self):
        told = self.run_cell("say before\nstop out_of_ideas")
        self.assertIn("before", told)
        self.assertIn("out_of_ideas", told)

    def test_a_request_that_is_no_cell_is_told_what_is_wrong_with_it(self):
        message = self.client.session.msg("execute_request", {"code": 1})
        self.client.shell_channel.send(message)
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        self.assertEqual(reply["parent_header"]["msg_id"], message["header"]["msg_id"])
        self.assertEqual(reply["content"]["ename"], "BadRequest")
        self.assertIn("expected a string", reply["content"]["evalue"])
        self.assertEqual(self.run_cell("say fine"), "fine")

    def test_mentioned_files_and_cells_travel_with_the_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data.txt").write_text("rows")
            with running(cwd=folder) as (_, client):
                execute(client, "say first")
                blocks = json.loads(execute(client, "echo @data.txt #1").text)
                texts = [block["resource"]["text"] for block in blocks]
                self.assertEqual(texts, ["rows", "say first\n# %% [output]\nfirst\n"])

    def test_forms_are_filled_in_field_by_field(self):
        answers = iter(["Ada", "y"])
        text = self.run_cell("elicit", allow_stdin=True, answer=lambda prompt: next(answers))
        self.assertIn('{"action": "accept", "content": {"name": "Ada", "sure": true}}', text)
        self.assertIn('{"action": "cancel"}', self.run_cell("elicit"))

    def test_a_link_is_shown_and_waited_for(self):
        outcome = execute(
            self.client,
            "%agent render rich\nelicit https://a.example/x",
            allow_stdin=True,
            answer=lambda _: "y",
        )
        self.assertIn('{"action": "accept"}', outcome.text)
        html = "".join(output["data"].get("text/html", "") for output in outcome.shown if "data" in output)
        self.assertIn('<a href="https://a.example/x"', html)
        self.assertIn('{"action": "cancel"}', self.run_cell("elicit https://a.example/x"))

    def test_stop_reasons_are_told(self):
        for reason, told in [
            ("max_tokens", "token limit"),
            ("max_turn_requests", "limit of requests"),
            ("refusal", "refused to continue"),
        ]:
            self.assertIn(told, self.run_cell(f"say before\nstop {reason}"))
        self.assertEqual(self.run_cell("say before\nstop end_turn"), "before")

    def test_usage_notices_and_output_in_meta_are_shown(self):
        self.assertIn("1,200 of 200,000 tokens (0 %) · 0.01 USD", self.run_cell("usage"))
        self.assertIn("3,000 tokens in, 20 out", self.run_cell("tokens 3000 20"))
        shown = self.run_cell("notice warning Slow today")
        self.assertIn("warning: Slow today\nas you can see", shown)
        shown = self.run_cell("meta")
        self.assertIn("compiling\n  linking\n  [exit 2]", shown)

    def test_what_was_allowed_is_allowed_once(self):
        questions = []

        def answer(prompt):
            questions.append(prompt)
            return "y"

        cell = "may echo one\nrun echo one\nrun echo one\nrun echo two"
        text = self.run_cell(cell, allow_stdin=True, answer=answer)
        self.assertIn("ran 0 'two\\n'", text)
        # The first command is what the agent had asked for; that it runs again is another question.
        self.assertEqual(len(questions), 3, questions)
        self.assertIn("echo one", questions[1])
        self.assertIn("echo two", questions[2])
        listed = self.run_cell("%permissions list")
        self.assertIn('✓ Run `echo one`: allowed by the permission for "echo one"', listed)

    def test_leave_for_one_command_is_none_for_another(self):
        with tempfile.TemporaryDirectory() as folder:
            answers = iter("ynyn")
            # The second agent does not even say what it is about to run.
            for asks in ("may ls", "permission execute /tmp/x"):
                cell = f"{asks}\nrun touch {folder}/sneaked"
                text = self.run_cell(cell, allow_stdin=True, answer=lambda prompt: next(answers))
                self.assertIn("run error the user did not allow this", text)
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_a_question_without_a_fitting_option_comes_to_an_end(self):
        asked = self.run_cell("options", allow_stdin=True, answer=lambda prompt: "y")
        self.assertIn("chosen: cancelled", asked)
        self.assertIn("the agent gave no options", asked)
        for kinds, typed, chosen in [
            ("allow_once", "n", "cancelled"),
            ("reject_always", "n", "reject_always"),
            ("allow_always reject_once", "y", "allow_always"),
        ]:
            answered = self.run_cell(
                f"options {kinds}", allow_stdin=True, answer=lambda _, typed=typed: typed
            )
            self.assertIn(f"chosen: {chosen}", answered)

    def test_an_interrupt_answers_what_was_asked(self):
        msg_id = self.client.execute("permission", allow_stdin=True)
        self.client.get_stdin_msg(timeout=TIMEOUT)
        self.manager.interrupt_kernel()
        outcome = collect(self.client, msg_id)
        self.assertEqual(outcome.reply["ename"], "Interrupted")
        self.assertIn("permission: cancelled", outcome.text)
        listed = self.run_cell("%permissions list")
        self.assertIn("/tmp/x", listed)
        self.assertIn("the interrupt", listed)

    def test_commands_and_files_through_us(self):
        self.run_cell("%permissions auto")
        self.assertIn("read error -32002", self.run_cell("read /no/such/file"))
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("written", self.run_cell(f"write {folder}/new.txt text"))
            self.assertIn("read 4", self.run_cell(f"read {folder}/new.txt"))
        self.assertIn("ran 0 'hi\\n'", self.run_cell("run echo hi"))

    def test_the_end_of_a_commands_output_is_in_its_card(self):
        self.run_cell("%permissions auto")
        for style in ("rich", "stream"):
            self.run_cell(f"%agent render {style}")
            for _ in range(10):
                self.assertIn("\n  2000\n  tail\n", self.run_cell("run seq 1 2000; echo tail; exit 1"))

    def test_a_command_that_was_allowed_is_not_left_unfinished(self):
        text = self.run_cell("run echo hi", allow_stdin=True, answer=lambda _: "y")
        self.assertIn("✓ Run `echo hi` (execute, allowed)", text)
        self.assertNotIn("not finished", text)

    def test_no_answer_loses_its_words_however_fast_it_comes(self):
        for number in range(200):
            self.assertEqual(self.run_cell(f"say word {number}"), f"word {number}")

    def test_a_failed_cell_aborts_those_behind_it(self):
        first = self.client.execute("fail on purpose")
        second = self.client.execute("say never")
        replies = [self.client.get_shell_msg(timeout=TIMEOUT) for _ in range(2)]
        statuses = [(reply["parent_header"]["msg_id"], reply["content"]["status"]) for reply in replies]
        self.assertEqual(statuses, [(first, "error"), (second, "aborted")])

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

    def test_a_page_that_is_loaded_again_gets_its_buttons_back(self):
        session, send = self.client.session, self.client.shell_channel.send
        control = {"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}}
        send(session.msg("comm_open", control))
        states = {}

        def load_again(message):
            content = message["content"]
            if "application/vnd.jupyter.widget-view+json" in content.get("data", {}):
                asked = {"comm_id": "c", "data": {"method": "request_states"}}
                # Its answer has another parent than the cell, so it is looked for here.
                msg = session.msg("comm_msg", asked)
                send(msg)
                while not states:
                    answer = self.client.get_iopub_msg(timeout=TIMEOUT)
                    if answer["parent_header"]["msg_id"] == msg["header"]["msg_id"]:
                        states.update(answer["content"].get("data", {}).get("states", {}))
                models = {model["state"].get("description"): name for name, model in states.items()}
                clicked = {"method": "custom", "content": {"event": "click"}}
                send(session.msg("comm_msg", {"comm_id": models["Allow"], "data": clicked}))

        outcome = execute(self.client, "permission", on_output=load_again)
        self.assertIn("permission: once", outcome.text)
        self.assertIn("HBoxModel", {model["model_name"] for model in states.values()})

    def test_buttons_that_the_client_closes_refuse(self):
        session, send = self.client.session, self.client.shell_channel.send
        control = {"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}}
        send(session.msg("comm_open", control))
        opened = []

        def close(message):
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "comm_open":
                opened.append(content["comm_id"])
            if "application/vnd.jupyter.widget-view+json" in content.get("data", {}):
                for comm in opened:
                    send(session.msg("comm_close", {"comm_id": comm, "data": {}}))

        outcome = execute(self.client, "permission", on_output=close)
        self.assertIn("permission: no", outcome.text)
        self.assertEqual(self.run_cell("say fine"), "fine")


if __name__ == "__main__":
    unittest.main()
