"""The official inspector's command line against both transports."""

import json
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from clients import NOTEBOOK, TOOLS
from serving import http_server
from workspace import CELLWRIGHT, PYTHON, Folder, node_program

# Its exit code for a tool that failed.
TOOL_FAILED = 5

IMAGE = "from PIL import Image; Image.new('RGB', (8, 8))"


class Inspector(unittest.TestCase):
    def setUp(self):
        self.inspector = str(node_program("mcp-inspector"))
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        for name in ["read.ipynb", "edit.ipynb", "cells.ipynb"]:
            (self.folder.path / name).write_text(json.dumps(NOTEBOOK))

    def inspect(self, target: list[str], *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        run = subprocess.run(
            [self.inspector, "--cli", *target, *arguments],
            cwd=self.folder.path,
            env=self.folder.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(run.returncode, exit_code, run.stdout + run.stderr)
        return json.loads(run.stdout)

    def look_around(self, target: list[str]) -> None:
        """Each look is a client of its own, so they are taken at the same time."""

        def listed() -> None:
            # By its own judgement no schema of ours is one that clients stumble over.
            tools = self.inspect(target, "--method", "tools/list", "--strict")["tools"]
            self.assertEqual([tool["name"] for tool in tools], TOOLS)

        def call(tool: str, expected: str, exit_code: int = 0, **arguments: str) -> None:
            pairs = [part for pair in arguments.items() for part in ("--tool-arg", "=".join(pair))]
            method = ["--method", "tools/call", "--tool-name", tool]
            result = self.inspect(target, *method, *pairs, exit_code=exit_code)
            self.assertEqual(result.get("isError", False), exit_code == TOOL_FAILED)
            self.assertIn(expected, json.dumps(result["content"]))

        def ask(method: str, expected: str, *arguments: str) -> None:
            self.assertIn(expected, json.dumps(self.inspect(target, "--method", method, *arguments)))

        with ThreadPoolExecutor(4) as looks:
            taken = [
                looks.submit(listed),
                looks.submit(call, "eval", '"42\\n"', code="6 * 7"),
                looks.submit(call, "eval", "ZeroDivisionError", TOOL_FAILED, code="1 / 0"),
                looks.submit(call, "eval", '"type": "image"', code=IMAGE),
                looks.submit(call, "read", "n = 10", path="read.ipynb"),
                looks.submit(call, "edit", "edited code cell 0", path="edit.ipynb", old="n", new="m"),
                looks.submit(call, "write", "created new.txt", path="new.txt", content="x"),
                looks.submit(
                    call, "notebook", "inserted code cell 1", action="insert", path="cells.ipynb", source="n"
                ),
                looks.submit(call, "kernel", "py, used by eval: ", action="kernels"),
                looks.submit(call, "bash", '"here\\n"', command="echo here"),
                looks.submit(ask, "resources/list", "read.ipynb"),
                looks.submit(ask, "resources/templates/list", "artifact://{id}"),
                looks.submit(ask, "prompts/list", '"notebook"'),
                looks.submit(
                    ask,
                    "prompts/get",
                    "n = 10",
                    "--prompt-name",
                    "notebook",
                    "--prompt-args",
                    "path=read.ipynb",
                ),
                looks.submit(ask, "logging/setLevel", "{}", "--log-level", "debug"),
            ]
        for look in taken:
            look.result()
        self.assertEqual((self.folder.path / "new.txt").read_text(), "x")

    def test_stdio(self):
        # It keeps its own environment to itself.
        self.look_around(["-e", f"CELLWRIGHT_PYTHON={PYTHON}", CELLWRIGHT, "mcp"])

    def test_http(self):
        with http_server(self.folder) as server:
            self.look_around(
                [server.url, "--transport", "http", "--header", f"Authorization: Bearer {server.token}"]
            )


if __name__ == "__main__":
    unittest.main()
