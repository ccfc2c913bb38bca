"""The protocol itself: handshake, requests, what is not understood, and the end."""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from host import FOLDER, NONCE, RUNNER, Ended, Host, RunnerTest, is_message, joined, plain

FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "protocol.ndjson")


def examples(side):
    with open(FIXTURE, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line["message"] for line in lines if line["from"] == side]


class Handshake(RunnerTest):
    def test_the_runner_says_who_it_is(self):
        host = self.launch()
        host.send(type="hello", protocol=1, nonce=NONCE)
        ready = host.wait_for(lambda event: is_message(event, "ready"))
        self.assertEqual(ready["python"], "%d.%d.%d" % sys.version_info[:3])
        self.assertEqual((ready["protocol"], ready["pid"]), (1, host.process.pid))
        self.assertEqual(os.path.realpath(ready["executable"]), os.path.realpath(sys.executable))

    def test_everything_may_be_sent_before_the_process_is_up(self):
        host = self.launch()
        host.send(type="hello", protocol=1, nonce=NONCE)
        host.send(type="configure", env={"A": "1"})
        events = host.run("import os; print(os.environ['A'])")
        self.assertIn(("stdout", "1\n"), events)

    def test_a_python_that_is_too_old_says_so(self):
        pretend = "import sys, runpy; sys.version_info = (3, 7, 0); runpy.run_path(%r)" % RUNNER
        read, write = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", "import os; os.dup2(%d, 4); %s" % (write, pretend)], pass_fds=(write,)
        )
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            message = json.loads(pipe.read())
        self.assertEqual(process.wait(), 1)
        self.assertEqual(message["type"], "ready")
        self.assertIn("is Python 3.7; Cellwright needs Python 3.8 or newer", message["error"])

    def test_the_script_parses_on_old_pythons(self):
        with open(RUNNER, encoding="utf-8") as file:
            source = file.read()
        ast.parse(source, feature_version=(3, 4))
        self.assertNotIn('f"', source)


class Messages(RunnerTest):
    def test_every_message_of_a_host_is_understood(self):
        host = self.launch()
        for message in examples("host"):
            if message["type"] == "configure":
                message.update(cwd=FOLDER, modules=[], path=[])
            if message["type"] != "shutdown":
                host.send(**message)
        for question in ("q3", "q4"):  # variables are listed beside the rest, in no order with it
            host.wait_for(lambda event, id=question: is_message(event, "reply") and event["id"] == id)
        self.assertEqual([event for event in host.events if is_message(event, "warning")], [])
        replies = [event["id"] for event in host.events if is_message(event, "reply")]
        self.assertEqual(sorted(replies), ["q1", "q2", "q3", "q4"])

    def test_the_runner_sends_nothing_the_fixture_does_not_show(self):
        known = {}
        for message in examples("runner"):
            known.setdefault(message["type"], set()).update(message)
        host = self.host
        seen = list(host.events)
        seen += host.run("from getpass import getpass\nprint(1); display(2, display_id='d'); clear_output(); 3")
        seen += host.run("1/0")
        host.ask(type="variables", limit=5)
        host.ask(type="complete", code="pri", cursor=3)
        host.ask(type="inspect", code="len", cursor=3, detail=0)
        host.ask(type="ping")
        host.send(type="dance")
        host.wait_for(lambda event: is_message(event, "warning"))
        seen += host.events
        for event in seen:
            if isinstance(event, dict) and event["type"] != "started":  # a mark, not a message
                self.assertLessEqual(set(event), known.get(event["type"], set()), event)

    def test_what_is_not_understood_is_reported_and_skipped(self):
        host = self.host
        host.send_bytes(b"{nonsense\n[1]\n\xff\n")
        host.send(type="dance")
        host.send(type="execute")  # without its fields
        self.check(
            "1",
            ("warning", "a message from the host could not be read: Expecting property name enclosed in double quotes: "
             "line 1 column 2 (char 1)"),
            ("warning", "a message from the host could not be read: not an object"),
            ("warning", "a message from the host could not be read: 'utf-8' codec can't decode byte 0xff in position 0: "
             "invalid start byte"),
            ("warning", "unknown message type 'dance'"),
            ("warning", "`execute` failed: KeyError: 'id'"),
            plain("1"),
        )  # fmt: skip

    def test_ids_come_back_as_they_were_given(self):
        host = self.host
        host.send(type="execute", id="ä", code="1")
        self.assertEqual(host.wait_for(lambda event: is_message(event, "done"))["id"], "ä")

    def test_a_message_of_many_megabytes_arrives_both_ways(self):
        size = 20 << 20
        events = self.host.run("text = %r\nlen(text)\ntext" % ("x" * size))
        results = [event for event in events if is_message(event, "result")]
        self.assertEqual(len(results[0]["data"]["text/plain"]), size + 2)

    def test_lone_surrogates_and_infinite_numbers_do_not_break_a_frame(self):
        self.check(
            r"""display({"application/json": ["\ud800", float("inf")], "text/plain": "\ud83d\ude00"}, raw=True)""",
            ("display", {"application/json": ["\ufffd", None], "text/plain": "\U0001f600"}),
        )

    def test_counts_grow_by_stored_cells_only(self):
        host = self.host
        counts = []
        for options in ({}, {"store_history": False}, {"silent": True}, {}):
            counts.append(host.run("pass", **options)[-1]["count"])
        self.assertEqual(counts, [1, 1, 1, 2])

    def test_a_silent_cell_shows_no_result(self):
        self.check("x = 1; print(x); x", ("stdout", "1\n"), silent=True)
        self.check("x", plain("1"))


