"""Magics of a Python without IPython, and what must not be taken for one."""

import os
import shutil
import sys
import tempfile
import unittest

from host import BARE, FOLDER, RunnerTest, brief, plain

sys.path.insert(0, FOLDER)
from cellwright_runner import magics  # noqa: E402


class Scanner(unittest.TestCase):
    def kinds(self, source):
        lines = list(magics.logical_lines(source))
        self.assertEqual("".join(text for _, text in lines), source)
        return [kind for kind, _ in lines if kind != "python"]

    def test_what_is_a_magic(self):
        for source, kinds in (
            ("!ls", ["system"]),
            ("!!ls", ["system"]),
            ("%time x", ["magic"]),
            ("  !ls", ["system"]),
            ("if x:\n    !ls\n    %cd ..\n", ["system", "magic"]),
            ("x = !ls", ["assign"]),
            ("a, b = %env X", ["assign"]),
            ("x['k'] = !ls", ["assign"]),
            ("x?", ["help"]),
            ("??x.y", ["help"]),
            ("!echo it's \\\n  \"fine\nx = 1", ["system"]),
            ("print(1)\n!ls\nprint(2)", ["system"]),
        ):
            with self.subTest(source):
                self.assertEqual(self.kinds(source), kinds)

    def test_what_is_none(self):
        for source in (
            "'''\n!ls\n%d items\n'''",
            'f"""\n%time {x}\n"""',
            "x = (7\n% 3)",
            "x = 7 \\\n% 3",
            "x = [\n!ls\n]",
            "# !ls",
            "x != 1",
            "x %= 2",
            "x = y % z",
            "print('what?')",
            "s = 'it\\'s\\\n%d'",
            "x = '?'\ny = x",
            "if a ==!b: pass",
        ):
            with self.subTest(source):
                self.assertEqual(self.kinds(source), [])

    def test_line_numbers_stay(self):
        source = "!echo a \\\n  b\nx = !ls\n%cd ..\n1/0"
        self.assertEqual(magics.to_python(source).count("\n"), source.count("\n"))


