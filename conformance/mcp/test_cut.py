"""Connections that break while a reply is on its way, with the official clients for Python and TypeScript."""

import asyncio
import json
import unittest
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from serving import HttpServer, http_server, text
from workspace import NODE_PROGRAMS, Folder

TYPESCRIPT = NODE_PROGRAMS.parent / "@modelcontextprotocol/client/dist/index.mjs"

# After how many bytes of an answer's body the connection breaks: in its first event, between events, in the reply. If it
# breaks in the headers, the Python client ends with an exception of its own, whatever a server does.
MOMENTS = range(1, 520, 20)


@dataclass
class BreakingProxy:
    """Passes bytes to the server and back. The answer to each call of a tool breaks off after some bytes."""

    server: HttpServer
    moments: list[int] = field(default_factory=lambda: list(MOMENTS))
    # By call: whether its client had learnt by what to ask for the rest.
    was_resumable: list[bool] = field(default_factory=list)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self.server.url)
        there, back = await asyncio.open_connection(address.hostname, address.port)
        moment: int | None = None
        seen = b""

        async def forth() -> None:
            nonlocal moment, seen
            while chunk := await reader.read(65536):
                if b'"tools/call"' in chunk:
                    moment, seen = self.moments.pop(0), b""
                back.write(chunk)
                await back.drain()

        async def answer() -> None:
            nonlocal moment, seen
            while chunk := await there.read(65536):
                if moment is not None:
                    before, seen = len(seen), seen + chunk
                    headers, _, body = seen.partition(b"\r\n\r\n")
                    end = len(headers) + 4 + moment
                    if len(body) >= moment:
                        writer.write(chunk[: end - before])
                        await writer.drain()
                        self.was_resumable.append(b"\n\n" in body[:moment])
                        return
                    if body.endswith(b"0\r\n\r\n"):
                        self.was_resumable.append(True)  # all of it arrived
                        moment = None
                writer.write(chunk)
                await writer.drain()

        ways = [asyncio.create_task(forth()), asyncio.create_task(answer())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        back.transport.abort()
        writer.close()


@asynccontextmanager
async def breaking(server: HttpServer):
    proxy = BreakingProxy(server)
    listener = await asyncio.start_server(proxy.connection, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy, f"http://127.0.0.1:{port}/mcp"
    finally:
        listener.close()


class BrokenConnections(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def judge(self, proxy: BreakingProxy, results: list[str]) -> None:
        self.assertEqual(len(proxy.was_resumable), len(MOMENTS))
        for call, (result, was_resumable) in enumerate(zip(results, proxy.was_resumable, strict=True)):
            # A client that has seen nothing cannot know what to ask for. It learns that the call failed.
            if was_resumable or not result.startswith("failed: "):
                self.assertTrue(result.startswith(f"{call * 2}\n"), f"call {call}: {result}")
        self.assertGreater(sum(proxy.was_resumable), len(MOMENTS) // 2)

    async def test_the_python_client_gets_every_reply_whose_connection_broke(self):
        with http_server(self.folder) as server:
            async with (
                breaking(server) as (proxy, url),
                create_mcp_http_client(headers=server.headers) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                results = []
                for call in range(len(MOMENTS)):
                    try:
                        asked = client.call_tool("eval", {"code": f"print({call} * 2)"})
                        results.append(text(await asyncio.wait_for(asked, 20)))
                    except MCPError as error:
                        results.append(f"failed: {error}")
                self.judge(proxy, results)

    async def test_the_typescript_client_gets_every_reply_whose_connection_broke(self):
        with http_server(self.folder) as server:
            async with breaking(server) as (proxy, url):
                script = __file__.replace("test_cut.py", "cut_client.mjs")
                node = await asyncio.create_subprocess_exec(
                    "node",
                    script,
                    str(TYPESCRIPT),
                    url,
                    server.token,
                    str(len(MOMENTS)),
                    stdout=asyncio.subprocess.PIPE,
                )
                out, _ = await asyncio.wait_for(node.communicate(), 240)
                self.judge(proxy, json.loads(out))

    async def test_a_reply_that_came_while_its_client_was_away_is_there_when_it_is_back(self):
        with http_server(self.folder) as server:
            async with (
                breaking(server) as (proxy, url),
                create_mcp_http_client(headers=server.headers) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                # Breaks after the first event. The cell ends before the client is back.
                proxy.moments = [60]
                code = "import time\ntime.sleep(0.2)\nprint('over')"
                result = await asyncio.wait_for(client.call_tool("eval", {"code": code}), 20)
                self.assertTrue(text(result).startswith("over\n"), text(result))


if __name__ == "__main__":
    unittest.main()
