"""The runner with IPython and the libraries people plot with, in an interpreter that has them."""

import base64
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from host import BARE, FOLDER, RunnerTest, brief, is_message, plain  # noqa: E402

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))
PYTHON = os.environ.get("CELLWRIGHT_TEST_PYTHON") or os.path.join(WORKSPACE, "target", "venv", "bin", "python")
PNG = b"\x89PNG"


class RichTest(RunnerTest):
    python = PYTHON

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(PYTHON):
            raise AssertionError("%s is missing: run scripts/check.sh, or set CELLWRIGHT_TEST_PYTHON" % PYTHON)

    def pictures(self, code):
        """The kinds of events of a cell, and its pictures."""
        told = brief(self.host.run(code))
        pictures = [
            event[1]["image/png"] for event in told if event[0] in ("display", "result") and "image/png" in event[1]
        ]
        for picture in pictures:
            self.assertTrue(base64.b64decode(picture).startswith(PNG))
        return [event[0] for event in told], len(pictures)


class Figures(RichTest):
    def setUp(self):
        self.host.run("import matplotlib.pyplot as plt")

    def test_a_figure_is_shown_once_however_it_is_shown(self):
        for code, kinds in (
            ("plt.plot([1, 2]);", ["display"]),
            ("plt.plot([1, 2])\nplt.show()", ["display"]),
            ("plt.plot([1, 2])\nplt.show()\nprint('after')", ["display", "stdout"]),
            ("fig, ax = plt.subplots(); ax.plot([1]); fig", ["result"]),
            ("fig, ax = plt.subplots(); ax.plot([1]); display(fig)", ["display"]),
            ("fig, ax = plt.subplots(); ax.plot([1]); plt.close(fig); fig", ["result"]),
            ("fig", ["result"]),
            ("fig, ax = plt.subplots(); ax.plot([1]); plt.close(fig)", []),
            ("plt.figure();", []),
        ):
            with self.subTest(code):
                told, pictures = self.pictures(code)
                self.assertEqual((told, pictures), (kinds, len([kind for kind in kinds if kind != "stdout"])))

    def test_a_figure_of_a_failed_cell_is_shown(self):
        self.assertEqual(self.pictures("plt.plot([1]); 1/0"), (["display", "error"], 1))

    def test_a_figure_changed_after_its_display_is_shown_again(self):
        self.assertEqual(
            self.pictures("fig, ax = plt.subplots(); display(fig); ax.plot([1]);"), (["display", "display"], 2)
        )

    def test_several_figures_come_in_order_with_text_between(self):
        told, _ = self.pictures("plt.plot([1]); plt.show(); print('x'); plt.plot([2]); plt.show(); print('y')")
        self.assertEqual(told, ["display", "stdout", "display", "stdout"])

    def test_a_backend_of_the_users_choice_is_left_alone(self):
        self.assertEqual(self.pictures("import matplotlib\nmatplotlib.use('agg')\nplt.plot([1]);"), ([], 0))
        self.assertEqual(self.pictures("%matplotlib inline\nplt.plot([1]);"), (["display"], 1))

    def test_children_do_not_inherit_our_backend(self):
        self.check("import os; os.environ.get('MPLBACKEND')")
        self.check(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as p; p.plot([1])']).returncode",
            plain("0"),
        )

    def test_figures_have_the_format_that_was_chosen(self):
        for choose in (
            "%%config InlineBackend.figure_format = '%s'",
            "from matplotlib_inline.backend_inline import set_matplotlib_formats\nset_matplotlib_formats('%s')",
        ):
            self.host.run(choose % "svg")
            told = brief(self.host.run("plt.plot([1]);"))
            self.assertEqual([set(event[1]) for event in told], [{"image/svg+xml", "text/plain"}])
            self.host.run(choose % "png")
            self.assertEqual(self.pictures("plt.plot([1]);"), (["display"], 1))

    def test_show_shows_with_the_backend_that_only_draws(self):
        self.assertEqual(
            self.pictures("import matplotlib\nmatplotlib.use('Agg')\nplt.plot([1])\nplt.show()"), (["display"], 1)
        )


class AsIPython(RichTest):
    def test_what_libraries_ask_for_is_there_from_the_first_cell(self):
        self.check("import IPython\nIPython.get_ipython() is get_ipython()", plain("True"))

    def test_a_magic_can_be_registered(self):
        self.check(
            "from IPython.core.magic import register_line_magic\n@register_line_magic\ndef cw(line): return line.upper()"
        )
        self.check("%cw abc", plain("'ABC'"))

    def test_values_print_as_ipython_prints_them_with_and_without_its_shell(self):
        values = (
            "list(range(40)), {'a': list(range(30))}, __import__('collections').Counter('aab'), ValueError('x')",
            "__import__('re').compile('a')",
            "len",
            "dict",
            "[{'id': i, 'name': 'item %d' % i} for i in range(9)]",
        )
        before = [self.value(value) for value in values]
        self.host.run("%pwd")
        self.assertEqual(before, [self.value(value) for value in values])

    def test_classes_print_themselves_in_the_first_cell(self):
        self.check("class P:\n  def _repr_pretty_(self, p, cycle): p.text('pretty')\nP()", plain("pretty"))

    def test_startup_files_are_run(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "profile_default", "startup"))
            with open(os.path.join(folder, "profile_default", "startup", "1.py"), "w") as file:
                file.write("from_startup = 5")
            self.env = {"IPYTHONDIR": folder}
            self.check("from_startup", plain("5"))


