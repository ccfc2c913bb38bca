"""What the protocol has beside tools: versions, subscriptions, completion, answers to bad requests."""

import asyncio
import json
import subprocess
import unittest
import warnings

from clients import NOTEBOOK
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import PromptReference, ResourceTemplateReference, ResourceUpdatedNotification
from serving import stdio_server, text
from test_stdio import INITIALIZE
from workspace import CELLWRIGHT, Folder


class Protocol(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        (self.folder.path / "deep").mkdir()
        self.notebook = self.folder.path / "deep/n.ipynb"
        self.notebook.write_text(json.dumps(NOTEBOOK))

    def connect(self, **options) -> Client:
        return Client(stdio_server(self.folder), **options)

    async def test_the_newest_version_keeps_variables_between_calls(self):
        async with self.connect(mode="2026-07-28") as client:
            await client.call_tool("eval", {"code": "x = 41"})
            self.assertTrue(text(await client.call_tool("eval", {"code": "x + 1"})).startswith("42\n"))
            refused = await client.call_tool("eval", {"code": "input('who? ')"})
            self.assertTrue(refused.is_error)

    async def test_a_client_that_can_ask_its_user_gets_a_version_with_questions(self):
        async def answer(context, params):
            raise NotImplementedError

        async with self.connect() as client:
            self.assertEqual(client.protocol_version, "2026-07-28")
        async with self.connect(elicitation_callback=answer) as client:
            self.assertEqual(client.protocol_version, "2025-11-25")

    async def test_a_change_of_a_notebook_is_announced(self):
        changed: asyncio.Queue[str] = asyncio.Queue()

        async def message(message) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                changed.put_nowait(str(message.params.uri))

        async with self.connect(message_handler=message, mode="legacy") as client:
            uri = self.notebook.as_uri()
            await client.subscribe_resource(uri)
            edit = {"path": "deep/n.ipynb", "old": "n = 10", "new": "n = 11"}
            await client.call_tool("read", {"path": "deep/n.ipynb"})
            await client.call_tool("edit", edit)
            self.assertEqual(await asyncio.wait_for(changed.get(), 30), uri)
            await client.unsubscribe_resource(uri)
            with self.assertRaises(MCPError):
                await client.subscribe_resource("file:///etc/passwd")

    async def test_paths_of_notebooks_are_completed(self):
        async with self.connect(mode="legacy") as client:
            prompt = PromptReference(name="notebook")
            found = await client.complete(prompt, {"name": "path", "value": "de"})
            self.assertEqual(found.completion.values, ["deep/n.ipynb"])
            self.assertEqual(
                (await client.complete(prompt, {"name": "path", "value": "x"})).completion.values, []
            )
            files = ResourceTemplateReference(uri="file://{path}")
            found = await client.complete(files, {"name": "path", "value": str(self.folder.path)})
            self.assertEqual(found.completion.values, [str(self.notebook)])
            with self.assertRaises(MCPError):
                await client.complete(PromptReference(name="none"), {"name": "path", "value": ""})

    def test_every_request_with_a_readable_id_is_answered_by_it(self):
        hello = {"jsonrpc": "2.0", "method": "initialize", "id": 0, "params": INITIALIZE}
        call = {"name": "read", "arguments": {"path": "none"}}
        requests = [
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": "x", **call}}),
            json.dumps({"jsonrpc": "1.0", "id": 2, "method": "ping"}),
            '{"jsonrpc": "2.0", "id": 9223372036854775808, "method": "ping"}',
            '{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
            json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "x"}}),
            json.dumps({**hello, "id": 4}),
        ]
        lines = ["\ufeff" + json.dumps(hello), *requests]
        server = subprocess.Popen(
            [CELLWRIGHT, "mcp", "--no-warm-up"],
            cwd=self.folder.path,
            env=self.folder.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        out, _ = server.communicate("".join(line + "\n" for line in lines), timeout=60)
        answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines()) if "id" in answer}
        self.assertIn("result", answers[0])
        for number in [1, 2, 9223372036854775808, 1.5, 3, 4]:
            self.assertIn("error", answers[number], number)

    async def test_instructions_name_all_seven_tools(self):
        async with self.connect(mode="legacy") as client:
            for tool in ["eval", "notebook", "read", "edit", "write", "bash", "kernel"]:
                self.assertIn(f"`{tool}`", client.instructions)
            self.assertIn("instead of your own notebook tools", client.instructions)
            self.assertLess(len(client.instructions), 2_000)

    async def test_a_server_that_only_edits_runs_nothing(self):
        async with Client(stdio_server(self.folder, "--tools", "edit-only"), mode="legacy") as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            self.assertEqual(tools, ["read", "edit", "write", "notebook"])
            self.assertNotIn("`eval`", client.instructions)
            for arguments in [
                {"action": "run", "path": "deep/n.ipynb"},
                {"action": "insert", "path": "deep/n.ipynb", "source": "1", "run": True},
            ]:
                refused = await client.call_tool("notebook", arguments)
                self.assertIn("the tool mode is edit-only", text(refused))
            for tool, arguments in [
                ("eval", {"code": "1"}),
                ("bash", {"command": "ls"}),
                ("kernel", {"action": "list"}),
            ]:
                self.assertIn("is not offered", text(await client.call_tool(tool, arguments)))
            self.assertEqual(json.loads(self.notebook.read_text()), NOTEBOOK)


if __name__ == "__main__":
    unittest.main()
