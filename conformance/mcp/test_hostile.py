"""Input nobody should send. Each gets a clear answer, and the server lives."""

import asyncio
import json
import os
import socket
import unittest
from typing import Any

import httpx2
from jsonschema import Draft202012Validator
from serving import http_server, text
from workspace import CELLWRIGHT, Folder

CLIENT = {"name": "hostile", "version": "0"}
HUGE = "x" * 1_000_000
ODD = [
    None,
    True,
    -1,
    1e308,
    "",
    "\0",
    "a\0b",
    "\ud83d",
    "a\udc00b",
    "\ufffd",
    "\N{PILE OF POO}",
    [],
    [[]],
    {},
    {"a": {"b": []}},
    HUGE,
]
PATHS = [
    "../secret.txt",
    "/etc/passwd",
    "deep/../../secret.txt",
    "link/secret.txt",
    "link-to-file",
    "dead-link",
    "loop",
    "/dev/zero",
    "/dev/stdin",
    "pipe",
    ".",
    "..",
    "a.txt/b",
    "x" * 5000,
    "artifact://../../secret",
    "artifact://zzzzzzzz",
    "artifact://",
    "a.ipynb#99999999999999999999",
    "a.ipynb:5-3",
]


class Hostile(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        work = self.folder.path
        (work.parent / "secret.txt").write_text("secret")
        (work / "deep").mkdir()
        (work / "a.txt").write_text("a")
        (work / "a.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
        os.symlink(work.parent, work / "link")
        os.symlink(work.parent / "secret.txt", work / "link-to-file")
        os.symlink("nowhere", work / "dead-link")
        os.symlink("loop", work / "loop")
        os.mkfifo(work / "pipe")

    async def asyncSetUp(self):
        self.server = await asyncio.create_subprocess_exec(
            *[CELLWRIGHT, "mcp"],
            cwd=self.folder.path,
            env=self.folder.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 28,
        )
        self.number = 0
        await self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        )
        self.tools = (await self.ask("tools/list", {}))["result"]["tools"]

    async def asyncTearDown(self):
        self.server.stdin.close()
        await asyncio.wait_for(self.server.wait(), 20)

    async def send(self, line: bytes) -> None:
        self.server.stdin.write(line + b"\n")
        await self.server.stdin.drain()

    async def answer(self) -> dict[str, Any]:
        while True:
            answer = json.loads(await asyncio.wait_for(self.server.stdout.readline(), 60))
            if "method" not in answer:
                return answer

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        await self.send(json.dumps(request).encode())
        answer = await self.answer()
        self.assertEqual(answer.get("id"), self.number, answer)
        return answer

    async def call(self, tool: str, arguments: Any) -> tuple[bool, str]:
        """Whether it is an error, and what it says."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return True, answer["error"]["message"]
        parts = [part.get("text", "") for part in answer["result"]["content"]]
        return answer["result"].get("isError", False), "".join(parts)

    async def assert_lives(self):
        failed, said = await self.call("eval", {"code": "6 * 7"})
        self.assertFalse(failed, said)
        self.assertTrue(said.startswith("42\n"), said)

    async def test_every_parameter_missing_odd_or_huge(self):
        for tool in self.tools:
            name, properties = tool["name"], tool["inputSchema"]["properties"]
            for arguments in [{}, None, [], "x", 3, {"nonsense": 1}]:
                with self.subTest(tool=name, arguments=arguments):
                    failed, said = await self.call(name, arguments)
                    self.assertTrue(failed and said, said)
            for parameter in properties:
                for value in ODD:
                    with self.subTest(tool=name, parameter=parameter, value=str(value)[:20]):
                        arguments = {**HARMLESS[name], parameter: value}
                        failed, said = await self.call(name, arguments)
                        self.assertTrue(said)
                        self.assertLess(len(said), 100_000)
                        # What is left out may be sent as null.
                        if value is not None and not fits(value, properties[parameter]):
                            self.assertTrue(failed, said)
        await self.assert_lives()

    async def test_no_path_leads_out_or_hangs(self):
        for path in PATHS:
            for tool, arguments in [
                ("read", {}),
                ("edit", {"old": "s", "new": "t"}),
                ("write", {"content": "x"}),
                ("notebook", {"action": "insert", "source": "x"}),
            ]:
                if tool == "write" and path.startswith(("artifact", "a.ipynb")):
                    continue  # odd names, but names inside the workspace
                with self.subTest(tool=tool, path=path[:30]):
                    failed, said = await self.call(tool, {"path": path, **arguments})
                    self.assertTrue(failed, said)
                    self.assertNotIn("secret\n", said)
        self.assertEqual((self.folder.path.parent / "secret.txt").read_text(), "secret")
        await self.assert_lives()

    async def test_broken_lines_are_answered(self):
        for line in [
            b"{",
            b"nonsense",
            b"[]",
            b"3",
            b'{"jsonrpc": "2.0"}',
            b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
            b"\xff\xfe\xfd",
            b'"' + b"[" * 100_000,
            b"[" * 100_000,
        ]:
            with self.subTest(line=line[:20]):
                await self.send(line)
                answer = await self.answer()
                self.assertIn("error", answer)
        answer = await self.ask("no/such/method", {})
        self.assertEqual(answer["error"]["code"], -32601)
        answer = await self.ask("resources/read", {"uri": 3})
        self.assertEqual(answer["error"]["code"], -32602)
        await self.assert_lives()

    async def test_a_lone_surrogate_is_read_as_the_replacement_character(self):
        line = rb'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"eval","arguments":{"code":"len(\"\ud83d\")"}}}'
        await self.send(line)
        answer = await self.answer()
        self.assertEqual((answer["id"], answer["result"]["content"][0]["text"]), ("s", "1\n"))

    async def test_a_message_too_large_is_refused(self):
        await self.send(
            b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"y" * (65 << 20) + b'"}}'
        )
        self.assertIn("at most", (await self.answer())["error"]["message"])
        await self.assert_lives()


def fits(value: Any, schema: dict[str, Any]) -> bool:
    return Draft202012Validator(schema).is_valid(value)


HARMLESS: dict[str, dict[str, Any]] = {
    "eval": {"code": "1"},
    "read": {"path": "a.txt"},
    "edit": {"path": "a.txt", "old": "nothing of the kind", "new": "x"},
    "write": {"path": "written.txt", "content": "x"},
    "notebook": {"action": "clear", "path": "a.ipynb"},
    "kernel": {"action": "list"},
    "bash": {"command": "true"},
}


class HostileHttp(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    async def test_odd_requests_are_refused_and_the_server_lives(self):
        with http_server(self.folder) as server:
            json_headers = {
                "Accept": "application/json, text/event-stream",
                "Content-Type": "application/json",
            }
            headers = {**server.headers, **json_headers}
            async with httpx2.AsyncClient(timeout=60) as http:

                async def status(body: bytes, **changed: str) -> int:
                    return (
                        await http.post(server.url, headers={**headers, **changed}, content=body)
                    ).status_code

                for body, code in [
                    (b"", -32700),
                    (b"{", -32700),
                    (b"[]", -32600),
                    (b"\xff", -32700),
                    (b'{"jsonrpc": "2.0"}', -32600),
                    (b"[" * 100_000, -32700),
                    (b'"\\ud800"', -32600),
                ]:
                    with self.subTest(body=body[:20]):
                        answer = await http.post(server.url, headers=headers, content=body)
                        self.assertEqual((answer.status_code, answer.json()["error"]["code"]), (400, code))
                self.assertEqual(await status(b"x" * (65 << 20)), 413)
                self.assertIn(await status(b"{}", **{"Content-Type": "text/plain"}), range(400, 500))
                self.assertIn(await status(b"{}", **{"Mcp-Session-Id": "nonsense"}), range(400, 500))
                for method in ["PUT", "PATCH", "OPTIONS"]:
                    answer = await http.request(method, server.url, headers=headers)
                    self.assertIn(answer.status_code, range(400, 500))
            async with server.client() as client:
                self.assertTrue(text(await client.call_tool("eval", {"code": "6 * 7"})).startswith("42\n"))

    async def test_a_lone_surrogate_is_read_as_the_replacement_character(self):
        with http_server(self.folder) as server:
            async with httpx2.AsyncClient(timeout=60) as http:
                headers = {**server.headers, "Accept": "application/json, text/event-stream"}
                hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
                body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
                answer = await http.post(server.url, headers=headers, json=body)
                headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
                headers["Content-Type"] = "application/json"
                call = {"name": "eval", "arguments": {"code": "len('\ud83d')"}}
                body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
                answer = await http.post(server.url, headers=headers, content=body.encode())
                self.assertEqual(answer.status_code, 200)
                self.assertIn('"text":"1\\n"', answer.text)

    async def test_slow_senders_do_not_hold_up_others(self):
        with http_server(self.folder) as server:
            host, port = server.url.removeprefix("http://").removesuffix("/mcp").split(":")
            slow = [socket.create_connection((host, int(port))) for _ in range(100)]
            try:
                for connection in slow[:50]:
                    connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                for connection in slow[50:]:
                    head = (
                        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
                    )
                    connection.sendall(head.encode() + b"Content-Length: 1000\r\n\r\n{")
                async with server.client() as client:
                    self.assertTrue(
                        text(await client.call_tool("eval", {"code": "6 * 7"})).startswith("42\n")
                    )
            finally:
                for connection in slow:
                    connection.close()


if __name__ == "__main__":
    unittest.main()
