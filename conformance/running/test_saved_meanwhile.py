"""A person saves in JupyterLab while `cellwright run` writes outputs into the same file: nothing is lost on either side.

The person is Jupyter Server's contents API, which is how JupyterLab saves. The cells wait for files, so that each save falls
into the cell it is meant for.
"""

import contextlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

import nbformat
from runs import CELLWRIGHT, active_environment, problems_of
from written.cells import Written, markdown, written

# A cell that tells that it runs, and goes on when it is told to.
GATED = """
import pathlib, time
pathlib.Path("in-{n}").touch()
while not pathlib.Path("go-{n}").exists():
    time.sleep(0.002)
print("printed by {n}")
"""


class Connection(http.client.HTTPConnection):
    """To a Unix socket: a port that was free a moment ago may be somebody else's when the server comes to it."""

    def __init__(self, path: Path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Contents:
    """A Jupyter Server's contents API."""

    def __init__(self, path: Path, token: str):
        self.path, self.token = path, token

    def ask(self, path: str, body: dict | None = None) -> dict:
        with contextlib.closing(Connection(self.path)) as connection:
            connection.request(
                "GET" if body is None else "PUT",
                f"/api/{path}",
                body=None if body is None else json.dumps(body),
                headers={"Authorization": f"token {self.token}"},
            )
            answer = connection.getresponse()
            said = answer.read()
        if answer.status not in (200, 201):
            raise AssertionError(f"{path}: {answer.status} {said.decode()}")
        return json.loads(said)

    def opened(self) -> dict:
        """What JupyterLab holds after opening the notebook."""
        return self.ask("contents/notebook.ipynb?type=notebook")["content"]

    def save(self, content: dict) -> None:
        self.ask("contents/notebook.ipynb", {"type": "notebook", "format": "json", "content": content})


@contextlib.contextmanager
def jupyter_server(folder: Path) -> Iterator[Contents]:
    path, token = folder / "server.sock", secrets.token_hex(16)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser"),
            *(f"--ServerApp.sock={path}", f"--IdentityProvider.token={token}"),
            f"--ServerApp.root_dir={folder}",
        ],
        env=os.environ | {"JUPYTER_CONFIG_DIR": str(folder / ".jupyter")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        contents = Contents(path, token)
        deadline = time.monotonic() + 60
        while True:
            try:
                contents.ask("status")
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield contents
    finally:
        server.terminate()
        server.wait()


class Run:
    """A `cellwright run` whose cells wait for us."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.process = subprocess.Popen(
            [CELLWRIGHT, "run", "notebook.ipynb", "--kernel", "runner"],
            cwd=folder,
            env=active_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def reached(self, cell: int) -> None:
        while not (self.folder / f"in-{cell}").exists():
            if self.process.poll() is not None:
                raise AssertionError(f"the run ended: {self.process.stdout.read()}")
            time.sleep(0.002)

    def go(self, cell: int) -> None:
        (self.folder / f"go-{cell}").touch()

    def ended(self) -> tuple[int, str]:
        told, _ = self.process.communicate(timeout=60)
        return self.process.returncode, told


def gated(cells: int) -> Written:
    return written("saved-meanwhile", markdown("# Title"), *(GATED.format(n=n) for n in range(cells)))


class SavedMeanwhile(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="cellwright-")))
        cls.lab = cls.enterClassContext(jupyter_server(cls.folder))

    def setUp(self) -> None:
        for path in [*self.folder.glob("in-*"), *self.folder.glob("go-*"), *self.folder.glob("*.ipynb")]:
            path.unlink()

    def notebook(self) -> nbformat.NotebookNode:
        path = self.folder / "notebook.ipynb"
        self.assertEqual([], problems_of(path))
        return nbformat.read(path, as_version=4)

    def run_of(self, cells: int) -> tuple[Run, dict]:
        """A run, and what JupyterLab opened before it."""
        nbformat.write(gated(cells).notebook(), self.folder / "notebook.ipynb")
        return self.run_opened()

    def run_opened(self) -> tuple[Run, dict]:
        opened = self.lab.opened()
        run = Run(self.folder)
        self.addCleanup(run.process.wait)
        self.addCleanup(run.process.kill)
        self.addCleanup(run.process.stdout.close)
        return run, opened

    def printed(self) -> list[str]:
        """What each code cell of the file printed."""
        code = [cell for cell in self.notebook().cells if cell.cell_type == "code"]
        return ["".join(output.text for output in cell.outputs) for cell in code]

    def test_prose_saved_with_old_outputs_and_the_run_s_outputs_are_both_kept(self) -> None:
        run, opened = self.run_of(3)
        for n in range(3):
            run.reached(n)
            opened["cells"][0]["source"] += f"\nwritten during cell {n}"
            self.lab.save(opened)  # with the outputs of before the run: the person has not reloaded
            run.go(n)
        code, told = run.ended()
        self.assertEqual(0, code, told)
        self.assertEqual([f"printed by {n}\n" for n in range(3)], self.printed())
        expected = "# Title" + "".join(f"\nwritten during cell {n}" for n in range(3))
        self.assertEqual(expected, self.notebook().cells[0].source)

    def test_outputs_find_their_cells_when_cells_were_added_moved_and_deleted(self) -> None:
        run, opened = self.run_of(3)
        run.reached(0)
        new = {"cell_type": "markdown", "id": "new-cell", "metadata": {}, "source": "new"}
        _title, first, second, third = opened["cells"]
        opened["cells"] = [new, second, first, third]
        self.lab.save(opened)
        for n in range(3):
            run.go(n)
        code, told = run.ended()
        self.assertEqual(0, code, told)
        self.assertEqual(
            ["new-cell", "cell-2", "cell-1", "cell-3"], [cell.id for cell in self.notebook().cells]
        )
        self.assertEqual(["printed by 1\n", "printed by 0\n", "printed by 2\n"], self.printed())

    def test_a_cell_that_runs_and_is_rewritten_is_the_person_s(self) -> None:
        run, opened = self.run_of(2)
        run.reached(0)
        opened["cells"][1]["source"] = "rewritten = True"
        self.lab.save(opened)
        run.go(0)
        run.go(1)
        code, told = run.ended()
        self.assertEqual(3, code, told)
        first = self.notebook().cells[1]
        self.assertEqual("rewritten = True", first.source)
        self.assertEqual([], first.outputs, "an output under code that did not make it")
        aside = [path for path in self.folder.glob("*.ipynb") if path.name != "notebook.ipynb"]
        self.assertEqual(1, len(aside), f"exit {code}, {told}; {os.listdir(self.folder)}")
        kept = json.loads(aside[0].read_bytes())
        self.assertIn("printed by 0\n", json.dumps(kept).replace("\\n", "\n"))
        self.assertIn(aside[0].name, told)

    def test_a_cell_that_is_rewritten_before_its_turn_runs_as_it_is_then(self) -> None:
        run, opened = self.run_of(3)
        run.reached(0)
        opened["cells"][2]["source"] = opened["cells"][2]["source"].replace(
            "printed by", "rewritten, printed by"
        )
        self.lab.save(opened)
        for n in range(3):
            run.go(n)
        code, told = run.ended()
        self.assertEqual(0, code, told)
        self.assertIn("cell 2 was edited", told)
        self.assertEqual(opened["cells"][2]["source"], self.notebook().cells[2].source)
        self.assertEqual(["printed by 0\n", "rewritten, printed by 1\n", "printed by 2\n"], self.printed())
        self.assertEqual([1, 2, 3], [cell.execution_count for cell in self.notebook().cells[1:]])

    def test_a_cell_that_is_rewritten_before_its_turn_and_again_while_it_runs_is_the_person_s(self) -> None:
        run, opened = self.run_of(3)
        run.reached(0)
        ran = opened["cells"][2]["source"].replace("printed by", "rewritten, printed by")
        opened["cells"][2]["source"] = ran
        self.lab.save(opened)
        run.go(0)
        run.reached(1)
        opened["cells"][2]["source"] = "again = True"
        self.lab.save(opened)
        run.go(1)
        run.go(2)
        code, told = run.ended()
        self.assertEqual(3, code, told)
        theirs = self.notebook().cells[2]
        self.assertEqual(("again = True", []), (theirs.source, theirs.outputs))
        aside = nbformat.read(self.folder / "notebook.run.ipynb", as_version=4).cells
        self.assertEqual([], problems_of(self.folder / "notebook.run.ipynb"))
        self.assertEqual(ran, aside[2].source)
        shown = ["".join(output.text for output in cell.outputs) for cell in aside[1:]]
        self.assertEqual(["printed by 0\n", "rewritten, printed by 1\n", "printed by 2\n"], shown)

    def test_a_cell_that_is_deleted_before_its_turn_does_not_run(self) -> None:
        run, opened = self.run_of(3)
        run.reached(0)
        del opened["cells"][2]
        self.lab.save(opened)
        run.go(0)
        run.go(2)
        code, told = run.ended()
        self.assertEqual(0, code, told)
        self.assertIn("cell 2 was removed", told)
        self.assertFalse((self.folder / "in-1").exists(), "it ran")
        self.assertEqual(["printed by 0\n", "printed by 2\n"], self.printed())

    def test_saves_all_the_time_lose_nothing(self) -> None:
        """Each save must be in the file, whatever is written around it."""
        saves, cells_each = 20, 3
        # Every save falls among the ends of the cells that it let go.
        cells = [
            GATED.format(n=n // cells_each).replace("printed by", f"{n} printed by")
            for n in range(saves * cells_each)
        ]
        # A save after the end of the run would be the person's word alone: the last cell waits for the last save.
        cells.append(GATED.format(n=saves))
        nbformat.write(written("busy", markdown("-1"), *cells).notebook(), self.folder / "notebook.ipynb")
        run, opened = self.run_opened()
        for save in range(saves):
            run.reached(save)
            opened["cells"][0]["source"] = str(save)
            run.go(save)
            self.lab.save(opened)
            run.reached(save + 1)  # so the cells before it have ended
            self.assertEqual(str(save), self.notebook().cells[0].source)
        run.go(saves)
        code, told = run.ended()
        self.assertEqual(0, code, told)
        expected = [f"{n} printed by {n // cells_each}\n" for n in range(saves * cells_each)]
        self.assertEqual([*expected, f"printed by {saves}\n"], self.printed())
        self.assertEqual(str(saves - 1), self.notebook().cells[0].source)


if __name__ == "__main__":
    unittest.main()
