"""Clients that connect by streamable HTTP, by the official Python SDK."""

import asyncio
import re
import stat
import unittest
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
from clients import EveryClient
from mcp_types import ToolListChangedNotification
from serving import http_server, text
from workspace import PYTHON, all_gone, lives

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    },
}

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


class Http(EveryClient, unittest.IsolatedAsyncioTestCase):
    @asynccontextmanager
    async def connect(self, *arguments: str, **options):
        with http_server(self.folder, *arguments) as server:
            async with server.client(**options) as client:
                yield client

    async def test_clients_have_sessions_of_their_own(self):
        with http_server(self.folder) as server:
            async with server.client() as one, server.client() as two:
                await asyncio.gather(
                    one.call_tool("eval", {"code": "x = 'one'"}), two.call_tool("eval", {"code": "x = 'two'"})
                )
                results = await asyncio.gather(
                    one.call_tool("eval", {"code": "x"}), two.call_tool("eval", {"code": "x"})
                )
                self.assertEqual([text(result).splitlines()[0] for result in results], ["'one'", "'two'"])
                background = await one.call_tool("eval", {"code": "1", "background": True})
                handle = re.search(r"py-\d+", text(background)).group()
                seen = await two.call_tool("kernel", {"action": "wait", "handle": handle})
                self.assertTrue(seen.is_error, "another client's work must not be seen")
                listed = text(await two.call_tool("kernel", {"action": "list"}))
                self.assertEqual(listed.count("session "), 1, listed)

    async def test_a_client_that_came_while_python_failed_is_told_that_it_works(self):
        changed = asyncio.Event()

        async def message(message) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        self.folder.python = str(self.folder.path / "python")
        with http_server(self.folder, "--no-warm-up") as server:
            async with server.client() as one:
                await one.call_tool("eval", {"code": "1"})
                async with server.client(message_handler=message) as two:
                    tools = {tool.name: tool for tool in (await two.list_tools()).tools}
                    self.assertIn("Does not work at the moment", tools["eval"].description)
                    (self.folder.path / "python").symlink_to(PYTHON)
                    await one.call_tool("eval", {"code": "1"})
                    await asyncio.wait_for(changed.wait(), 30)

    async def test_a_client_that_leaves_takes_its_kernel_with_it(self):
        with http_server(self.folder) as server:
            async with server.client() as client:
                result = await client.call_tool("eval", {"code": "import os\nos.getpid()"})
                pid = int(text(result).splitlines()[0])
            await asyncio.wait_for(all_gone([pid]), 30)

    async def test_a_server_that_is_told_to_end_leaves_nothing_behind(self):
        code = "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)"
        with http_server(self.folder) as server:
            async with server.client() as client:
                cell = await client.call_tool("eval", {"code": code})
                command = await client.call_tool("bash", {"command": "sleep 600 > /dev/null & echo $!"})
                pids = [int(text(result).split()[0]) for result in (cell, command)]
                self.assertTrue(all(lives(pid) for pid in pids))
                server.process.terminate()
                self.assertEqual(await asyncio.to_thread(server.process.wait, 20), 0)
        await asyncio.wait_for(all_gone(pids), 30)

    async def test_the_token_is_stored_for_its_owner_alone_and_removed(self):
        with http_server(self.folder) as server:
            port = server.url.removesuffix("/mcp").rsplit(":", 1)[1]
            stored = self.folder.home / f"runtime/cellwright/mcp-token-127.0.0.1-{port}"
            self.assertEqual(stored.read_text().strip(), server.token)
            self.assertEqual(stat.S_IMODE(stored.stat().st_mode), 0o600)
        self.assertFalse(stored.exists())

    async def test_a_token_file_that_is_named_stays_and_is_used_again(self):
        stored = self.folder.path / "token"
        with http_server(self.folder, "--token-file", str(stored)) as server:
            token = server.token
        self.assertEqual(stored.read_text().strip(), token)
        with http_server(self.folder, "--token-file", str(stored)) as server:
            self.assertEqual(server.token, token)

    async def test_strangers_are_turned_away(self):
        with http_server(self.folder) as server:
            headers = {"Accept": "application/json, text/event-stream", **server.headers}
            async with httpx2.AsyncClient() as http:

                async def status(**changed: str | None) -> int:
                    sent = {
                        name: value for name, value in {**headers, **changed}.items() if value is not None
                    }
                    return (await http.post(server.url, headers=sent, json=HELLO)).status_code

                self.assertEqual(await status(), 200)
                self.assertEqual(await status(Authorization=None), 401)
                self.assertEqual(await status(Authorization="Bearer " + "x" * len(server.token)), 401)
                self.assertEqual(await status(Authorization=server.token), 401)
                self.assertEqual(await status(Host="evil.example"), 403)
                self.assertEqual(await status(Origin="https://evil.example"), 403)
                self.assertEqual(await status(Host="localhost:1"), 200)
                get = await http.get(server.url.replace("/mcp", "/"), headers=headers)
                self.assertEqual(get.status_code, 404)

    async def test_clients_that_left_without_a_word_make_room(self):
        with http_server(self.folder) as server:
            headers = {"Accept": "application/json, text/event-stream", **server.headers}
            async with server.client() as client, httpx2.AsyncClient() as http:
                await client.call_tool("eval", {"code": "kept = 42"})
                left = [await http.post(server.url, headers=headers, json=HELLO) for _ in range(70)]
                self.assertEqual({answer.status_code for answer in left}, {200})
                # A client that listens has not left.
                self.assertTrue(text(await client.call_tool("eval", {"code": "kept"})).startswith("42\n"))
                gone = {**headers, "Mcp-Session-Id": left[0].headers["Mcp-Session-Id"]}
                self.assertEqual((await http.post(server.url, headers=gone, json=PING)).status_code, 404)
                stays = {**headers, "Mcp-Session-Id": left[-1].headers["Mcp-Session-Id"]}
                self.assertEqual((await http.post(server.url, headers=stays, json=PING)).status_code, 200)

    async def test_one_client_too_many_is_told_when_all_others_listen(self):
        with http_server(self.folder) as server:
            headers = {"Accept": "application/json, text/event-stream", **server.headers}
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(limits=limits) as http, AsyncExitStack() as streams:
                for _ in range(64):
                    answer = await http.post(server.url, headers=headers, json=HELLO)
                    here = {**headers, "Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
                    await http.post(server.url, headers=here, json=INITIALIZED)
                    stream = await streams.enter_async_context(
                        http.stream("GET", server.url, headers=here, timeout=None)
                    )
                    self.assertEqual(stream.status_code, 200)
                refused = await http.post(server.url, headers=headers, json=HELLO)
                self.assertEqual(refused.status_code, 503)
                self.assertIn("too many clients", refused.text)
                self.assertEqual((await http.delete(server.url, headers=here)).status_code, 204)
                answer = await http.post(server.url, headers=headers, json=HELLO)
                self.assertEqual(answer.status_code, 200)

    async def test_an_origin_can_be_let_in(self):
        with http_server(self.folder, "--origin", "https://good.example") as server:
            headers = {"Accept": "application/json, text/event-stream", **server.headers}
            async with httpx2.AsyncClient() as http:
                for origin, answer in [("https://good.example", 400), ("https://evil.example", 403)]:
                    response = await http.post(
                        server.url, headers={**headers, "Origin": origin}, content=b"{"
                    )
                    self.assertEqual(response.status_code == 403, answer == 403, origin)


if __name__ == "__main__":
    unittest.main()
