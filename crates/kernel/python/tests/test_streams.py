"""Printed text: complete, in order, seen early, from whoever prints it."""

import unittest

from host import RunnerTest, brief, plain


class Order(RunnerTest):
    def test_stdout_and_stderr_keep_their_order(self):
        self.check(
            "import sys\nfor i in range(3):\n  print('out', i)\n  print('err', i, file=sys.stderr)",
            *[event for i in range(3) for event in (("stdout", "out %d\n" % i), ("stderr", "err %d\n" % i))],
        )

    def test_text_keeps_its_order_against_displays(self):
        self.check(
            "print('a'); display(1); print('b', end=''); clear_output(); print('c'); 2",
            ("stdout", "a\n"),
            ("display", {"text/plain": "1"}),
            ("stdout", "b"),
            ("clear", False),
            ("stdout", "c\n"),
            plain("2"),
        )

    def test_children_and_c_code_are_captured_before_what_follows(self):
        self.check(
            "import subprocess, ctypes, sys\n"
            "print('a')\n"
            "subprocess.run('echo child; echo trouble >&2', shell=True)\n"
            "display(1)\n"
            "ctypes.CDLL(None).puts(b'from c')\n"
            "None",
            ("stdout", "a\nchild\n"),
            ("stderr", "trouble\n"),
            ("display", {"text/plain": "1"}),
            ("stdout", "from c\n"),
        )

    def test_text_before_a_child_comes_before_the_childs(self):
        for child in ("subprocess.run('echo child >&2', shell=True)", "!echo child >&2", "os.system('echo child >&2')"):
            with self.subTest(child):
                self.check(
                    "import subprocess, os\nprint('parent')\n%s;" % child, ("stdout", "parent\n"), ("stderr", "child\n")
                )
        self.check(
            "import os, sys\nprint('parent')\npid = os.fork()\nif not pid: os.write(2, b'child\\n'); os._exit(0)\n"
            "os.waitpid(pid, 0); print('end', file=sys.stderr)",
            ("stdout", "parent\n"),
            ("stderr", "child\nend\n"),
        )

    def test_bytes_and_text_mix(self):
        self.check(
            "import sys\nsys.stdout.buffer.write(b'bytes\\n'); sys.stdout.buffer.flush()\nprint('text')\n"
            "sys.stderr.buffer.write(b'trouble\\n')\nprint('end')",
            ("stdout", "bytes\ntext\n"),
            ("stderr", "trouble\n"),
            ("stdout", "end\n"),
        )

    def test_marks_arrive_when_user_code_redirects_the_descriptors(self):
        self.check(
            "import os\nsaved = os.dup(1)\nos.dup2(os.open(os.devnull, os.O_WRONLY), 1)\nprint('lost', flush=True)\ndisplay(1)",
            ("display", {"text/plain": "1"}),
        )
        self.check("os.close(1)")
        self.check("os.dup2(saved, 1)\nprint('back')", ("stdout", "back\n"))


class NothingLost(RunnerTest):
    def test_the_tail_of_a_childs_output_is_there_when_the_cell_is_done(self):
        code = "import subprocess; subprocess.run(['sh', '-c', 'printf %06000d 7; printf tail >&2']); None"
        for _ in range(200):
            events = brief(self.host.run(code))
            self.assertEqual(sorted(events), [("stderr", "tail"), ("stdout", "0" * 5999 + "7")])

    def test_a_flood_arrives_whole(self):
        events = brief(self.host.run("for i in range(300000): print('%09d' % i)"))
        self.assertEqual(events, [("stdout", "".join("%09d\n" % i for i in range(300000)))])

    def test_threads_that_print_lose_nothing(self):
        code = (
            "import threading\n"
            "def work(name):\n  for i in range(20000): print('%s%05d' % (name, i))\n"
            "threads = [threading.Thread(target=work, args=(name,)) for name in 'abc']\n"
            "for thread in threads: thread.start()\n"
            "for thread in threads: thread.join()"
        )
        ((stream, text),) = brief(self.host.run(code))
        self.assertEqual(stream, "stdout")
        # `print` writes the text and the line break separately, so lines of threads may share a line.
        self.assertEqual(len(text), 3 * 20000 * 7)
        words = text.replace("\n", "")
        words = sorted(words[i : i + 6] for i in range(0, len(words), 6))
        self.assertEqual(words, sorted("%s%05d" % (name, i) for name in "abc" for i in range(20000)))

    def test_text_after_the_cells_end_is_late_and_kept(self):
        host = self.host
        host.run(
            "import threading, sys\ngo = threading.Event()\n"
            "def late():\n  go.wait(); print('late')\n"
            "thread = threading.Thread(target=late); thread.start()"
        )
        self.assertEqual(host.run("go.set(); thread.join()")[1:-1], [("stdout", "late\n")])
        host.run(
            "import os\nr, w = os.pipe()\nthreading.Thread(target=lambda: (os.read(r, 1), print('later'))).start()"
        )
        # The cell does not wait for the thread: its text comes with this cell or after it.
        if ("stdout", "later\n") not in host.run("os.write(w, b'x'); None"):
            host.wait_for_text("later\n")

    def test_output_that_is_not_text_passes_through(self):
        host = self.host
        host.run("import os; os.write(1, b'\\xff\\x00\\x1b_cw:\\x1b_'); None")
        host.run("import sys; print('\\ud800', 'ä')")


