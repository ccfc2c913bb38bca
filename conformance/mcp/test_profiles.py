"""Replies shaped for the clients that are known, told by the names that those clients use."""

import asyncio
import unittest
from contextlib import AbstractAsyncContextManager

from mcp import Client
from mcp_types import Implementation
from serving import images, stdio_server, text
from workspace import Folder

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n1 / 0"
PRINTS = "import time\nfor number in range(20): print(number, flush=True); time.sleep(0.05)"


class Profiles(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def connect(self, name: str) -> AbstractAsyncContextManager[Client]:
        return Client(
            stdio_server(self.folder), client_info=Implementation(name=name, version="1"), mode="legacy"
        )

    async def progress_of(self, name: str) -> list[str]:
        heard: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append(message)

        async with self.connect(name) as client:
            result = await client.call_tool("eval", {"code": PRINTS}, progress_callback=progress)
            self.assertIn("19\n", text(result))
        return heard

    async def test_qwen_code_gets_no_progress_and_others_do(self):
        for name, expects in [("qwen-cli-mcp-client-cellwright", False), ("another", True)]:
            heard = await self.progress_of(name)
            self.assertEqual(bool(heard), expects, (name, heard))
            self.assertLessEqual(len(heard), 3, "at most one a second")

    async def test_a_plot_of_a_failing_call_arrives(self):
        # Whether the reply is flagged as an error: several clients drop the images of those that are.
        for name, is_flagged in [
            ("claude-code", False),
            ("gemini-cli-mcp-client", False),
            ("opencode", False),
            ("codex-mcp-client", True),
            ("another", True),
        ]:
            async with self.connect(name) as client:
                result = await client.call_tool("eval", {"code": PLOT, "timeout": 120})
                self.assertEqual(len(images(result)), 1, name)
                self.assertIn("ZeroDivisionError", text(result))
                self.assertEqual(bool(result.is_error), is_flagged, name)
                if not is_flagged:
                    self.assertIn("[this call failed", text(result))
                    self.assertEqual(result.meta["cellwright/isError"], True)
                self.assertEqual("artifact://" in text(result), name == "another")
                # Without an image the failure is flagged for everyone.
                self.assertTrue((await client.call_tool("eval", {"code": "1 / 0"})).is_error, name)

    async def test_no_client_gets_a_structured_copy_unless_it_asks(self):
        for name in ["claude-code", "codex-mcp-client", "qwen-cli-mcp-client", "another"]:
            async with self.connect(name) as client:
                self.assertIsNone((await client.call_tool("eval", {"code": "41"})).structured_content)
                meta = {"cellwright/structuredContent": True}
                asked = await client.call_tool("eval", {"code": "41"}, meta=meta)
                self.assertEqual(asked.structured_content["cells"][0]["status"], "ok")

    async def test_long_output_fits_and_says_where_the_rest_is(self):
        code = "for line in range(200_000): print('line', line)"
        for name, most in [("codex-mcp-client", 12_000), ("claude-code", 25_000), ("another", 25_000)]:
            async with self.connect(name) as client:
                result = await client.call_tool("eval", {"code": code, "timeout": 120})
                shown = text(result)
                self.assertLess(len(shown), most, name)
                first, last = result.content[0].text, result.content[-1].text
                self.assertIn("Full output: artifact://", first)
                self.assertEqual(first, last)
        async with self.connect("opencode") as client:
            shown = text(await client.call_tool("eval", {"code": "print('\\n' * 10_000)"}))
            self.assertLess(len(shown.splitlines()), 2_000)

    async def test_claude_code_is_told_which_tools_to_load_and_how_much_to_show(self):
        async with self.connect("claude-code") as client:
            hints = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
            self.assertTrue(hints["eval"]["anthropic/alwaysLoad"])
            self.assertTrue(hints["notebook"]["anthropic/alwaysLoad"])
            self.assertNotIn("anthropic/alwaysLoad", hints["bash"])
            self.assertGreater(hints["read"]["anthropic/maxResultSizeChars"], 50_000)
        async with self.connect("another") as client:
            self.assertEqual({tool.meta for tool in (await client.list_tools()).tools}, {None})

    async def test_a_call_that_waits_for_another_gives_signs_of_life(self):
        heard = asyncio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if "waits for" in message:
                (self.folder.path / "go").touch()
                heard.set()

        async with self.connect("another") as client:
            begun = asyncio.Event()

            async def first(done: float, total: float | None, message: str | None) -> None:
                begun.set()

            code = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)"
            one = asyncio.create_task(client.call_tool("eval", {"code": code}, progress_callback=first))
            await asyncio.wait_for(begun.wait(), 30)
            two = asyncio.create_task(client.call_tool("eval", {"code": "2"}, progress_callback=progress))
            await asyncio.wait_for(heard.wait(), 30)
            await asyncio.gather(one, two)


if __name__ == "__main__":
    unittest.main()
