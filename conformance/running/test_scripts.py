"""`cellwright export --to py`: Jupytext reads the same cells back."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from runs import CELLWRIGHT, WORKSPACE

TOUR = WORKSPACE / "examples/tour.ipynb"
CELLS = [
    new_markdown_cell("# Title\n\n- a list\n\n    indented\n\n#hash"),
    new_code_cell("import os  # comment\n\n\nx = 1", metadata={"tags": ["parameters"]}),
    new_code_cell("%matplotlib inline\n%time y = x\n!ls -l\nfor i in range(3):\n    !echo {i}"),
    new_code_cell("%%bash\nls -l\necho '# %%'"),
    new_code_cell("%%html\n<b>bold</b>"),
    new_code_cell("text = '''\n%not a magic\n!nor this\n'''\ntext"),
    new_code_cell('"""one""" + "# no comment"\n# a comment'),
    new_raw_cell("raw *text*"),
    new_code_cell("def f():\n    '''Doc.'''\n    return 1\n\n\nf()"),
]


class Scripts(unittest.TestCase):
    def check(self, notebook: nbformat.NotebookNode) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cellwright-")))
        path = folder / "a.ipynb"
        nbformat.write(notebook, path)
        run = subprocess.run([CELLWRIGHT, "export", str(path), "--to", "py"], capture_output=True, text=True)
        self.assertEqual((0, ""), (run.returncode, run.stderr))
        back = jupytext.read(folder / "a.py")
        of = [(cell.cell_type, cell.source.strip("\n"), cell.metadata.get("tags")) for cell in notebook.cells]
        again = [(cell.cell_type, cell.source.strip("\n"), cell.metadata.get("tags")) for cell in back.cells]
        self.assertEqual(of, again)

    def test_jupytext_reads_the_same_cells(self) -> None:
        self.check(new_notebook(cells=CELLS))

    def test_jupytext_reads_the_tour(self) -> None:
        self.check(nbformat.read(TOUR, as_version=4))


if __name__ == "__main__":
    unittest.main()
