"""SIGINT: stops what runs, keeps the kernel and its state, and never tears a frame."""

import os
import signal
import unittest

from host import RunnerTest, brief, is_message, plain


class Interrupts(RunnerTest):
    def stop(self, code, ready="ready\n"):
        """Runs a cell that prints `ready`, interrupts it, and returns what it said afterwards."""
        host = self.host
        cell = host.start(code)
        host.wait_for_text(ready)
        host.interrupt()
        events = host.finish(cell)
        self.assertEqual(events[-1]["status"], "interrupted", events)
        self.assertEqual(events[-2]["ename"], "KeyboardInterrupt", events)
        return events

    def test_everything_a_cell_can_be_busy_with_is_stopped_and_state_kept(self):
        self.host.run("x = 42")
        for busy in (
            "while True: pass",
            "import time; time.sleep(600)",
            "import subprocess; subprocess.run(['sleep', '600'])",
            "import asyncio; await asyncio.sleep(600)",
            "import threading; threading.Event().wait()",
            "import os; os.read(os.pipe()[0], 1)",
            "!sleep 600",
            "bash('sleep 600')",
            "sum(i for i in range(10**12))",
            "import asyncio\nasync def spin():\n  while True: pass\nawait spin()",
            "import asyncio\nasync def spin():\n  while True: await asyncio.sleep(0)\nawait spin()",
        ):
            with self.subTest(busy):
                self.stop("print('ready', flush=True)\n" + busy)
                self.check("x", plain("42"))

    configure = {"prelude": True}

    def test_one_that_comes_just_before_a_call_blocks_stops_it(self):
        # `raise` returns to C code that sleeps at once: Python looks for signals only after the sleep.
        cell = self.host.start(
            "import ctypes, functools, operator, time\n"
            "calls = functools.partial(ctypes.CDLL(None)['raise'], 2), functools.partial(time.sleep, 600)\n"
            "list(map(operator.methodcaller('__call__'), calls))"
        )
        self.assertEqual(self.host.finish(cell)[-1]["status"], "interrupted")
        self.check("calls[1].args", plain("(600,)"))

    def test_the_traceback_shows_where(self):
        events = self.stop("def work():\n  while True: print('ready', flush=True)\n\nwork()")
        self.assertEqual(events[-2]["line"], 2)
        self.assertEqual(
            [line for line in events[-2]["traceback"] if not line.strip(" ^~") == ""],
            [
                "Traceback (most recent call last):",
                '  File "<cell 1>", line 4, in <module>',
                "    work()",
                '  File "<cell 1>", line 2, in work',
                "    while True: print('ready', flush=True)",
                "KeyboardInterrupt",
            ],
        )

    def test_a_cell_that_catches_it_ends_well(self):
        host = self.host
        cell = host.start(
            "try:\n  print('ready', flush=True)\n  while True: pass\nexcept KeyboardInterrupt: print('caught')"
        )
        host.wait_for_text("ready\n")
        host.interrupt()
        events = host.finish(cell)
        self.assertEqual(events[-1]["status"], "ok")
        self.assertIn("caught", events[-2][1])

    def test_between_cells_it_is_ignored(self):
        host = self.host
        for i in range(50):
            host.interrupt()
            self.assertEqual(brief(host.run(str(i))), [plain(str(i))])

    def test_while_idle_it_is_ignored_also_with_background_tasks(self):
        host = self.host
        host.run(
            "import asyncio\nasync def tick():\n  while True: await asyncio.sleep(0.001)\ntask = asyncio.create_task(tick())"
        )
        for _ in range(200):
            host.interrupt()
            host.ask(type="ping")
        self.check("task.done()", plain("False"))

    def test_a_background_task_that_lets_no_cell_begin_is_interrupted(self):
        host = self.host
        host.start(
            "import asyncio\nasync def hog():\n  print('hogging', flush=True)\n  while True: pass\n"
            "task = asyncio.create_task(hog())"
        )
        host.wait_for_text("hogging\n")
        cell = host.start("task.done()")
        host.interrupt()
        events = brief(host.finish(cell))
        self.assertEqual(events[-1], plain("True"))
        self.assertIn("KeyboardInterrupt", events[-2][1])

    def test_a_cell_that_was_withdrawn_meanwhile_does_not_begin(self):
        host = self.host
        host.start(
            "import asyncio\nx = 1\nasync def hog():\n  print('hogging', flush=True)\n  while True: pass\n"
            "task = asyncio.create_task(hog())"
        )
        host.wait_for_text("hogging\n")
        cell = host.start("x = 2")
        host.send_bytes(b'{"type":"withdraw","id":%d}\n' % cell)
        host.interrupt()
        self.assertEqual(brief(host.finish(cell))[-1], ("interrupted",))
        self.check("x, task.done()", plain("(1, True)"))
        host.send_bytes(b'{"type":"withdraw","id":7}\n')
        self.check("x", plain("1"))

    def test_a_main_thread_that_lets_a_message_wait_is_told_of(self):
        host = self.host
        # Not run to its end: the task may print before that.
        host.start(
            "import asyncio, time\nasync def hog():\n  print('hogging', flush=True)\n  time.sleep(600)\n"
            "task = asyncio.create_task(hog())"
        )
        host.wait_for_text("hogging\n")
        cell = host.start("1")
        told = host.wait_for(lambda event: is_message(event, "busy"))
        self.assertEqual(told["at"], "<cell 1>, line 4, in hog")
        host.interrupt()
        host.finish(cell)

    def test_frames_are_never_torn(self):
        host = self.host
        cell = host.start(
            "import sys\nn = 0\nwhile n < 60:\n  try:\n    while True:\n"
            "      display('x' * 20000); print('o'); print('e', file=sys.stderr)\n"
            "  except KeyboardInterrupt: n += 1\nn"
        )
        # Every frame is parsed and every mark checked for its order as they come in.
        while not any(is_message(event, "done") for event in host.events):
            host.events = [event for event in host.events if is_message(event, "result")]
            try:
                os.killpg(host.process.pid, signal.SIGINT)
            except ProcessLookupError:
                self.fail("the runner is gone")
            host.wait_for(lambda event: True)
        # An interrupt may also have come between the loops, and ended the cell.
        self.assertIn(brief(host.finish(cell))[-1], [plain("60"), ("interrupted",)])
        self.check("1", plain("1"))

    def test_one_that_comes_with_the_start_is_heeded_and_spares_the_next_cell(self):
        host = self.host
        for i in range(100):
            cell = host.start("while True: display(%d)" % i)
            host.wait_for(lambda event: is_message(event, "started") and event["id"] == cell)  # noqa: B023
            host.interrupt()
            self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")
            self.check("display(%d)" % i, ("display", {"text/plain": str(i)}))

    def test_one_that_is_sent_again_late_does_not_swallow_the_next_cells_own(self):
        host = self.host
        host.run(
            "import random, time, types\nfrom cellwright_runner import interrupts\nreal = interrupts._signal\n"
            "def late(*where):\n  time.sleep(random.uniform(0.001, 0.006)); real.pthread_kill(*where)\n"
            "interrupts._signal = types.SimpleNamespace(**dict(vars(real), pthread_kill=late))"
        )
        for i in range(200):
            cell = host.start("while True: display(%d)" % i)
            host.wait_for(lambda event: is_message(event, "started") and event["id"] == cell)  # noqa: B023
            host.interrupt()
            self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")

    def test_one_that_comes_where_exceptions_are_dropped_stops_the_cell_all_the_same(self):
        host = self.host
        waits = "  def wait(self, *_):\n    print('ready', flush=True)\n    while True: pass\n"
        for code in (
            "class Finalized:\n" + waits + "  __del__ = wait\nFinalized()\nwhile True: pass",
            "import weakref\nclass Watched:\n" + waits + "it = Watched()\n"
            "watch = weakref.ref(it, Watched().wait)\ndel it\nwhile True: pass",
        ):
            cell = host.start(code)
            host.wait_for_text("ready\n")
            host.interrupt()
            self.assertEqual(
                brief(host.finish(cell)), [("stdout", "ready\n"), ("error", "KeyboardInterrupt", ""), ("interrupted",)]
            )
            self.check("1", plain("1"))

    def test_background_tasks_outlive_an_interrupted_await(self):
        self.host.run(
            "import asyncio\nticks = 0\nasync def tick():\n  global ticks\n  while True:\n    await asyncio.sleep(0.001); ticks += 1\n"
            "task = asyncio.create_task(tick())"
        )
        self.stop("print('ready', flush=True)\nawait asyncio.sleep(600)")
        self.check("before = ticks\nwhile ticks < before + 3: await asyncio.sleep(0.001)\ntask.done()", plain("False"))

    def test_a_task_that_ignores_its_cancelling_is_stopped_the_second_time(self):
        host = self.host
        cell = host.start(
            "import asyncio\nasync def stubborn():\n  while True:\n    try: await asyncio.sleep(600)\n"
            "    except asyncio.CancelledError:\n      print('not yet', flush=True)\n      while True: pass\n"
            "asyncio.get_running_loop().call_later(0.01, lambda: print('ready', flush=True))\nawait stubborn()"
        )
        host.wait_for_text("ready\n")
        host.interrupt()
        host.wait_for_text("not yet\n")
        host.interrupt()
        self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")
        self.check("await asyncio.sleep(0, 1)", plain("1"))

    def test_an_endless_repr_is_stopped(self):
        self.stop(
            "class Endless:\n  def __repr__(self):\n    print('ready', flush=True)\n    while True: pass\nEndless()"
        )

    def test_a_second_one_while_the_first_is_reported_leaves_the_name_of_the_error(self):
        """The report of the first runs code of the user's: the message of the exception that was handled."""
        host = self.host
        cell = host.start(
            "import time\nclass Slow(Exception):\n  def __str__(self):\n    print('reported', flush=True)\n"
            "    time.sleep(600)\ntry: raise Slow\nexcept Slow:\n  print('ready', flush=True)\n  time.sleep(600)"
        )
        host.wait_for_text("ready\n")
        host.interrupt()
        host.wait_for_text("reported\n")
        host.interrupt()
        error, done = host.finish(cell)[-2:]
        self.assertEqual(done["status"], "interrupted")
        self.assertEqual((error["ename"], error["evalue"]), ("KeyboardInterrupt", ""))
        self.assertEqual(error["traceback"][-1], "KeyboardInterrupt")

    def test_children_of_a_stopped_command_are_gone(self):
        self.stop("!sh -c 'echo $$; sleep 600 & echo ready; wait'")
        self.check(
            "import subprocess\n[line for line in subprocess.run(['ps', '-o', 'args=', '-g', str(__import__('os').getpgrp())], "
            "stdout=subprocess.PIPE).stdout.decode().splitlines() if line.startswith('sleep')]",
            plain("[]"),
        )

    def test_a_handler_of_the_users_lasts_for_its_cell(self):
        self.host.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); None")
        self.stop("print('ready', flush=True)\nwhile True: pass")

    def test_user_handlers_of_other_signals_work(self):
        self.check(
            "import signal, os\nsignal.signal(signal.SIGUSR1, lambda *_: print('got it'))\nos.kill(os.getpid(), signal.SIGUSR1)",
            ("stdout", "got it\n"),
        )


if __name__ == "__main__":
    unittest.main()
