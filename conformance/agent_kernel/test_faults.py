"""Whatever an agent does wrong, the cell tells the truth and the kernel works for the next one."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import unittest
import uuid
from pathlib import Path
from unittest import mock

from jupyter_client.session import Session
from kernels import FAULT_AGENT, FAULTS, TIMEOUT, alive, collect, execute, install, running, wait_until

# Starts a kernel as a server would, with a turn in it, and stays.
STARTER = """
import os, sys, time
from kernels import execute, install, running
with running(sys.argv[1]) as (manager, client):
    print(manager.provisioner.process.pid, execute(client, "pid").text.strip(), flush=True)
    client.execute("hang begun")
    time.sleep(600)
"""


def interrupting(manager):
    """Interrupts the kernel when the turn has begun."""
    told = []

    def seen(message):
        if not told and "begun" in str(message["content"].get("data")):
            told.append(message)
            manager.interrupt_kernel()

    return seen


def collect_reply(client, msg_id: str) -> dict:
    """The reply to a cell, whatever else is answered before it."""
    while True:
        reply = client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"]["msg_id"] == msg_id:
            return reply["content"]


class Faults(unittest.TestCase):
    def works(self, client) -> None:
        outcome = execute(client, "say fine")
        self.assertEqual((outcome.status, outcome.text.strip()), ("ok", "fine"), outcome.error)

    def test_a_line_of_twenty_megabytes(self):
        with running() as (_, client):
            outcome = execute(client, "line 20")
            self.assertEqual(outcome.status, "ok")
            self.assertEqual(outcome.text.count("y"), 20_000_000)
            self.assertIn("y end", outcome.text)
            self.works(client)

    def test_an_interrupt_while_a_long_answer_is_printed(self):
        # Answers to a program behind a server are paced; one that started the kernel itself gets them at once.
        ids = mock.patch.object(Session, "msg_id", property(lambda session: uuid.uuid4().hex))
        with running() as (manager, client), ids:
            told = []

            def interrupt(message):
                if not told and "y" in str(message["content"].get("text")):
                    told.append(message)
                    manager.interrupt_kernel()

            outcome = execute(client, "%agent render stream\nline 20", on_output=interrupt)
            self.assertEqual(outcome.reply["ename"], "Interrupted")
            self.assertIn("bytes are not shown", outcome.text)
            self.assertLess(outcome.text.count("y"), 20_000_000)
            execute(client, "%agent render auto")
            self.works(client)

    def test_a_signal_interrupts_the_turn(self):
        with running() as (manager, client):
            told = []

            def interrupt(message):
                if not told and "waiting" in str(message["content"]):
                    told.append(message)
                    manager.provisioner.process.send_signal(signal.SIGINT)

            outcome = execute(client, "say waiting\nwait", on_output=interrupt)
            self.assertEqual(outcome.reply["ename"], "Interrupted")
            self.works(client)

    def test_garbage_and_unknown_messages(self):
        with running() as (_, client):
            outcome = execute(client, "garbage\nunknown\nduplicate\nsay after")
            self.assertIn("unknown method: -32601", outcome.text)
            self.assertIn("after", outcome.text)
            self.works(client)

    def test_three_megabytes_of_stderr(self):
        with running() as (_, client):
            self.assertEqual(execute(client, "stderr 3\nsay done").text.strip(), "done")
            self.works(client)

    def test_a_crash_in_the_middle_of_a_turn(self):
        with running() as (_, client):
            outcome = execute(client, "say before\ncrash 3")
            self.assertEqual((outcome.status, outcome.reply["ename"]), ("error", "AgentEnded"))
            self.assertIn("exited with code 3", outcome.error)
            self.assertIn("about to crash", outcome.error)
            self.assertIn("before", outcome.text)
            outcome = execute(client, "say again")
            self.assertIn("again", outcome.text)
            self.assertIn("started again", outcome.text)

    def test_an_agent_that_never_answers_a_cancel(self):
        with running() as (manager, client):
            outcome = execute(client, "hang begun", on_output=interrupting(manager))
            self.assertEqual((outcome.status, outcome.reply["ename"]), ("error", "Interrupted"))
            self.assertIn("did not stop", outcome.text)
            outcome = execute(client, "say fine")
            self.assertIn("fine", outcome.text)

    def test_an_interrupted_turn(self):
        with running() as (manager, client):
            outcome = execute(client, "say begun\nwait", on_output=interrupting(manager))
            self.assertEqual(outcome.reply["ename"], "Interrupted")
            self.assertNotIn("did not stop", outcome.text)
            self.works(client)

    def heard(self, client, msg_id: str, said: str) -> None:
        """Waits until a cell says something."""
        while True:
            message = client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == msg_id and said in str(message["content"]):
                return

    def interrupt_now(self, client) -> None:
        """As soon as possible: `interrupt_kernel` takes its time."""
        client.control_channel.send(client.session.msg("interrupt_request", {}))
        client.get_control_msg(timeout=TIMEOUT)

    def test_an_interrupt_right_at_the_beginning(self):
        with running() as (_, client):
            self.works(client)
            for _ in range(50):
                msg_id = client.execute("wait", allow_stdin=False)
                self.heard(client, msg_id, "busy")
                self.interrupt_now(client)
                self.assertEqual(collect_reply(client, msg_id)["ename"], "Interrupted")
            self.works(client)

    def test_a_turn_that_was_just_left_in_the_background_is_interrupted(self):
        with running() as (_, client):
            self.works(client)
            for _ in range(50):
                msg_id = client.execute("%%agent --background\nwait", allow_stdin=False)
                collect_reply(client, msg_id)
                self.interrupt_now(client)
                self.heard(client, msg_id, "interrupted")
            self.works(client)

    def behind(self, client, code: str) -> str:
        """Begins a turn in the background, and waits until it is at work."""
        msg_id = client.execute(code, allow_stdin=False)
        while "begun" not in str(client.get_iopub_msg(timeout=TIMEOUT)["content"].get("data")):
            pass
        collect_reply(client, msg_id)
        return msg_id

    def test_a_prompt_behind_another_turn_of_its_session_is_interrupted(self):
        with running() as (manager, client):
            agent = execute(client, "remember this\npid").text
            background = self.behind(client, "%%agent --background\nsay begun\nwait")
            msg_id = client.execute("say never", allow_stdin=False)
            while client.get_iopub_msg(timeout=TIMEOUT)["header"]["msg_type"] != "execute_input":
                pass
            manager.interrupt_kernel()
            self.assertEqual(collect_reply(client, msg_id)["ename"], "Interrupted")
            # The one before it goes on, until it is all that is left to interrupt.
            manager.interrupt_kernel()
            while True:
                message = client.get_iopub_msg(timeout=TIMEOUT)
                self.assertNotIn("never", str(message["content"].get("data")))
                if "interrupted" in str(message["content"].get("data")):
                    self.assertEqual(message["parent_header"]["msg_id"], background)
                    break
            # Neither interrupt cost the agent or what it knows.
            self.assertEqual(execute(client, "recall\npid").text, f"this\n{agent}")

    def test_a_session_is_closed_while_its_turn_goes_on(self):
        with running() as (_, client):
            self.behind(client, "%session new x\n%%agent x --background\nsay begun\nwait")
            self.assertIn("was ended", execute(client, "%session close x").text)
            self.behind(client, "%%agent --background\nsay begun\nwait")
            self.assertIn("was closed", execute(client, "%session close").text)
            self.works(client)

    def test_a_deleted_subshell_takes_its_turn_with_it(self):
        with running() as (_, client):
            session, control = client.session, client.control_channel

            def ask(kind, **content):
                control.send(session.msg(kind, content))
                return client.get_control_msg(timeout=TIMEOUT)["content"]

            execute(client, "remember this")
            subshell = ask("create_subshell_request")["subshell_id"]
            cell = {"code": "say begun\nwait", "silent": False, "allow_stdin": False}
            message = session.msg("execute_request", cell)
            message["header"]["subshell_id"] = subshell
            client.shell_channel.send(message)
            while "begun" not in str(client.get_iopub_msg(timeout=TIMEOUT)["content"].get("data")):
                pass
            self.assertEqual(ask("delete_subshell_request", subshell_id=subshell)["status"], "ok")
            self.assertIn("this", execute(client, "recall").text)

    def test_turns_of_two_subshells_go_on_beside_each_other(self):
        with running() as (manager, client):
            execute(client, "%session new x\n%session use main")
            session, control = client.session, client.control_channel
            control.send(session.msg("create_subshell_request", {}))
            subshell = client.get_control_msg(timeout=TIMEOUT)["content"]["subshell_id"]
            cell = {"code": "%%agent x\nsay begun\nwait", "silent": False, "allow_stdin": False}
            message = session.msg("execute_request", cell)
            message["header"]["subshell_id"] = subshell
            client.shell_channel.send(message)
            while "begun" not in str(client.get_iopub_msg(timeout=TIMEOUT)["content"].get("data")):
                pass
            self.works(client)
            manager.interrupt_kernel()
            reply = collect_reply(client, message["header"]["msg_id"])
            self.assertEqual(reply["ename"], "Interrupted")

    def test_updates_after_the_response_reach_their_own_cell(self):
        with running() as (_, client):
            # On a busy machine it may be in time.
            first = client.execute("late one", allow_stdin=False)
            while "one" in collect(client, first).text:
                first = client.execute("late one", allow_stdin=False)
            while True:
                message = client.get_iopub_msg(timeout=60)
                if "one" in str(message["content"].get("data")):
                    self.assertEqual(message["parent_header"]["msg_id"], first)
                    break
            # Now it is known that this agent does so: the next cell waits for silence.
            second = client.execute("late two", allow_stdin=False)
            third = client.execute("sleep 0.2\nsay three", allow_stdin=False)
            parents = {}
            while "three" not in parents:
                message = client.get_iopub_msg(timeout=60)
                for word in ("two", "three"):
                    if word in str(message["content"].get("data")):
                        parents[word] = message["parent_header"]["msg_id"]
            self.assertEqual(parents, {"two": second, "three": third})

    def test_a_permission_for_an_unknown_tool_call(self):
        with running() as (_, client):
            # Nobody to ask: refused, not hanging.
            self.assertIn("permission: no", execute(client, "permission").text)
            typed = execute(client, "permission", allow_stdin=True, answer=lambda prompt: "y")
            self.assertIn("permission: once", typed.text)
            self.works(client)
        install("auto", *FAULT_AGENT, options=("--permissions", "auto"))
        with running("auto") as (_, client):
            self.assertIn("permission: once", execute(client, "permission").text)

    def test_a_slow_start_with_a_banner(self):
        install("slow", *FAULT_AGENT, "--slow", "0.5", "--banner")
        with running("slow") as (_, client):
            self.works(client)

    def test_a_program_that_is_not_there(self):
        install("missing", "/no/such/agent")
        with running("missing") as (_, client):
            outcome = execute(client, "hello")
            self.assertEqual(outcome.reply["ename"], "AgentNotFound")
            self.assertIn("/no/such/agent", outcome.error)
            self.assertNotIn("Traceback", outcome.error)

    def test_an_agent_that_wants_its_user_to_sign_in(self):
        install("auth", *FAULT_AGENT, "--auth")
        with running("auth") as (_, client):
            outcome = execute(client, "hello")
            self.assertEqual(outcome.reply["ename"], "AuthRequired")
            self.assertIn("%agent login login", outcome.error)
            self.assertIn("--login", outcome.error)

    def test_an_agent_that_can_not_start_says_why(self):
        install("unlicensed", *FAULT_AGENT, "--no-initialize")
        with running("unlicensed") as (_, client):
            self.assertIn("no license found", execute(client, "hello").error)
            self.assertIn("no license found", execute(client, "%agent log").text)

    def test_the_log_of_an_agent_that_never_begins_is_shown(self):
        install("mute", *FAULT_AGENT, "--mute")
        with running("mute") as (manager, client):
            control = client.control_channel
            control.send(client.session.msg("create_subshell_request", {}))
            subshell = client.get_control_msg(timeout=TIMEOUT)["content"]["subshell_id"]
            waits = client.execute("hello", allow_stdin=False)

            def log() -> str:
                cell = {"code": "%agent log", "silent": False, "allow_stdin": False}
                message = client.session.msg("execute_request", cell)
                message["header"]["subshell_id"] = subshell
                client.shell_channel.send(message)
                return collect(client, message["header"]["msg_id"]).text

            wait_until(lambda: "loading a very large model" in log(), "the log is shown")
            manager.interrupt_kernel()
            self.assertEqual(collect_reply(client, waits)["ename"], "Interrupted")
            waits = client.execute("%session list", allow_stdin=False)
            while client.get_iopub_msg(timeout=TIMEOUT)["content"].get("code") != "%session list":
                pass
            manager.interrupt_kernel()
            self.assertEqual(collect_reply(client, waits)["ename"], "Interrupted")

    def test_an_agent_that_ends_while_its_user_is_asked(self):
        with running() as (_, client):
            agent = int(execute(client, "pid").text)
            msg_id = client.execute("abandon", allow_stdin=True)
            client.get_stdin_msg(timeout=TIMEOUT)
            wait_until(lambda: not alive(agent), "the agent ends")
            # Clients run nothing else until they have their answer, so the cell waits for it as well.
            with self.assertRaises(queue.Empty):
                client.get_shell_msg(timeout=1)
            client.input("y")
            self.assertEqual(collect(client, msg_id).reply["ename"], "AgentEnded")
            outcome = execute(client, "say fine")
            self.assertIn("fine", outcome.text)

    def busy(self, folder: Path, client) -> list[int]:
        """A command, an agent and a turn of it that would go on for long."""
        marker = folder / "pid"
        command = f"echo $$ > {marker}.new; mv {marker}.new {marker}; sleep 600"
        agent = int(execute(client, f"start {command}\npid").text.split()[-1])
        wait_until(marker.exists, "the command runs")
        msg_id = client.execute("hang begun", allow_stdin=False)
        while "begun" not in str(client.get_iopub_msg(timeout=TIMEOUT)["content"].get("data")):
            pass
        self.assertTrue(msg_id)
        return [agent, int(marker.read_text())]

    def test_nothing_is_left_when_the_kernel_ends(self):
        install("auto", *FAULT_AGENT, options=("--permissions", "auto"))
        for way in (signal.SIGKILL, signal.SIGTERM, "shutdown_request"):
            with (
                self.subTest(way),
                tempfile.TemporaryDirectory() as folder,
                running("auto") as (manager, client),
            ):
                left = self.busy(Path(folder), client)
                kernel = manager.provisioner.process
                if way == "shutdown_request":
                    client.shutdown()
                    reply = client.get_control_msg(timeout=TIMEOUT)
                    self.assertEqual(reply["header"]["msg_type"], "shutdown_reply")
                else:
                    os.kill(kernel.pid, way)
                for pid in left:
                    wait_until(lambda pid=pid: not alive(pid), f"{pid} ends")
                wait_until(lambda kernel=kernel: kernel.poll() is not None, "the kernel ends")

    def test_a_turn_is_told_to_stop_when_the_kernel_ends(self):
        with running() as (_, client):
            msg_id = client.execute("say begun\nwait", allow_stdin=False, stop_on_error=False)
            behind = client.execute("say never", allow_stdin=False)
            while "begun" not in str(client.get_iopub_msg(timeout=TIMEOUT)["content"].get("data")):
                pass
            client.shutdown()
            replies = {}
            while len(replies) < 2:
                reply = client.get_shell_msg(timeout=TIMEOUT)
                replies[reply["parent_header"]["msg_id"]] = reply["content"].get("ename")
            self.assertEqual(replies[msg_id], "Interrupted")
            self.assertIn(behind, replies)

    def test_nothing_is_left_when_the_one_who_started_the_kernel_is_gone(self):
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, FAULTS],
            cwd=Path(__file__).parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(starter.stdout.close)
        left = [int(pid) for pid in starter.stdout.readline().split()]
        starter.kill()
        starter.wait()
        self.assertEqual(len(left), 2)
        for pid in left:
            wait_until(lambda pid=pid: not alive(pid), f"{pid} ends")


if __name__ == "__main__":
    unittest.main()
