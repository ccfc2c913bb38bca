"""An agent and a person share one kernel: an agent on the protocol's SDK calls our tools through its own MCP client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from kernels import CELLWRIGHT, alive, execute, install, running, wait_until

AGENT = install("tools", sys.executable, str(Path(__file__).with_name("tools_agent.py")))
HASTY = install("hasty", sys.executable, str(Path(__file__).with_name("tools_agent.py")), "omp-coding-agent")


class Tools(unittest.TestCase):
    agent = AGENT

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        environment = {**os.environ, "CELLWRIGHT_AGENT_TOOLS": "notebook"}
        self.manager, self.client = self.enterContext(
            running(self.agent, cwd=str(self.folder), env=environment)
        )

    def run_cell(self, code, **options):
        outcome = execute(self.client, code, **options)
        self.assertEqual(outcome.status, "ok", outcome.error)
        return outcome

    def streams(self, outcome):
        return [output["text"] for output in outcome.outputs if "text" in output]


class Shared(Tools):
    def test_code_of_the_person_and_of_the_agent_share_variables(self):
        self.run_cell("%%python\nx = 41")
        self.run_cell("%permissions allow run")
        for order in ("eval", "later", "quiet"):
            outcome = self.run_cell(f"{order} y = x + 1; print('sum', y); y")
            # Real outputs, in order with what the agent says; one card, also where the agent reports one of its own.
            self.assertEqual(self.streams(outcome), ["sum 42\n"])
            shown = [output["data"]["text/plain"] for output in outcome.outputs if "data" in output]
            cards = [text for text in shown if "y = x + 1" in text]
            self.assertEqual(len(cards), 1, shown)
            self.assertIn("done", cards[0])
            self.assertLess(shown.index(cards[0]), shown.index("42"))
            self.assertLess(
                shown.index("42"), next(at for at, text in enumerate(shown) if "answered" in text)
            )
            self.assertNotIn("echo", outcome.text)
        self.assertEqual(self.run_cell("%%python\ny").text, "42")

    def test_a_failing_cell_shows_its_traceback_and_not_as_an_error_of_the_cell(self):
        self.run_cell("%permissions allow run")
        outcome = self.run_cell("eval 1 / 0")
        self.assertIn("ZeroDivisionError", "".join(self.streams(outcome)))
        self.assertIn("failed: ", outcome.text)
        self.assertFalse([output for output in outcome.outputs if "ename" in output])

    def test_the_agent_knows_where_it_is_and_has_four_tools(self):
        text = self.run_cell("introduction").text
        self.assertIn("one live kernel", text)
        self.assertLess(len(text.split()), 400)
        self.assertNotIn("<cellwright>", self.run_cell("introduction").text)
        tools = {tool["name"]: tool for tool in json.loads(self.run_cell("tools").text)}
        self.assertEqual(set(tools), {"eval", "notebook", "kernel", "read"})
        self.assertFalse({"cwd", "session"} & set(tools["eval"]["input_schema"]["properties"]))
        self.assertEqual(tools["eval"]["annotations"]["destructive_hint"], False)
        self.run_cell("%permissions auto")

    def test_the_person_decides_with_the_whole_code(self):
        code = "z = 1; " + "z += 1; " * 200 + "print(z)"
        questions = []

        def decide(prompt):
            questions.append(prompt)
            return "n" if len(questions) == 1 else "y"

        refused = self.run_cell(f"eval {code}", allow_stdin=True, answer=decide)
        self.assertIn("failed: the person did not allow this", refused.text)
        self.assertIn(code, questions[0])
        allowed = self.run_cell(f"eval {code}", allow_stdin=True, answer=decide)
        self.assertIn("201\n", self.streams(allowed))
        self.assertEqual(len(questions), 2)
        self.run_cell("%permissions deny run")
        self.assertIn("did not allow", self.run_cell("eval z").text)

    def test_input_asks_the_person(self):
        self.run_cell("%permissions allow run")
        asked = []

        def answer(prompt):
            asked.append(prompt)
            return "Ada"

        outcome = self.run_cell(
            "eval name = input('Who? '); print('Hi', name)", allow_stdin=True, answer=answer
        )
        self.assertEqual(asked, ["Who? "])
        self.assertIn("Hi Ada\n", self.streams(outcome))

    def test_stop_interrupts_the_code_of_an_agent_that_does_not_tell_its_servers(self):
        self.run_cell("%permissions allow run")
        self.run_cell("%%python\nkept = 7\nimport os, time\npid = os.getpid()")
        seen = []

        def interrupt(message):
            if "begun" in message["content"].get("text", "") and not seen:
                seen.append(message)
                self.manager.interrupt_kernel()

        outcome = execute(
            self.client, "quiet print('begun', flush=True); time.sleep(600)", on_output=interrupt
        )
        self.assertEqual(outcome.reply["ename"], "Interrupted")
        self.assertEqual(self.run_cell("%%python\nkept").text, "7")

    def test_clear_output_of_the_agent_leaves_its_words(self):
        self.run_cell("%permissions allow run")
        code = "from IPython.display import clear_output; display('one'); clear_output(); display('two')"
        outcome = self.run_cell(f"eval {code}")
        self.assertIn("'two'", outcome.text)
        self.assertNotIn("'one'\n", outcome.text)
        self.assertIn("clear_output", outcome.text)

    def test_two_hundred_cells_stay_in_their_places(self):
        self.run_cell("%permissions allow run\nquiet total = 0")
        for number in range(100):
            outcome = self.run_cell(f"%%python\ntotal += 1; print('person', {number})")
            self.assertEqual(outcome.text, f"person {number}\n")
            outcome = self.run_cell(f"quiet total += 1; print('agent', {number})")
            self.assertEqual(self.streams(outcome), [f"agent {number}\n"])
        self.assertEqual(self.run_cell("%%python\ntotal").text, "200")


class Ends(Tools):
    def test_only_the_token_of_the_session_opens_the_door(self):
        [server] = json.loads(self.run_cell("servers").text)
        environment = {variable["name"]: variable["value"] for variable in server["env"]}
        socket = Path(environment["CELLWRIGHT_ATTACH"])
        self.assertEqual(socket.parent.stat().st_mode & 0o777, 0o700)
        for token, status in [("wrong", 1), ("x" * 500, 1), (environment["CELLWRIGHT_ATTACH_TOKEN"], 0)]:
            attached = subprocess.run(
                [CELLWRIGHT, "mcp", "--attach"],
                env={**os.environ, **environment, "CELLWRIGHT_ATTACH_TOKEN": token},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(attached.returncode, status, attached.stderr)
            if status:
                self.assertIn("the notebook does not know this session", attached.stderr)

    def test_nothing_survives_a_kernel_that_is_killed(self):
        agent = int(self.run_cell("pids").text.strip())
        python = int(self.run_cell("%%python\nimport os\nos.getpid()").text)
        children = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
        pids = [agent, python, *map(int, children)]
        self.assertGreaterEqual(len(pids), 3)
        os.kill(self.manager.provisioner.process.pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in pids), "the end of agent, proxy and companion")


class Long(Tools):
    agent = HASTY

    def test_a_call_answers_before_its_client_gives_up_and_its_card_goes_on(self):
        self.run_cell("%permissions allow run")
        # This client gives up after 30 seconds.
        outcome = self.run_cell("eval import time; time.sleep(27); print('late')")
        self.assertIn("continues in the background", outcome.text)
        self.assertEqual(self.run_cell("%%python\n'after'").text.splitlines()[-1], "'after'")


if __name__ == "__main__":
    unittest.main()