class End(RunnerTest):
    def test_shutdown_runs_exit_functions(self):
        host = self.host
        host.run("import atexit; atexit.register(print, 'bye')")
        host.send(type="shutdown")
        with self.assertRaises(Ended):
            host.wait_for(lambda event: False)
        self.assertEqual(host.events, [("stdout", "bye\n")])
        self.assertEqual(host.process.wait(), 0)

    def last_words(self, host):
        """What is printed from `shutdown` to the end."""
        host.events.clear()
        host.send(type="shutdown")
        with self.assertRaises(Ended):
            host.wait_for(lambda event: False)
        self.assertEqual(host.process.wait(), 0)
        return joined(host.events)

    def test_files_left_open_are_written_out(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "out.txt")
        self.host.run("f = open(%r, 'w'); f.write('data')" % path)
        self.assertEqual(self.last_words(self.host), [])
        with open(path) as file:
            self.assertEqual(file.read(), "data")

    def test_what_threads_exit_functions_and_finalizers_print_at_the_end_arrives(self):
        self.host.run(
            "import atexit, sys, threading\n"
            "class Last:\n    def __del__(self): print('del', end='')\n"
            "last = Last()\n"
            "atexit.register(lambda: (print('exit'), print('err', file=sys.stderr), print('out')))\n"
            "def work():\n    threading.main_thread().join()\n    print('thread')\n"
            "threading.Thread(target=work).start()"
        )
        self.assertEqual(
            self.last_words(self.host), [("stdout", "thread\nexit\n"), ("stderr", "err\n"), ("stdout", "out\ndel")]
        )

    def test_a_daemon_thread_does_not_find_its_variables_gone(self):
        self.host.run(
            "import atexit, threading, time\nbegun = threading.Event()\n"
            "def work():\n    while True: begun.set()\n"
            "threading.Thread(target=work, daemon=True).start()\nbegun.wait()\nf = open('/dev/null', 'w')"
        )
        self.assertEqual(self.last_words(self.host), [])

    def test_tasks_that_are_left_are_cancelled_without_noise(self):
        self.host.run(
            "import asyncio\n"
            "async def work():\n    try: await asyncio.sleep(600)\n    finally: print('cleaned up')\n"
            "task = asyncio.create_task(work()); await asyncio.sleep(0)"
        )
        self.assertEqual(self.last_words(self.host), [("stdout", "cleaned up\n")])

    def test_a_thread_that_goes_on_costs_no_file_once_the_host_waits_no_longer(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "out.txt")
        # Again and again: a signal that comes just before the main thread waits does not end the wait.
        self.host.run(
            "import os, signal, threading, time\nf = open(%r, 'w'); f.write('data')\n"
            "def work():\n"
            "    threading.main_thread().join()\n"
            "    while True: time.sleep(0.01); os.kill(os.getpid(), signal.SIGTERM)\n"
            "threading.Thread(target=work).start()" % path
        )
        self.assertEqual(self.last_words(self.host), [])
        with open(path) as file:
            self.assertEqual(file.read(), "data")

    def test_a_host_that_goes_takes_the_running_cell_and_its_children_along(self):
        host = self.host
        host.start(
            "import subprocess, os\nchild = subprocess.Popen(['sleep', '600'])\nprint(child.pid, flush=True)\nwhile True: pass"
        )
        host.wait_for(lambda event: isinstance(event, tuple) and event[1].endswith("\n"))
        host.hang_up()
        host.process.wait(30)
        # The sleeping child held the pipe open; its end ends the pipe.
        while os.read(host.lanes["stdout"].fd, 1 << 16):
            pass

    def test_a_host_that_goes_ends_what_left_the_group(self):
        for ending in ("while True: pass", ""):
            host = self.launch()
            host.greet()
            code = (
                "import subprocess\n"
                "child = subprocess.Popen(['sh', '-c', 'sleep 600 & echo here; wait'], start_new_session=True)\n"
            )
            host.start(code + ending)
            host.wait_for_text("here")
            host.hang_up()
            host.process.wait(30)
            # Both hold the pipe open; their end ends the pipe.
            while os.read(host.lanes["stdout"].fd, 1 << 16):
                pass

    def test_a_host_that_goes_while_idle_ends_the_runner(self):
        host = self.host
        host.run("1")
        host.hang_up()
        host.process.wait(30)


class Bytecode(unittest.TestCase):
    def unpacked(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(RUNNER, folder)
        shutil.copytree(
            os.path.join(FOLDER, "cellwright_runner"),
            os.path.join(folder, "cellwright_runner"),
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        return folder

    def start(self, folder):
        host = Host(runner=os.path.join(folder, "runner.py"), env={"PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(host.close)
        host.greet()
        return host

    def test_ours_is_cached_and_the_users_choice_kept(self):
        folder = self.unpacked()
        host = self.start(folder)
        told = host.run("import sys; display(sys.dont_write_bytecode)")
        self.assertTrue(any(is_message(event, "display") and event["data"] == {"text/plain": "True"} for event in told))
        cached = {
            name.partition(".")[0] for name in os.listdir(os.path.join(folder, "cellwright_runner", "__pycache__"))
        }
        self.assertLessEqual({"kernel", "cells", "wire", "streams", "display", "formats"}, cached)

    def test_a_folder_that_cannot_be_written_works(self):
        folder = self.unpacked()
        package = os.path.join(folder, "cellwright_runner")
        # A file where the cache folder would be: refused for every user, root included.
        open(os.path.join(package, "__pycache__"), "w").close()
        told = self.start(folder).run("display(1)")
        self.assertTrue(any(is_message(event, "display") for event in told))


if __name__ == "__main__":
    unittest.main()
