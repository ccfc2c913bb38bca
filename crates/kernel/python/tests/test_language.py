"""What a cell may be written like, and what it finds: the table of cells in, events out."""

import os
import shutil
import socket
import sys
import tempfile
import unittest

from host import BARE, RunnerTest, brief, is_message, plain


class Values(RunnerTest):
    def test_the_last_expression_is_shown(self):
        for code, *expected in (
            ("1 + 1", plain("2")),
            ("x = 5\nx", plain("5")),
            ("x", plain("5")),
            ("x;",),
            ("x;  # no",),
            ("x  # yes;", plain("5")),
            ("(x);",),
            ("'a;'", plain("'a;'")),
            ("'ü'; x;",),
            ("None",),
            ("",),
            ("# nothing",),
            ("x = 1; x", plain("1")),
            ("if True:\n  x",),
            ("for i in range(2): i",),
            ("x\r\nx", plain("1")),
            ("lambda: 0;",),
            ("print('a')\n'b'", ("stdout", "a\n"), plain("'b'")),
            ("\n\n  \n1", plain("1")),
            ("    y = 1\n    if y:\n        y += 1\n    y", plain("2")),
        ):
            with self.subTest(code):
                self.check(code, *expected)

    def test_underscores_and_history(self):
        for code in ("10", "20", "30"):
            self.host.run(code)
        self.check("_, __, ___, _1, Out[2], _oh[3]", plain("(30, 20, 10, 10, 20, 30)"))
        self.check("_i, _ii, In[1], _ih[2]", plain("('_, __, ___, _1, Out[2], _oh[3]', '30', '10', '20')"))
        self.check("_ = 'mine'")
        self.check("1", plain("1"))
        self.check("_", plain("'mine'"))
        self.check("del _")
        self.check("2", plain("2"))
        self.check("_", plain("2"))

    def test_an_underscore_in_builtins_is_left_alone(self):
        self.check("import builtins; builtins._ = str.upper")
        self.check("1", plain("1"))
        self.check("'_' in globals() and _ == 1", plain("False"))

    def test_the_display_hook_is_the_users(self):
        self.check("import sys\nold = sys.displayhook\nsys.displayhook = lambda v: print('hook', v)")
        self.check("5", ("stdout", "hook 5\n"))
        self.check("sys.displayhook = old")
        self.check("sys.displayhook(6); 7", plain("6"), plain("7"))

    def test_results_are_kept_within_bounds(self):
        host = self.host
        host.run("import weakref\nclass Big: pass")
        host.run("b = Big(); gone = weakref.ref(b); b")
        host.run("del b")
        for i in range(300):
            host.run("'%d'" % i)
        self.check("gone() is None, len(Out) <= 257, len(In)", plain("(True, True, 305)"))

    def test_long_containers_are_broken_and_huge_ones_cut(self):
        self.env = {"PYTHONPATH": BARE}
        self.assertEqual(self.value("list(range(30))").count("\n"), 1)
        self.assertLess(len(self.value("[list(range(10000))] * 10000")), 2_000_000)
        self.check("x = []; x.append(x); x", plain("[[...]]"))
        self.check("{'b': 1, 'a': {3, 1, 2}, 'c': (1,), 'd': frozenset([1])}",
                   plain("{'b': 1, 'a': {1, 2, 3}, 'c': (1,), 'd': frozenset({1})}"))  # fmt: skip

    def test_an_integer_too_long_to_print_is_told(self):
        events = self.host.run("10 ** 5000")
        self.assertTrue(is_message(events[-2], "result"), events)


