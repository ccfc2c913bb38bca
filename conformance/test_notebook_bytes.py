"""No byte changes that nobody edited: awkward and real notebooks through the `cellwright` binary.

Every notebook of the corpus and every one made by the libraries in `notebooks/make.py` is read as text and
written back, whole and with one cell edited at a time. Python's JSON scanner and nbformat's schemas judge.
"""

import difflib
import json
import re
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

from nbformat.validator import iter_validate
from notebooks.json_spans import blanked, cells_with_spans
from notebooks.make import make, split_at_newlines
from workspace import CELLWRIGHT, WORKSPACE

CORPUS = WORKSPACE / "crates/notebook/tests/corpus"

MARKER = re.compile(rb"^# %% \[(?:code|markdown|raw)\] cell:\d+$", re.MULTILINE)
NEW_LINE = "# a line nobody had"


def cellwright(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    run = subprocess.run([CELLWRIGHT, *map(str, arguments)], input=stdin, capture_output=True)
    if run.returncode:
        raise AssertionError(f"cellwright {' '.join(map(str, arguments))}: {run.stderr.decode()}")
    return run.stdout


def with_new_first_lines(text: bytes) -> Iterator[bytes]:
    """The marked text once per cell, that cell with a new first line."""
    for marker in MARKER.finditer(text):
        yield text[: marker.end()] + b"\n" + NEW_LINE.encode() + text[marker.end() :]


class Bytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.made = make(cls.folder / "made")
        cls.fixtures = sorted(CORPUS.glob("*.ipynb"))
        cls.notebooks = {path: path.read_bytes() for path in cls.fixtures + cls.made}

    def copy(self, path: Path) -> Path:
        copy = self.folder / f"copy-of-{path.name}"
        copy.write_bytes(self.notebooks[path])
        return copy

    def test_there_is_a_corpus(self) -> None:
        self.assertGreaterEqual(len(self.fixtures), 40)
        self.assertEqual(len(self.made), 11)

    def test_reading_and_writing_back_changes_no_byte(self) -> None:
        for path, before in self.notebooks.items():
            with self.subTest(path.name):
                copy = self.copy(path)
                cellwright("write", copy, "-", "--force", stdin=cellwright("read", copy))
                self.assertEqual(before, copy.read_bytes())

    def test_editing_one_cell_changes_only_that_cell(self) -> None:
        for path, before in self.notebooks.items():
            text = cellwright("read", self.copy(path))
            cells = cells_with_spans(before.decode())
            edits = list(with_new_first_lines(text))
            self.assertEqual(len(cells), len(edits), f"{path.name}: one marker a cell")
            for index, edit in enumerate(edits):
                with self.subTest(path.name, cell=index):
                    copy = self.copy(path)
                    cellwright("write", copy, "-", "--force", stdin=edit)
                    self.assert_only_cell_changed(index, before.decode(), copy.read_bytes().decode())

    def assert_only_cell_changed(self, index: int, before: str, after: str) -> None:
        old, new = cells_with_spans(before)[index], cells_with_spans(after)[index]
        results = {"outputs", "execution_count"}
        is_code = old.value["cell_type"] == "code"
        had, has = results & old.value.keys(), results & new.value.keys()
        self.assertEqual(results if is_code else set(), has, "an edited cell has what its type requires")
        if had == has:
            edited = ["source", *results] if is_code else ["source"]
            self.assertEqual(blanked(before, old, edited), blanked(after, new, edited))
        else:
            others = {key: value for key, value in old.value.items() if key not in {"source", *results}}
            self.assertEqual(others, {key: value for key, value in new.value.items() if key in others})

        old_source, new_source = old.value["source"], new.value["source"]
        self.assertIs(type(old_source), type(new_source), "an array stays an array, a string a string")
        self.assertEqual(f"{NEW_LINE}\n{''.join(old_source)}", "".join(new_source))
        if old.value["cell_type"] == "code":
            self.assertFalse(new.value.get("outputs"))
            self.assertIsNone(new.value.get("execution_count"))

        if valid(before):
            self.assertTrue(valid(after))

    def test_a_new_line_in_a_notebook_jupyter_wrote_is_one_added_line_of_json(self) -> None:
        for path in self.made:
            text = cellwright("read", self.copy(path))
            before = self.notebooks[path].decode()
            for index, edit in enumerate(with_new_first_lines(text)):
                cell = cells_with_spans(before)[index].value
                if cell.get("outputs") or cell.get("execution_count"):
                    continue  # clearing these changes other lines, as the test above shows
                # nbformat splits at every Unicode line end, we split at `\n`: such a source is split anew.
                if not cell["source"] or cell["source"] != split_at_newlines("".join(cell["source"])):
                    continue
                with self.subTest(path.name, cell=index):
                    copy = self.copy(path)
                    cellwright("write", copy, "-", "--force", stdin=edit)
                    diff = difflib.ndiff(before.split("\n"), copy.read_bytes().decode().split("\n"))
                    changes = [line for line in diff if line[0] in "+-"]
                    self.assertEqual([f'+     "{NEW_LINE}\\n",'], changes)


def valid(text: str) -> bool:
    """Strict: `nbformat.validate` itself repairs missing and repeated ids before it looks."""
    notebook = json.loads(text.removeprefix("\ufeff"))
    ids = [cell["id"] for cell in notebook["cells"] if "id" in cell]
    return not any(iter_validate(notebook)) and len(ids) == len(set(ids))


if __name__ == "__main__":
    unittest.main()