class Without(RichTest):
    env = {"PYTHONPATH": BARE}

    def test_plotly_shows_without_ipython(self):
        events = brief(self.host.run("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2])).show()"))
        self.assertEqual([event[0] for event in events], ["display"], events)
        self.assertIn("application/vnd.plotly.v1+json", events[0][1])

    def test_figures_have_the_format_that_was_chosen(self):
        self.host.run("%config InlineBackend.figure_format = 'svg'\nimport matplotlib.pyplot as plt")
        told = brief(self.host.run("plt.plot([1]);"))
        self.assertEqual([set(event[1]) for event in told], [{"image/svg+xml", "text/plain"}])


class Values(RichTest):
    def data(self, code):
        events = brief(self.host.run(code))
        self.assertEqual([event[0] for event in events], ["result"], events)
        return events[0][1]

    def test_pandas(self):
        data = self.data("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
        self.assertEqual(set(data), {"text/plain", "text/html"})
        self.assertIn("<table", data["text/html"])
        wide = self.data("pd.DataFrame([range(18)], columns=['column%02d' % i for i in range(18)])")
        self.assertIn("column09", wide["text/plain"])

    def test_numpy(self):
        self.check("import numpy as np\nnp.arange(3)", plain("array([0, 1, 2])"))
        self.check(
            "display({'application/json': {'nan': np.float64('nan'), 'int': np.int64(3), 'array': np.eye(2), 'bool': np.bool_(1)}}, raw=True)",
            ("display", {"application/json": {"nan": None, "int": 3, "array": [[1.0, 0.0], [0.0, 1.0]], "bool": True}}),
        )
        reply = self.host.run("a = np.zeros((2, 3), dtype='f4')") and self.host.ask(type="variables", limit=10)
        self.assertEqual(
            reply["variables"],
            [{"name": "a", "type": "numpy.ndarray", "shape": [2, 3], "preview": "ndarray 2 x 3 float32"}],
        )

    def test_pictures_are_shown_once(self):
        data = self.data("from PIL import Image\nImage.new('RGB', (2, 2))")
        self.assertEqual(set(data), {"text/plain", "image/png"})
        self.assertTrue(base64.b64decode(data["image/png"]).startswith(PNG))

    def test_plotly_and_altair_send_data(self):
        """Altair's page stays beside it: JupyterLab draws no vega-lite of the newest version itself."""
        for code, part, has_page in (
            ("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2]))", "plotly", False),
            (
                "import altair, pandas\naltair.Chart(pandas.DataFrame({'a': [1]})).mark_point().encode(x='a')",
                "vega",
                True,
            ),
        ):
            with self.subTest(part):
                events = brief(self.host.run(code))
                self.assertEqual(len(events), 1, [event[0] for event in events])
                data = events[0][1]
                types = [mime for mime in data if part in mime]
                self.assertEqual(len(types), 1, list(data))
                self.assertTrue(types[0].endswith("+json"), types)
                self.assertIsInstance(data[types[0]], dict)
                self.assertEqual("text/html" in data, has_page)

    def test_progress_bars_print(self):
        events = brief(self.host.run("from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass"))
        self.assertEqual([event[0] for event in events], ["stderr"])
        self.assertIn("3/3", events[0][1])


class IPythonDisplay(RichTest):
    def test_it_reaches_us_without_a_shell(self):
        self.check(
            "from IPython.display import display as show, HTML, JSON, Image, clear_output, update_display, DisplayHandle\n"
            "show(HTML('<b>'))\nclear_output()\nhandle = show(1, display_id='d')\nhandle.update(2)\nupdate_display(3, display_id='d')",
            ("display", {"text/html": "<b>", "text/plain": "<IPython.core.display.HTML object>"}),
            ("clear", False),
            ("display", {"text/plain": "1"}),
            ("update", {"text/plain": "2"}),
            ("update", {"text/plain": "3"}),
        )
        self.check(
            "JSON({'a': 1})",
            ("result", {"application/json": {"a": 1}, "text/plain": "<IPython.core.display.JSON object>"}),
        )
        self.check("from IPython import InteractiveShell; InteractiveShell.initialized()", plain("False"))

    def test_it_reaches_us_with_a_shell(self):
        self.host.run("%env CW=1")
        self.check(
            "from IPython.display import display as show, Markdown\nshow(Markdown('*m*'))",
            ("display", {"text/markdown": "*m*", "text/plain": "<IPython.core.display.Markdown object>"}),
        )


class Magics(RichTest):
    configure = {"prelude": True}

    def test_commands_and_their_status(self):
        self.check("!echo out; exit 3", ("stdout", "out\n"))
        self.check("_exit_code", plain("3"))
        self.check("name = 'x'\nlines = !printf '{name}\\n\\xff\\n'\nlines", plain("['x', '\ufffd']"))
        self.check("!cat")

    def test_magics_share_the_namespace_and_the_engine(self):
        self.check("x = 1\n%time y = x + 1\ny", ("stdout", self.any_text), plain("2"))
        self.check("%%time\nawait_me = 3\nawait_me + 1", ("stdout", self.any_text), plain("4"))
        self.check("import asyncio\n!true\nawait asyncio.sleep(0, 'both')", plain("'both'"))
        self.check("10", plain("10"))
        self.check("_ + 1", plain("11"))

    class AnyText:
        def __eq__(self, other):
            return isinstance(other, str)

    any_text = AnyText()

    def test_capture(self):
        self.check("%%capture out\nprint('hidden'); display(1)\n!echo also\n5")
        self.check("out.stdout, len(out.outputs)", plain("('hidden\\nalso\\n', 2)"))

    def test_shell_cells(self):
        self.check('%%bash\necho "it\'s"', ("stdout", "it's\n"))
        self.assertEqual(brief(self.host.run("%%bash\nexit 4"))[-1][:2], ("error", "CalledProcessError"))

    def test_help_is_not_coloured(self):
        text = brief(self.host.run("len?"))[0][1]
        self.assertIn("Return the number of items", text)
        self.assertNotIn("\x1b", text)

    def test_strings_and_continuations_are_left_alone(self):
        self.check('s = """\n%d items\n!ls\n"""\nn = (7\n% 3)\n%env CW=2\nn, s', ("stdout", "env: CW=2\n"),
                   plain("(1, '\\n%d items\\n!ls\\n')"))  # fmt: skip

    def test_events_and_extensions(self):
        self.check("%load_ext autoreload\n%autoreload 2")
        self.check(
            "get_ipython().events.register('post_run_cell', lambda result: print('after'))", ("stdout", "after\n")
        )
        self.check("1", ("stdout", "after\n"), plain("1"))

    def test_history_is_ours(self):
        self.host.run("%env CW=3")
        self.host.run("20 + 1")
        self.check("_, Out[2], In[2]", plain("(21, 21, '20 + 1')"))
        self.assertIn("20 + 1", brief(self.host.run("%history"))[0][1])

    def test_names_of_the_shell_are_not_the_users(self):
        self.host.run("%env CW=3\nmine = 1")
        self.assertEqual([found["name"] for found in self.host.ask(type="variables", limit=50)["variables"]], ["mine"])
        self.check("%who", ("stdout", "mine\t \n"))
        self.check("exit", plain("exit() ends the cell; the kernel and its variables stay"))

    def test_the_last_error_is_shown_again_without_our_frames(self):
        self.host.run("def f(): 1 / 0\nf()")
        ((stream, text),) = brief(self.host.run("%tb"))
        self.assertIn("ZeroDivisionError", text)
        self.assertNotIn("cellwright_runner", text)

    def test_a_variable_is_deleted(self):
        self.check("n = 5\n%xdel n\n'n' in globals()", plain("False"))

    def test_an_unknown_magic(self):
        events = self.host.run("%frobnicate")
        self.assertEqual(events[-2]["ename"], "UsageError")

    def test_formatters_that_users_register_are_used(self):
        self.host.run(
            "%env CW=1\nclass A: pass\nget_ipython().display_formatter.formatters['text/html'].for_type(A, lambda a: '<i>')"
        )
        events = brief(self.host.run("A()"))
        self.assertEqual(events[0][1]["text/html"], "<i>")

    def test_nothing_is_written_to_the_home_folder(self):
        import tempfile

        with tempfile.TemporaryDirectory() as home:
            self.env = {"HOME": home, "IPYTHONDIR": os.path.join(home, "ipython")}
            self.host.run("!true")
            found = [name for _, _, files in os.walk(home) for name in files if "hist" in name]
            self.assertEqual(found, [])

    def test_an_interrupt_stops_a_command(self):
        host = self.host
        cell = host.start("!echo ready; sleep 600")
        host.wait_for_text("ready\n")
        host.interrupt()
        events = host.finish(cell)
        self.assertEqual((events[-1]["status"], is_message(events[-2], "error")), ("interrupted", True))


if __name__ == "__main__":
    unittest.main()
