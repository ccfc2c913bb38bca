"""One client on stdin and stdout, by the official Python SDK."""

import asyncio
import json
import subprocess
import unittest
from contextlib import AbstractAsyncContextManager

from clients import EveryClient
from mcp import Client
from serving import stdio_server
from workspace import CELLWRIGHT, all_gone, lives


class Stdio(EveryClient, unittest.IsolatedAsyncioTestCase):
    def connect(self, *arguments: str, **options) -> AbstractAsyncContextManager[Client]:
        return Client(stdio_server(self.folder, *arguments), **options)

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [CELLWRIGHT, "mcp", *arguments],
            cwd=self.folder.path,
            env=self.folder.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def leave_something_running(self, server: subprocess.Popen) -> list[int]:
        """A cell's child, and what a shell command left; their process ids."""
        code = "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)"
        calls = [("eval", {"code": code}), ("bash", {"command": "sleep 600 > /dev/null & echo $!"})]
        requests = [
            {"method": "initialize", "id": 0, "params": INITIALIZE},
            {"method": "notifications/initialized"},
            *(
                {"method": "tools/call", "id": number, "params": {"name": name, "arguments": arguments}}
                for number, (name, arguments) in enumerate(calls, 1)
            ),
        ]
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        server.stdin.flush()
        pids = []
        while len(pids) < len(calls):
            answer = json.loads(server.stdout.readline())
            if answer.get("id") in (1, 2):
                pids.append(int(answer["result"]["content"][0]["text"]))
        return pids

    async def test_end_of_input_and_sigterm_leave_nothing_behind(self):
        for end in [lambda server: server.stdin.close(), lambda server: server.terminate()]:
            server = self.start()
            pids = self.leave_something_running(server)
            self.assertTrue(all(lives(pid) for pid in pids))
            end(server)
            self.assertEqual(await asyncio.to_thread(server.wait, 20), 0)
            server.stdin.close()
            server.stdout.close()
            await all_gone(pids)

    async def test_a_killed_server_leaves_nothing_behind(self):
        server = self.start()
        pids = self.leave_something_running(server)
        server.kill()
        server.wait()
        server.stdout.close()
        server.stdin.close()
        await all_gone(pids)

    def test_piped_requests_are_answered_before_the_end(self):
        requests = [
            {"jsonrpc": "2.0", "method": "initialize", "id": 0, "params": INITIALIZE},
            {
                "jsonrpc": "2.0",
                "method": "tools/call",
                "id": 1,
                "params": {"name": "read", "arguments": {"path": "notes.txt"}},
            },
        ]
        (self.folder.path / "notes.txt").write_text("what was noted\n")
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        # The last line may lack its end, as a file's may.
        for piped in [lines, lines.rstrip("\n")]:
            server = self.start()
            answers, _ = server.communicate(piped, timeout=30)
            self.assertIn("what was noted", answers)
            self.assertEqual(server.returncode, 0)


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "0"},
}


if __name__ == "__main__":
    unittest.main()