class Async(RunnerTest):
    def test_await_for_and_with_at_the_top(self):
        self.check("import asyncio\nawait asyncio.sleep(0, 'slept')", plain("'slept'"))
        self.check(
            "async def f():\n  for i in range(3): yield i\nasync for i in f(): print(i)", ("stdout", "0\n1\n2\n")
        )
        self.check(
            "import contextlib\n@contextlib.asynccontextmanager\nasync def c(): yield 7\nasync with c() as x: print(x)",
            ("stdout", "7\n"),
        )
        self.check("[i async for i in f()]", plain("[0, 1, 2]"))
        self.check("await asyncio.sleep(0, 1);")

    def test_one_loop_for_all_cells(self):
        self.check("import asyncio\nqueue = asyncio.Queue(); loop = asyncio.get_running_loop(); await asyncio.sleep(0)")
        self.check("await queue.put(3); loop is asyncio.get_running_loop()", plain("True"))
        self.check("await queue.get()", plain("3"))

    def test_background_tasks_go_on_between_cells(self):
        host = self.host
        # The task goes on when the cell is over, not after a time in which it may not be.
        with socket.create_server(("127.0.0.1", 0)) as server:
            host.run(
                "import asyncio, socket\ndoor = socket.create_connection(('127.0.0.1', %d)); door.setblocking(False)\n"
                "async def work():\n  await asyncio.get_running_loop().sock_recv(door, 1)\n  door.close()\n"
                "  display('from the task'); print('done')\n"
                "task = asyncio.create_task(work())" % server.getsockname()[1]
            )
            with server.accept()[0] as door:
                door.send(b".")
                host.wait_for_text("done\n")
        shown = [event for event in host.events if is_message(event, "display")]
        self.assertEqual([(event["id"], event["data"]) for event in shown], [(None, {"text/plain": "'from the task'"})])
        host.events.clear()
        self.check("task.done()", plain("True"))

    def test_asyncio_run_works_in_a_cell(self):
        self.check("import asyncio\nasync def f(): return 3\nasyncio.run(f())", plain("3"))
        self.check("await f()", plain("3"))
        self.check("asyncio.run(f())", plain("3"))

    def test_a_cell_that_closes_the_loop_gets_a_new_one(self):
        self.host.run("import asyncio; asyncio.get_event_loop_policy().get_event_loop().close()")
        self.check("await asyncio.sleep(0, 1)", plain("1"))

    def test_a_context_variable_holds_through_a_cell(self):
        self.check(
            "import asyncio, contextvars\nv = contextvars.ContextVar('v')\nv.set(1); await asyncio.sleep(0)\nv.get()",
            plain("1"),
        )

    def test_an_error_after_an_await_is_told_with_the_cells_frames_only(self):
        (event,) = [e for e in self.host.run("import asyncio\nawait asyncio.sleep(0)\n1/0") if is_message(e, "error")]
        self.assertEqual(event["line"], 3)
        self.assertEqual(event["traceback"][1], '  File "<cell 1>", line 3, in <module>')

    def test_a_task_that_exits_does_not_take_the_kernel(self):
        self.host.run("import asyncio, sys\nasync def leave(): sys.exit(1)\nt = asyncio.create_task(leave())")
        self.assertEqual(brief(self.host.run("2"))[-1], plain("2"))


class Errors(RunnerTest):
    def error(self, code):
        events = self.host.run(code)
        self.assertEqual(events[-1]["status"], "error")
        return events[-2]

    def lines(self, code):
        return [line for line in self.error(code)["traceback"] if line.strip(" ^~")]

    def test_tracebacks_show_source_lines_of_every_cell_and_none_of_ours(self):
        self.host.run("def fail():\n    raise ValueError('no')")
        self.assertEqual(
            self.lines("x = 1\nfail()"),
            [
                "Traceback (most recent call last):",
                '  File "<cell 2>", line 2, in <module>',
                "    fail()",
                '  File "<cell 1>", line 2, in fail',
                "    raise ValueError('no')",
                "ValueError: no",
            ],
        )

    def test_chained_exceptions_are_told(self):
        lines = self.lines("try: 1/0\nexcept Exception as e: raise KeyError('k') from e")
        self.assertIn("The above exception was the direct cause of the following exception:", lines)
        self.assertFalse([line for line in lines if "cellwright_runner" in line])

    def test_a_syntax_error_has_a_caret_and_the_cells_line(self):
        error = self.error("x = 1\ny = = 2")
        self.assertEqual((error["ename"], error["evalue"], error["line"]), ("SyntaxError", "invalid syntax", 2))
        self.assertEqual([line.rstrip() for line in error["traceback"]],
                         ['  File "<cell 1>", line 2', "    y = = 2", "        ^", "SyntaxError: invalid syntax"])  # fmt: skip
        error = self.error("x = 1\nreturn x")
        self.assertEqual(error["traceback"][:2], ['  File "<cell 2>", line 2', "    return x"])

    def test_exits_are_errors_and_the_kernel_lives(self):
        self.host.run("x = 1")
        for code, value in (
            ("quit()", ""),
            ("exit()", ""),
            ("import sys; sys.exit(3)", "3"),
            ("raise SystemExit('bye')", "bye"),
        ):
            with self.subTest(code):
                error = self.error(code)
                self.assertEqual((error["ename"], error["evalue"]), ("SystemExit", value))
                self.assertIn("not the kernel", error["traceback"][-1])
        self.check("x", plain("1"))
        self.check("quit", plain("quit() ends the cell; the kernel and its variables stay"))

    def test_an_exception_that_cannot_be_printed_is_told(self):
        error = self.error("class Bad(Exception):\n  def __str__(self): raise ValueError\nraise Bad")
        self.assertEqual(error["ename"], "Bad")

    def test_an_enormous_message_is_cut(self):
        error = self.error("raise ValueError('x' * 10**8)")
        self.assertLess(len(error["evalue"]), 2_000_000)

    def test_deep_recursion_is_told(self):
        self.assertEqual(self.error("def f(): f()\nf()")["ename"], "RecursionError")
        self.check("1", plain("1"))

    def test_an_exception_in_a_thread_shows_source_lines(self):
        events = brief(
            self.host.run("import threading\ndef f():\n  1/0\nt = threading.Thread(target=f); t.start(); t.join()")
        )
        self.assertEqual(events[0][0], "stderr")
        self.assertIn("    1/0", events[0][1])
        self.assertNotIn("cellwright_runner", events[0][1])

    def test_post_mortem_finds_the_exception(self):
        self.error("1/0")
        self.check("import sys; sys.last_type.__name__", plain("'ZeroDivisionError'"))

    def test_errors_do_not_keep_the_next_cell_from_working(self):
        for code in ("raise", "del nothing", "import no_such_module", "\x00", "return 1", "'\\ud800'.encode()"):
            with self.subTest(code):
                self.error(code)


