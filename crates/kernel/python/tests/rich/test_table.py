"""What a cell may hold and what comes of it, one table for three kernels: without IPython, with IPython at hand, and with
its shell in use. Cells of one group follow each other in one kernel."""

import os
import tempfile
import unittest

from test_libraries import RichTest, brief, plain


class Containing(str):
    """Equal to every text it is part of."""

    def __eq__(self, other):
        return str(self) in other

    __hash__ = str.__hash__


def out(text):
    return ("stdout", text)


def error(name, message):
    return ("error", name, Containing(message))


IMAGE = {"image/png": Containing("iVBOR"), "text/plain": Containing("<Figure size")}

TABLE = {
    "the last expression": [
        ("1 + 1", [plain("2")]),
        ("_ * 2, Out[1]", [plain("(4, 2)")]),
        ("5;", []),
        ("x = 3", []),
        ("x", [plain("3")]),
        ("None", []),
        ("print('a'); x", [out("a\n"), plain("3")]),
        ("__, ___", [plain("(3, (4, 2))")]),
        ("In[1]", [plain("'1 + 1'")]),
    ],
    "await at the top level": [
        ("import asyncio\nawait asyncio.sleep(0, 'now')", [plain("'now'")]),
        ("task = asyncio.create_task(asyncio.sleep(0, 'later'))", []),
        ("await task", [plain("'later'")]),
        ("[await asyncio.sleep(0, i) for i in range(2)]", [plain("[0, 1]")]),
    ],
    "displays": [
        ("display(1, 'a')", [("display", {"text/plain": "1"}), ("display", {"text/plain": "'a'"})]),
        ("class H:\n def _repr_html_(self): return '<b>'\n def __repr__(self): return 'H'\nH()",
         [("result", {"text/html": "<b>", "text/plain": "H"})]),
        ("h = display('old', display_id=True)", [("display", {"text/plain": "'old'"})]),
        ("h.update('new')", [("update", {"text/plain": "'new'"})]),
        ("print('a'); clear_output(wait=True); print('b')", [out("a\n"), ("clear", True), out("b\n")]),
        ("display({'text/markdown': '*m*', 'text/plain': 'm'}, raw=True)",
         [("display", {"text/markdown": "*m*", "text/plain": "m"})]),
    ],
    "figures": [
        ("import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])", [("display", IMAGE)]),
        ("_ = plt.plot([2, 1])\n1/0", [("display", IMAGE), error("ZeroDivisionError", "division by zero")]),
        ("_ = plt.plot([2, 1])\nplt.show()\nprint('after')", [("display", IMAGE), out("after\n")]),
    ],
    "errors": [
        ("def f():\n    return 1/0\nf()", [error("ZeroDivisionError", "division by zero")]),
        ("print('100%'", [error("SyntaxError", "was never closed")]),
        ("import sys\nsys.exit(3)", [error("SystemExit", "3")]),
        ("print('still here')", [out("still here\n")]),
        ("input('? ')", [error("EOFError", "nobody to answer")]),
    ],
    "classes and sources": [
        ("import pickle, inspect\nclass A:\n    n = 1", []),
        ("pickle.loads(pickle.dumps(A())).n", [plain("1")]),
        ("print(inspect.getsource(A))", [out("class A:\n    n = 1\n\n")]),
        ("def g():\n    pass\nprint(inspect.getsource(g))", [out("def g():\n    pass\n\n")]),
    ],
    "commands": [
        ("!echo out; exit 3", [out("out\n")]),
        ("_exit_code", [plain("3")]),
        ("found = !printf 'a\\nb\\n'\nlist(found)", [plain("['a', 'b']")]),
        ("name = 'Ada'\n!echo {name} $name", [out("Ada Ada\n")]),
        ("for i in range(2):\n    !echo line $i", [out("line 0\nline 1\n")]),
        ("!cat", []),
        ("%%bash\necho \"it's\"; exit 0", [out("it's\n")]),
        ("%%bash\nexit 4", [error("CalledProcessError", "status 4")]),
    ],
    "magics": [
        ("%env CW_TABLE=5", [out("env: CW_TABLE=5\n")]),
        ("import os; os.environ['CW_TABLE']", [plain("'5'")]),
        ("%cd sub", [out(Containing("/sub\n"))]),
        ("%pwd", [("result", {"text/plain": Containing("/sub'")})]),
        ("%%writefile a.py\nz = 7\n", [out("Writing a.py\n")]),
        ("%run a.py", []),
        ("z", [plain("7")]),
        ("%time y = z + 1", [out(Containing("time"))]),
        ("%%time\ny + 1", [out(Containing("time")), plain("9")]),
        ("%timeit -n 1 -r 1 1 + 1", [out(Containing("loop"))]),
        ("%who", [out(Containing("y"))]),
        ("%pip --version", [out(Containing("pip "))]),
        ("%matplotlib inline", []),
        ("len?", [out(Containing("Return the number of items in a container."))]),
    ],
    "no magics": [
        ('s = """\n%d items\n!ls\n"""\ns', [plain("'\\n%d items\\n!ls\\n'")]),
        ("n = (7\n% 3)\nn", [plain("1")]),
        ("'%s' % 1 + '!'", [plain("'1!'")]),
    ],
}  # fmt: skip


class Table(RichTest):
    configure = {"prelude": True}
    before = ""  # a cell that every group begins with

    def test_every_cell_does_what_the_table_says(self):
        for group, cells in TABLE.items():
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "sub"))
                host = self.launch()
                host.greet(cwd=folder, **self.configure)
                host.run(self.before, silent=True)
                for code, expected in cells:
                    told = brief(host.run(code))
                    with self.subTest(group=group, cell=code):
                        self.assertEqual(expected, told)


class WithIPythonAtHand(Table):
    pass


class WithIPythonInUse(Table):
    before = "get_ipython()"


class WithoutIPython(Table):
    def setUp(self):
        hide = tempfile.TemporaryDirectory()
        self.addCleanup(hide.cleanup)
        os.mkdir(os.path.join(hide.name, "IPython"))
        with open(os.path.join(hide.name, "IPython", "__init__.py"), "w") as file:
            file.write("raise ImportError('hidden for this test')")
        self.env = {"PYTHONPATH": hide.name}


del Table, RichTest

if __name__ == "__main__":
    unittest.main()
