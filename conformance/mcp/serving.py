"""The server under test, reached the two ways clients reach it."""

import logging
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, ImageContent, TextContent
from workspace import CELLWRIGHT, Folder

# What the test runner's debug mode and a connection's end make others say is nothing to look at.
logging.getLogger("asyncio").setLevel(logging.ERROR)
logging.getLogger("mcp").setLevel(logging.CRITICAL)


def stdio_server(folder: Folder, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=CELLWRIGHT, args=["mcp", *arguments], cwd=str(folder.path), env=folder.environment
    )


@dataclass
class HttpServer:
    url: str
    token: str
    process: subprocess.Popen

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @asynccontextmanager
    async def client(self, **options) -> AsyncIterator[Client]:
        async with (
            create_mcp_http_client(headers=self.headers) as http,
            Client(streamable_http_client(self.url, http_client=http), **options) as client,
        ):
            yield client


@contextmanager
def http_server(folder: Folder, *arguments: str) -> Iterator[HttpServer]:
    """A server that listens; it says where, and the token, on stderr."""
    command = [CELLWRIGHT, "mcp", "--http", "127.0.0.1:0", *arguments]
    environment = folder.environment
    process = subprocess.Popen(command, cwd=folder.path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        url = re.fullmatch(r"listening on (\S+)\n", process.stderr.readline()).group(1)
        token = re.fullmatch(r"token: (\S+)\n", process.stderr.readline()).group(1)
        process.stderr.readline()
        yield HttpServer(url, token, process)
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stderr.close()


def text(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


def images(result: CallToolResult) -> list[ImageContent]:
    return [part for part in result.content if isinstance(part, ImageContent)]