class Main(RunnerTest):
    def test_cells_run_in_the_real_main(self):
        self.check("import __main__, sys\nx = 1\n__main__.x, __name__, sys.modules['__main__'] is __main__",
                   plain("(1, '__main__', True)"))  # fmt: skip
        self.check("sorted(n for n in globals() if not n.startswith('_'))", plain("['In', 'Out', 'sys', 'x']"))
        self.check("sys.argv, hasattr(__main__, '__file__')", plain("([''], False)"))

    def test_classes_of_a_cell_can_be_pickled(self):
        self.check("import pickle\nclass A:\n  x = 1\npickle.loads(pickle.dumps(A())).x", plain("1"))

    def test_source_of_functions_and_classes(self):
        self.host.run("class A:\n  def f(self):\n    return 1\n\nclass B: pass\n\ndef g(): return 2")
        self.check("import inspect\ninspect.getsource(g)", plain("'def g(): return 2\\n'"))
        self.check("inspect.getsource(A)", plain("'class A:\\n  def f(self):\\n    return 1\\n'"))
        self.check("inspect.getsource(A.f)", plain("'  def f(self):\\n    return 1\\n'"))
        self.check("inspect.getsource(B)", plain("'class B: pass\\n'"))
        self.host.run("!true\nclass C:\n  x = 1")
        self.check("inspect.getsource(C)", plain("'class C:\\n  x = 1\\n'"))
        self.check("import linecache; linecache.checkcache(); inspect.getsource(g)", plain("'def g(): return 2\\n'"))

    def test_spawned_processes_find_what_cells_defined(self):
        self.host.run("import os, multiprocessing\nFACTOR = 3\nprint('side effect')\ndef triple(x): return FACTOR * x")
        self.host.run("class Box:\n  def __init__(self, x): self.x = x")
        self.check(
            "def unbox(box): return triple(box.x)\n"
            "with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(unbox, [Box(1), Box(2)]))",
            ("stdout", "[3, 6]\n"),
        )

    def test_a_title_names_the_cell_in_tracebacks(self):
        events = self.host.run("1 / 0", title="load\n the  data")
        (error,) = (event for event in events if event["type"] == "error")
        self.assertEqual(error["traceback"][1], '  File "<cell 1: load the data>", line 1, in <module>')

    def test_a_cell_that_its_reader_knows_by_a_name_has_it_in_tracebacks(self):
        events = self.host.run("1 / 0", title="cell 4")
        (error,) = (event for event in events if event["type"] == "error")
        self.assertEqual(error["traceback"][1], '  File "<cell 4, In [1]>", line 1, in <module>')

    def test_futures_last_as_at_the_prompt(self):
        self.check("from __future__ import annotations")
        self.check("def f(x: undefined): pass\nf.__annotations__", plain("{'x': 'undefined'}"))

    def test_the_working_folder_lasts_and_is_importable(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "beside.py"), "w") as file:
            file.write("answer = 42")
        self.check("import os; os.chdir(%r)" % folder)
        self.check("import beside\nbeside.answer, os.getcwd() == %r" % os.path.realpath(folder), plain("(42, True)"))

    def test_warnings_are_shown(self):
        events = brief(self.host.run("import warnings; warnings.warn('careful')"))
        self.assertIn("UserWarning: careful", events[0][1])

    def test_many_cells_do_not_grow_the_process(self):
        host = self.host
        measure = "import resource; resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
        cell = "x = %d\n" + "# " + "y" * 200 + "\nx"

        def run(count):
            for i in range(count):
                host.run(cell % i)
            return int(self.value(measure))

        before = run(2000)
        self.assertLess(run(4000) - before, 4 << (20 if sys.platform == "darwin" else 10))


if __name__ == "__main__":
    unittest.main()
