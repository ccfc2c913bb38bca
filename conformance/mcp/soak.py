"""Many calls at once over HTTP: 50 at a time on 10 sessions, for a while.

No reply may be lost, none may show another session's output, and the server's memory has to come back. The test suite
runs it for some seconds; `python conformance/mcp/soak.py 60` for as long as one likes.
"""

import asyncio
import sys
import time
from dataclasses import dataclass

from serving import HttpServer, http_server, text
from workspace import Folder

SESSIONS = 10
PARALLEL = 50
# Bytes by which the server's memory may differ from what it settled at.
GROWTH = 8_000_000


@dataclass
class Outcome:
    calls: int
    wrong: list[str]
    before: int
    after: int

    @property
    def memory_came_back(self) -> bool:
        """What a request leaves behind would show: there were hundreds."""
        return self.after < self.before + GROWTH

    def __str__(self) -> str:
        return (
            f"{self.calls} calls, {len(self.wrong)} wrong; "
            f"server memory {self.before / 1e6:.1f} MB before, {self.after / 1e6:.1f} MB after"
        )


def memory(server: HttpServer) -> int:
    """Bytes the server itself keeps, kernels not counted."""
    with open(f"/proc/{server.process.pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Private_Dirty:"))


async def soak(seconds: float, warm_up_rounds: int, least: int = 0) -> Outcome:
    """Lasts so long, and until each client has made the least of calls.

    Clients come and go in the rounds before: what the server's memory settles at is its start.
    """
    folder = Folder()
    try:
        with http_server(folder) as server:
            for _ in range(warm_up_rounds):
                await run_clients(server, 1.0)
            before = memory(server)
            calls, wrong = await run_clients(server, seconds, least)
            await asyncio.sleep(2)  # sessions that were closed are gone by then
            return Outcome(calls, wrong, before, memory(server))
    finally:
        folder.close()


async def run_clients(server: HttpServer, seconds: float, least: int = 0) -> tuple[int, list[str]]:
    deadline = time.monotonic() + seconds
    results = await asyncio.gather(
        *(run_client(server, number, deadline, least) for number in range(SESSIONS))
    )
    return sum(calls for calls, _ in results), [line for _, wrong in results for line in wrong]


async def run_client(server: HttpServer, number: int, deadline: float, least: int) -> tuple[int, list[str]]:
    async with server.client() as client:
        await client.call_tool("eval", {"code": f"me = {number}"})
        calls, wrong = 1, []
        tags = iter(range(1, sys.maxsize))

        async def caller() -> None:
            nonlocal calls
            while time.monotonic() < deadline or calls < least:
                tag = next(tags)
                code = f"print('{tag} ' * 50); (me, {tag})"
                said = text(await client.call_tool("eval", {"code": code, "timeout": 120}))
                calls += 1
                expected = f"{tag} " * 50 + f"\n({number}, {tag})\n"
                if not said.startswith(expected):
                    wrong.append(f"session {number} got {said[:200]!r}")

        await asyncio.gather(*(caller() for _ in range(PARALLEL // SESSIONS)))
        return calls, wrong


if __name__ == "__main__":
    outcome = asyncio.run(soak(float(sys.argv[1]) if len(sys.argv) > 1 else 60, warm_up_rounds=15))
    print(outcome)
    sys.exit(bool(outcome.wrong) or not outcome.memory_came_back)