class Life(RunnerTest):
    def test_text_is_seen_without_a_flush_while_the_cell_runs(self):
        host = self.host
        cell = host.start("import time\nprint('working', end='')\nwhile True: time.sleep(0.001)")
        host.wait_for_text("working")
        host.interrupt()
        self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")

    def test_text_is_seen_again_and_again(self):
        host = self.host
        cell = host.start("import time\nfor i in range(100000):\n  print(i)\n  time.sleep(0.01)")
        for i in (1, 10, 20):
            host.wait_for_text("\n%d\n" % i)
        host.interrupt()
        host.finish(cell)


class Files(RunnerTest):
    def test_the_streams_are_real_files(self):
        self.check(
            "import sys, subprocess, io\n"
            "subprocess.run(['echo', 'by fileno'], stdout=sys.stdout, stderr=sys.stderr)\n"
            "isinstance(sys.stdout, io.TextIOWrapper), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.fileno(), "
            "sys.stderr.fileno(), sys.stdout.name, sys.stdout.mode, sys.__stdout__ is sys.stdout",
            ("stdout", "by fileno\n"),
            plain("(True, False, 'utf-8', 1, 2, '<stdout>', 'w', True)"),
        )

    def test_reconfigure_and_line_buffering(self):
        self.check(
            "sys = __import__('sys')\nsys.stdout.reconfigure(line_buffering=True, encoding='latin-1')\nprint('ä')\n"
            "sys.stdout.reconfigure(encoding='utf-8')",
            ("stdout", "\ufffd\n"),
        )
        self.check("print('ä')", ("stdout", "ä\n"))

    def test_closing_or_rewrapping_stdout_harms_nobody(self):
        self.check("import sys, io, gc\nsys.stdout.close()\nprint('still')", ("stdout", "still\n"))
        self.check(
            "old = sys.stdout\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('wrapped')",
            ("stdout", "wrapped\n"),
        )
        self.check("sys.stdout = old\ngc.collect()\nprint('ours again')", ("stdout", "ours again\n"))

    def test_a_write_method_of_the_users_stays(self):
        self.check(
            "import sys\nsys.stdout.write = lambda text: sys.stderr.write(text.upper())\nprint('loud')",
            ("stderr", "LOUD\n"),
        )
        self.check("print('still')", ("stderr", "STILL\n"))
        self.check("del sys.stdout.write\nprint('normal')", ("stdout", "normal\n"))

    def test_redirected_output_stays_redirected(self):
        self.check(
            "import contextlib, io\ntarget = io.StringIO()\nwith contextlib.redirect_stdout(target):\n  print('away')\n"
            "target.getvalue()",
            plain("'away\\n'"),
        )

    def test_a_pipe_made_non_blocking_by_a_child_loses_nothing(self):
        events = brief(self.host.run("import os\nos.set_blocking(1, False)\nprint('x' * 3000000)"))
        self.assertEqual(events, [("stdout", "x" * 3000000 + "\n")])

    def test_input_is_empty(self):
        self.check("import sys; sys.stdin.read()", plain("''"))


class Forks(RunnerTest):
    def test_a_forked_child_prints_once_and_sends_nothing(self):
        self.check(
            "import os\nprint('before', end=' ')\npid = os.fork()\n"
            "if pid == 0:\n  print('child', end=' ')\n  display('shown')\n"
            "else:\n  os.waitpid(pid, 0)\nprint('end')",
            ("stdout", "before child 'shown'\nend\nend\n"),
        )
        self.check("os.getpid() == os.getpgrp()", plain("True"))

    def test_a_child_has_no_descriptor_of_the_protocol(self):
        code = (
            "import os\npid = os.fork()\nif not pid:\n"
            "  names = []\n  for fd in range(3, 64):\n    try: os.fstat(fd); names.append(fd)\n    except OSError: pass\n"
            "  print(names, flush=True); os._exit(0)\nos.waitpid(pid, 0); None"
        )
        # What is left is not ours: select's or the loop's descriptors would show here if there were any.
        self.check(code, ("stdout", "[]\n"))
        self.check(
            "import subprocess; subprocess.run(['sh', '-c', 'ls /proc/self/fd | wc -l'], close_fds=False).returncode",
            ("stdout", "4\n"),
            plain("0"),
        )

    def test_exceptions_and_exits_of_a_child_are_its_own(self):
        code = "import os, sys\npid = os.fork()\nif not pid: %s\nos.WEXITSTATUS(os.waitpid(pid, 0)[1])"
        self.check(code % "sys.exit(7)", plain("7"))
        events = brief(self.host.run(code % "1/0"))
        self.assertEqual(events[-1], plain("1"))
        self.assertIn("ZeroDivisionError", events[0][1])

    def test_processes_of_multiprocessing_by_fork(self):
        self.check(
            "import multiprocessing\ndef double(x):\n  print('got', x)\n  return 2 * x\n"
            "with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(double, [1, 2]))",
            ("stdout", "got 1\ngot 2\n[2, 4]\n"),
        )

    def test_a_childs_text_is_seen_while_it_runs(self):
        host = self.host
        cell = host.start(
            "import os, time\npid = os.fork()\nif not pid:\n  print('partial', end='')\n  time.sleep(600)\nos.waitpid(pid, 0)"
        )
        host.wait_for_text("partial")
        host.interrupt()
        host.finish(cell)

    def test_no_warning_about_our_threads(self):
        self.check("import os\nif not os.fork(): os._exit(0)\nprint(os.wait()[1])", ("stdout", "0\n"))


if __name__ == "__main__":
    unittest.main()
