"""Questions: answered by the host when it can, refused at once when it cannot."""

import unittest

from host import RunnerTest, brief, is_message, plain


class Refused(RunnerTest):
    def test_questions_nobody_can_answer_are_refused_at_once(self):
        for code in (
            "input('name? ')",
            "from getpass import getpass; getpass()",
            "breakpoint()",
            "import pdb; pdb.set_trace()",
            "import pdb\npdb.run('1 + 1')",
        ):
            with self.subTest(code):
                events = brief(self.host.run(code))
                self.assertEqual(events[-1][:2], ("error", "EOFError"), events)
                self.assertIn("nobody to answer", events[-1][2])
        self.check("1", plain("1"))

    def test_the_debugger_leaves_no_trace_function_behind(self):
        self.host.run("import pdb, sys; pdb.set_trace()")
        self.check("sys.gettrace()")


class Answered(RunnerTest):
    def ask(self, code, *answers, **reply):
        host = self.host
        cell = host.start(code, allow_stdin=True)
        asked = []
        for answer in answers:
            question = host.wait_for(lambda event: is_message(event, "input") and event not in asked)
            asked.append(question)
            host.send(type="input_reply", id=cell, **({"value": answer} if answer is not None else reply))
        return asked, brief(host.finish(cell))

    def test_the_host_answers(self):
        asked, events = self.ask("print('a'); name = input('name? ')\nprint('b')\nname", "Ada ü")
        self.assertEqual([(q["prompt"], q["password"]) for q in asked], [("name? ", False)])
        self.assertEqual(events, [("stdout", "a\n"), ("input", "name? "), ("stdout", "b\n"), plain("'Ada ü'")])

    def test_a_password(self):
        asked, events = self.ask("import getpass\ngetpass.getpass('secret: ')", "s")
        self.assertEqual([(q["prompt"], q["password"]) for q in asked], [("secret: ", True)])
        self.assertEqual(events[-1], plain("'s'"))

    def test_a_host_that_declines_raises_in_the_cell(self):
        _, events = self.ask("input()", None, error="nobody is there")
        self.assertEqual(events[-1], ("error", "EOFError", "nobody is there"))

    def test_the_debugger_can_be_used(self):
        asked, events = self.ask("x = 41\nbreakpoint()\nx + 1", "p x", "c")
        self.assertEqual([question["prompt"] for question in asked], ["(Pdb) ", "(Pdb) "])
        self.assertIn("41\n", "".join(event[1] for event in events if event[0] == "stdout"))
        self.assertEqual(events[-1], plain("42"))

    def test_requests_that_come_meanwhile_wait(self):
        host = self.host
        cell = host.start("input()", allow_stdin=True)
        host.wait_for(lambda event: is_message(event, "input"))
        host.send(type="ping", id="p")
        later = host.start("2")
        host.send(type="input_reply", id=cell, value="x")
        host.wait_for(lambda event: is_message(event, "done") and event["id"] == later)
        self.assertEqual([told for told in brief(host.events) if told[0] == "result"], [plain("'x'"), plain("2")])
        order = [
            event["type"] for event in host.events if isinstance(event, dict) and event.get("id") in (cell, "p", later)
        ]
        self.assertEqual(order, ["started", "input", "result", "done", "reply", "started", "result", "done"])

    def test_a_question_can_be_interrupted_and_its_late_answer_is_dropped(self):
        host = self.host
        cell = host.start("input()", allow_stdin=True)
        host.wait_for(lambda event: is_message(event, "input"))
        host.interrupt()
        self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")
        host.send(type="input_reply", id=cell, value="late")
        self.check("1", plain("1"))


if __name__ == "__main__":
    unittest.main()
