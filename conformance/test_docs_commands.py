"""Every command on the task pages runs, and in README and installing.md those that can run here.

A page's commands run in order, in one fresh folder with a home of its own, as a reader would type them. What cannot run in
a test is listed here with the reason. A command that is neither run nor listed fails the test.
"""

import json
import os
import re
import shlex
import subprocess
import unittest
from pathlib import Path

from workspace import CELLWRIGHT, WORKSPACE, Folder

PAGES = [
    *sorted((WORKSPACE / "docs/guides").glob("*.md")),
    WORKSPACE / "docs/installing.md",
    WORKSPACE / "README.md",
]

# Beginnings of commands that do not run here, and why.
LEFT_OUT = {
    "cargo ": "builds for minutes; the build itself is what runs these tests",
    "scripts/check.sh": "it runs this test",
    "scripts/wheel.sh": "builds for minutes; scripts/release.sh runs it and tries the wheel",
    "pip install target/wheels": "scripts/wheel_test.py does it on every Python",
    "uv tool install": "the same as pip's, and uv is not here",
    "docker ": "there is no Docker engine here, as the page says",
    "npm install -g": "installs an agent for the machine",
    "cellwright self uninstall --yes": "removes what other tests use; tests of `self` do it in a home of their own",
    "cellwright kernel install     #": "README; the page on JupyterLab runs it",
    "cellwright attach  ": "watches until a person leaves; tests at a terminal drive it",
    "export CELLWRIGHT_GATEWAY_URL": "an example's address; tests of gateways start real ones",
    "cellwright run --kernel gateway": "needs that gateway",
}

FENCE = re.compile(r"^ *```(sh|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """The commands of a page. Of a console, lines with `$ ` and those that continue them.

    >>> commands("```sh\\na  # why\\nb \\\\\\n  c\\n```\\n```console\\n$ d 'e\\nf'\\nprinted\\n```\\n")
    ['a  # why', 'b \\\\\\n  c', "d 'e\\nf'"]
    """
    found = []
    for kind, block in FENCE.findall(page):
        lines = block.splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
        lines = [line[indent:] for line in lines]
        while lines:
            line = lines.pop(0)
            if kind == "console" and not line.startswith("$ "):
                continue
            line = line.removeprefix("$ ")
            while lines and not is_whole(line):
                line += "\n" + lines.pop(0)
            if line.strip():
                found.append(line)
    return found


def is_whole(command: str) -> bool:
    """Whether no quote and no line is open."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


def notebook(path: Path, *cells: tuple[str, str]) -> None:
    """A notebook that ran: sources, and what they printed."""
    made = [{"cell_type": "markdown", "id": "top", "metadata": {}, "source": "# A study"}]
    for number, (source, printed) in enumerate(cells):
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        tags = {"tags": ["parameters"]} if number == 0 else {}
        cell = {"cell_type": "code", "id": f"c{number}", "metadata": tags, "source": source}
        made.append(cell | {"execution_count": number + 1, "outputs": outputs})
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    text = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text, indent=1) + "\n")


class Commands(unittest.TestCase):
    def folder(self) -> tuple[Path, dict[str, str]]:
        """What the pages assume: a repository with a notebook, more in `notebooks/`, and the program on PATH."""
        folder = Folder()
        self.addCleanup(folder.close)
        self.addCleanup(folder.end_daemon)
        notebook(folder.path / "analysis.ipynb", ("n = 10\nprint(n)", "10\n"))
        (folder.path / "x.py").write_text("print(6 * 7)\n")
        (folder.path / "notebooks").mkdir()
        for name in ("one", "two"):
            notebook(folder.path / f"notebooks/{name}.ipynb", ("n = 10\nprint(n)", "10\n"), ("n + 1", ""))
        for name in ("one", "two"):
            path = folder.path / f"notebooks/{name}.ipynb"
            text = json.loads(path.read_text())
            result = {"output_type": "execute_result", "metadata": {}, "execution_count": 2}
            text["cells"][2]["outputs"] = [result | {"data": {"text/plain": "11"}}]
            path.write_text(json.dumps(text, indent=1))
        programs = folder.home / "bin"
        programs.mkdir()
        (programs / "cellwright").symlink_to(CELLWRIGHT)
        for place in (
            ".local/share/bash-completion/completions",
            ".zfunc",
            ".config/fish/completions",
            ".config/nushell/autoload",
        ):
            (folder.home / place).mkdir(parents=True)
        environment = folder.environment | {
            "PATH": f"{programs}:{Path(folder.python).parent}:{os.environ['PATH']}"
        }
        environment |= {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_PAGER": "cat"}
        environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        for command in ("git init -q", "git add .", "git commit -q -m start"):
            subprocess.run(command.split(), cwd=folder.path, env=environment, check=True)
        return folder.path, environment

    def test_every_command_of_the_pages_runs(self) -> None:
        used = set()
        for page in PAGES:
            found = commands(page.read_text())
            folder, environment = None, {}
            for command in found:
                left_out = next((start for start in LEFT_OUT if command.startswith(start)), None)
                if left_out:
                    used.add(left_out)
                    continue
                if folder is None:
                    folder, environment = self.folder()
                with self.subTest(page=page.name, command=command):
                    done = subprocess.run(
                        ["bash", "-c", command],
                        cwd=folder,
                        env=environment,
                        capture_output=True,
                        text=True,
                        stdin=subprocess.DEVNULL,
                        timeout=120,
                    )
                    self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(set(), LEFT_OUT.keys() - used, "these are left out and on no page")

    def test_the_pages_have_commands(self) -> None:
        for page in PAGES:
            self.assertTrue(commands(page.read_text()), page.name)


if __name__ == "__main__":
    unittest.main()