class WithoutIPython(RunnerTest):
    configure = {"prelude": True}

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {"PYTHONPATH": BARE}
        self.host.run("import os; os.chdir(%r)" % self.folder)

    def test_commands(self):
        self.check("!echo out; echo err >&2; exit 3", ("stdout", "out\n"), ("stderr", "err\n"))
        self.check("_exit_code", plain("3"))
        self.check("name = 'Ada'\n!echo {name} $name $HOME_NOT_SET {print}x ${name}".replace("{print}", "{1 + 1}"),
                   ("stdout", "Ada Ada 2x\n"))  # fmt: skip
        self.check("x = !printf 'a\\nb\\xff\\n'\nx", plain("['a', 'b\ufffd']"))
        self.check("if True:\n    !echo deep", ("stdout", "deep\n"))
        self.check("!cat", *[])
        self.check("print('first')\n!echo second\nprint('third')", ("stdout", "first\nsecond\nthird\n"))

    def test_redirected_output_takes_commands_along(self):
        self.check(
            "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    !echo away\nout.getvalue()",
            plain("'away\\n'"),
        )

    def test_folders_and_variables(self):
        os.mkdir(os.path.join(self.folder, "sub"))
        self.check("%cd sub", ("stdout", os.path.join(self.folder, "sub") + "\n"))
        self.check("%cd -", ("stdout", self.folder + "\n"))
        self.check("%pwd", plain(repr(self.folder)))
        self.check("%env CW_TEST=5", ("stdout", "env: CW_TEST=5\n"))
        self.check("x = %env CW_TEST\nx, os.environ['CW_TEST']", plain("('5', '5')"))
        self.check("y = 2\n%who", ("stdout", "x\ty\n"))

    def test_files(self):
        self.check("%%writefile a.py\nz = 7\nprint('run', __name__)\n", ("stdout", "Writing a.py\n"))
        self.check("%run a.py", ("stdout", "run __main__\n"))
        self.check("z", plain("7"))
        self.check("%load a.py", ("stdout", "z = 7\nprint('run', __name__)\n"))
        self.check("%%writefile -a a.py\nz = 8\n", ("stdout", "Appending to a.py\n"))

    def test_shell_cells(self):
        self.check('%%bash\nfor i in 1 2; do\n  echo "it\'s $i"\ndone', ("stdout", "it's 1\nit's 2\n"))
        events = brief(self.host.run("%%bash\nexit 4"))
        self.assertEqual(events[-1][:2], ("error", "CalledProcessError"))

    def test_time(self):
        events = brief(self.host.run("%time sum(range(10))"))
        self.assertEqual(events[-1], plain("45"))
        self.assertRegex(events[0][1], "^CPU times: user .*, sys: .*, total: .*\nWall time: ")
        self.assertIn("per loop", brief(self.host.run("%timeit 1 + 1"))[0][1])
        self.assertEqual(brief(self.host.run("%%time\na = 1\na + 1"))[-1], plain("2"))

    def test_help(self):
        self.check("len?", ("stdout", "len(obj, /)\n\nReturn the number of items in a container.\n"))
        self.host.run("def f():\n  'Doc.'\n  return 5")
        self.assertIn("return 5", brief(self.host.run("f??"))[0][1])
        self.check("nothing?", ("stdout", "Object `nothing` not found.\n"))

    def test_pip_is_this_pythons(self):
        expected = brief(
            self.host.run("import sys, subprocess\nsubprocess.run([sys.executable, '-m', 'pip', '--version']); None")
        )
        self.assertEqual(brief(self.host.run("%pip --version")), expected)

    def test_magics_of_the_first_cells_of_tutorials(self):
        self.check("%set_env CW_TEST=7", ("stdout", "env: CW_TEST=7\n"))
        self.check("%%capture kept\nprint('out'); display(5); 6")
        self.check("kept.stdout, len(kept.outputs)", plain("('out\\n', 2)"))
        self.check(
            "kept.show()", ("stdout", "out\n"), ("display", {"text/plain": "5"}), ("display", {"text/plain": "6"})
        )
        self.check(
            "r = %timeit -q -o -n 2 -r 3 1 + 1\nr.loops, r.repeat, r.best > 0, len(r.timings)", plain("(2, 3, True, 3)")
        )
        self.check("%%bash --out o --err e\necho 1; echo 2 >&2")
        self.check("o, e", plain("('1\\n', '2\\n')"))
        self.check("%%script cat\nas it is", ("stdout", "as it is\n"))
        self.check("x = 1\n%reset -f\n'x' in globals()", plain("False"))
        ((_, name, text),) = brief(self.host.run("%config IPCompleter.greedy = True"))
        self.assertIn("%pip install ipython", text)
        self.assertIn("%pip install ipython", brief(self.host.run("%load_ext line_profiler"))[0][2])

    def test_a_magic_can_be_registered(self):
        self.check(
            "from IPython.core.magic import register_line_magic, register_cell_magic\n"
            "@register_line_magic\ndef shout(line): return line.upper()\n"
            "@register_cell_magic('keep')\ndef kept(line, body): return line, body"
        )
        self.check("%shout quiet", plain("'QUIET'"))
        self.check("%%keep a\nb", plain("('a', 'b\\n')"))

    def test_variables_and_sources_are_listed_as_asked(self):
        self.host.run("n = 1; text = 'a'")
        self.check("%who_ls str", plain("['text']"))
        self.check("%who int", ("stdout", "n\n"))
        self.check("%history -n 2-3", ("stdout", "   2: n = 1; text = 'a'\n   3: %who_ls str\n"))
        self.check("%history 3", ("stdout", "%who_ls str\n"))

    def test_a_folder_with_spaces_is_entered_quietly(self):
        os.mkdir(os.path.join(self.folder, "a  b"))
        self.host.run("import os; os.chdir(%r)" % self.folder)
        self.check("%cd -q a  b")
        self.check("os.path.basename(os.getcwd())", plain("'a  b'"))

    def test_libraries_are_not_told_of_an_ipython_that_is_not_there(self):
        """matplotlib looks for a shell in a module that the user's import has loaded."""
        folder = os.path.join(self.folder, "site-packages")
        os.mkdir(folder)
        with open(os.path.join(folder, "cw_library.py"), "w") as file:
            file.write("import sys\ndef shell(): return sys.modules['IPython'].get_ipython()\n")
        self.host.run("import sys, IPython; sys.path.insert(0, %r); import cw_library" % folder)
        self.check("cw_library.shell() is None, IPython.get_ipython() is None", plain("(True, False)"))

    def test_code_runs_by_the_shells_own_method(self):
        self.check("get_ipython().run_cell('1 + 1').result", plain("2"), plain("2"))
        self.assertFalse("Traceback" in self.value("get_ipython().run_cell('n = 5').success"))
        self.check("%xdel n\n'n' in globals()", plain("False"))
        self.check("%sx echo one", plain("['one']"))
        self.assertIn("CW_NOWHERE", brief(self.host.run("%env CW_NOWHERE"))[0][2])

    def test_a_statement_is_profiled(self):
        ((stream, text),) = brief(self.host.run("%prun sorted(range(3))"))
        self.assertIn("{built-in method builtins.sorted}", text)

    def test_a_changed_module_is_loaded_again(self):
        path = os.path.join(self.folder, "cw_changing.py")

        def write(value, time):
            with open(path, "w") as file:
                file.write("def f(): return %d\n" % value)
            os.utime(path, (time, time))

        write(1, 1000)
        self.host.run("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, %r)" % self.folder)
        self.host.run("%load_ext autoreload\n%autoreload 2\nimport cw_changing\nfrom cw_changing import f")
        self.check("f(), cw_changing.f()", plain("(1, 1)"))
        write(22, 2000)
        self.check("f(), cw_changing.f()", plain("(22, 22)"))

    def test_pasted_prompts_run(self):
        self.check(
            ">>> x = 3\n>>> for i in range(2):\n...     print(i)\n...\n0\n1\n>>> x + 1",
            ("stdout", "0\n1\n"),
            plain("4"),
        )
        self.check("In [1]: value = 7\n\nIn [2]: value", plain("7"))
        self.check("In [1]: y = [\n   ...:   1]\n\nIn [2]: y", plain("[1]"))

    def test_names_are_listed_by_a_pattern(self):
        self.check("import os\nos.getc*?", ("stdout", "os.getcwd\nos.getcwdb\n"))

    def test_ipython_display_has_a_stand_in_for_the_users_code(self):
        self.check(
            "from IPython.display import display as show, HTML, Markdown, Image, JSON, clear_output\n"
            "show(HTML('<b>'), Markdown('*m*'))\nclear_output()\nJSON({'a': 1})",
            ("display", {"text/html": "<b>", "text/plain": "<IPython.core.display.HTML object>"}),
            ("display", {"text/markdown": "*m*", "text/plain": "<IPython.core.display.Markdown object>"}),
            ("clear", False),
            ("result", {"application/json": {"a": 1}, "text/plain": "<IPython.core.display.JSON object>"}),
        )
        self.check("import IPython; IPython.get_ipython() is get_ipython()", plain("True"))
        self.assertIn(
            "pip install ipython",
            brief(self.host.run("from IPython.lib import backgroundjobs"))[0][2]
            + brief(self.host.run("IPython.embed()"))[0][2],
        )
        self.check(
            "Image(data=b'\\x89PNGx', width=5)",
            ("result", {"image/png": "iVBOR3g=", "text/plain": "<IPython.core.display.Image object>"}),
        )

    def test_the_running_loop_is_there_in_a_plain_cell(self):
        self.check(
            "import asyncio\nloop = asyncio.get_running_loop()\nf = loop.create_future(); loop.call_soon(f.set_result, 3);"
        )
        self.check("await f", plain("3"))
        self.check("async def g(): return asyncio.get_running_loop() is loop\nasyncio.run(g())", plain("False"))

    def test_an_unknown_magic_says_what_there_is(self):
        ((kind, name, text),) = brief(self.host.run("%frobnicate 1"))
        self.assertEqual((kind, name), ("error", "NameError"))
        self.assertIn("%cd %config %env", text)
        self.assertIn("%%bash", brief(self.host.run("%%frobnicate\nx"))[0][2])

    def test_an_error_in_a_cell_with_magics_has_the_right_line(self):
        events = self.host.run("!true\nx = 1\n1/0")
        self.assertEqual(events[-2]["line"], 3)
        self.assertIn("    1/0", events[-2]["traceback"])

    def test_python_that_looks_like_a_magic_stays_python(self):
        self.check('s = """\n%d items\n!ls\n"""\nn = (7\n% 3)\n!echo mixed\nn, s', ("stdout", "mixed\n"),
                   plain("(1, '\\n%d items\\n!ls\\n')"))  # fmt: skip

    def test_an_ordinary_syntax_error_stays_one(self):
        self.assertEqual(brief(self.host.run("print('100%'"))[-1][1], "SyntaxError")

    def test_exported_notebooks_run(self):
        self.check("get_ipython().system('echo hi')", ("stdout", "hi\n"))
        self.check("get_ipython().run_line_magic('matplotlib', 'inline')")


if __name__ == "__main__":
    unittest.main()
