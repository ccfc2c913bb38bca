"""JupyterLab with our kernel in it, and a notebook open in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import nbformat
from browser import Browser

ROOT = Path(__file__).resolve().parents[2]
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(ROOT / "target/debug/cellwright"))
AGENT = [sys.executable, str(ROOT / "crates/testkit/src/fault_agent.py")]
WIDGETS = "@jupyter-widgets/jupyterlab-manager"
SHOTS = os.environ.get("CELLWRIGHT_LAB_SHOTS")

# How a saved notebook names a widget.
WIDGET = "application/vnd.jupyter.widget-view+json"

# The panel of the open notebook, and its cell number N.
PANEL = "window.jupyterapp.shell.currentWidget"


def cell(number: int) -> str:
    return f"{PANEL}.content.widgets[{number}]"


class Lab:
    def __init__(self, agent: list[str] | None = None, *, tools: str = "none") -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="cellwright-lab-", ignore_cleanup_errors=True)
        self.home = Path(self.folder.name)
        settings = self.home / ".config/cellwright/config.toml"
        settings.parent.mkdir(parents=True)
        command, *arguments = agent or [*AGENT, "--store", str(self.home / "sessions.json")]
        settings.write_text(
            f"[agents.fault]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
        )
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "JUPYTERLAB_SETTINGS_DIR": str(self.home / "settings"),
        }
        for name in [name for name in environment if name.startswith(("XDG_", "CELLWRIGHT_", "ACP_"))]:
            del environment[name]
        # Most agents of these tests use no MCP servers, and would be waited for.
        environment["CELLWRIGHT_AGENT_TOOLS"] = "notebook" if agent else tools
        self.environment = environment
        install = [CELLWRIGHT, "kernel", "install", "--agent", "fault", "--name", "agent"]
        subprocess.run(install, check=True, env=environment, stdout=subprocess.DEVNULL)
        options = [
            "--no-browser",
            "--expose-app-in-browser",
            "--ServerApp.port=0",
            "--ServerApp.ip=127.0.0.1",
        ]
        options += ["--IdentityProvider.token=t", "--LabApp.news_url=", "--allow-root"]
        self.server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={self.home}"],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=self.home,
        )
        self.log: list[str] = []
        for line in self.server.stderr:
            self.log.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                break
        else:
            raise RuntimeError("".join(self.log))
        self.address = found[0]
        self.reader = threading.Thread(target=lambda: self.log.extend(self.server.stderr), daemon=True)
        self.reader.start()
        self.browser = Browser()

    def close(self) -> None:
        self.browser.close()
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()

    @property
    def page_config(self) -> Path:
        """What pages are made from that are opened from here on: the server reads it for each."""
        return self.home / ".jupyter/labconfig/page_config.json"

    def extension(self, action: str) -> str:
        """Installs or removes the extension, and gives what the command says."""
        command = [CELLWRIGHT, "lab", action]
        return subprocess.run(
            command, check=True, env=self.environment, capture_output=True, text=True
        ).stdout

    def without_widgets(self) -> None:
        self.page_config.parent.mkdir(parents=True, exist_ok=True)
        self.page_config.write_text(json.dumps({"disabledExtensions": {WIDGETS: True}}))

    def with_widgets(self) -> None:
        self.page_config.unlink()

    def notebook(self, name: str, *prompts: str) -> None:
        """A notebook with these cells, open and with its kernel ready."""
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(prompt) for prompt in prompts]
        notebook.metadata.kernelspec = {"name": "agent", "display_name": "Agent", "language": "agent"}
        nbformat.write(notebook, self.home / f"{name}.ipynb")
        self.browser.open(f"{self.address}/lab/workspaces/{name}/tree/{name}.ipynb?token=t&reset")
        kernel = f"{PANEL}.sessionContext.session.kernel"
        self.browser.until(f"{PANEL}.context.path == '{name}.ipynb' && {kernel}.status == 'idle'")

    def start(self, number: int = 0) -> None:
        self.browser.js(f"{PANEL}.content.activeCellIndex = {number}; 0")
        self.browser.js("window.jupyterapp.commands.execute('notebook:run-cell'); 0")

    def finished(self, number: int = 0) -> str:
        """Waits for the cell's end and gives what it shows."""
        self.browser.until(
            f"{cell(number)}.model.executionCount && {cell(number)}.model.executionState != 'running'"
        )
        self.browser.until(f"{PANEL}.sessionContext.session.kernel.status == 'idle'")
        return self.shown(number)

    def shown(self, number: int = 0) -> str:
        return self.browser.js(f"{cell(number)}.outputArea.node.innerText")

    def shows(self, text: str, number: int = 0) -> None:
        self.browser.until(f"{cell(number)}.outputArea.node.innerText.includes({json.dumps(text)})")

    def saved(self, name: str) -> nbformat.NotebookNode:
        """The notebook as it is on disk after saving it."""
        self.browser.js("window.jupyterapp.commands.execute('docmanager:save')")
        notebook = nbformat.read(self.home / f"{name}.ipynb", as_version=4)
        nbformat.validate(notebook)
        return notebook


class LabTest(unittest.TestCase):
    """Tests that share one JupyterLab."""

    # Whether agents get the tools of the notebook, which makes their first prompt wait.
    TOOLS = "none"

    @classmethod
    def setUpClass(cls) -> None:
        cls.lab = Lab(tools=cls.TOOLS)
        cls.addClassCleanup(cls.lab.close)

    def look(self, name: str) -> None:
        """Keeps a picture of the page, if `CELLWRIGHT_LAB_SHOTS` names a folder."""
        if SHOTS:
            self.lab.browser.look(Path(SHOTS) / f"{name}.png")
