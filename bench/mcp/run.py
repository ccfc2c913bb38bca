"""How long an agent waits: for the list of tools, for the first result, for each one after; beside jupyter-mcp-server.

Both are started by the official Python SDK over stdio, and both run code in a live kernel. jupyter-mcp-server has its Jupyter
Server running before the clock starts. bench/mcp/run.sh builds what this needs and starts it.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from measure import ENVIRONMENT, first_line, milliseconds, table, target  # noqa: E402

CELLWRIGHT = os.environ["CELLWRIGHT_BIN"]
PEER = WORKSPACE / "target/bench-mcp-venv/bin"
OURS, THEIRS = "cellwright", "jupyter-mcp-server"
TOKEN = "measured"


@dataclass
class Contender:
    name: str
    command: StdioServerParameters
    tool: str
    warm_calls: int
    listed: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    list_bytes: int = 0


async def round_of(contender: Contender) -> tuple[float, float, list[float]]:
    """From start to the list, from start to the first result, and the calls after."""
    start = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        async with Client(stdio_client(contender.command, errlog=nowhere)) as client:
            tools = (await client.list_tools()).tools
            listed = time.perf_counter() - start
            contender.list_bytes = len(
                json.dumps([tool.model_dump(exclude_none=True, by_alias=True) for tool in tools])
            )
            await one(client, contender.tool)
            first = time.perf_counter() - start
            warm = []
            for _ in range(contender.warm_calls):
                begun = time.perf_counter()
                await one(client, contender.tool)
                warm.append(time.perf_counter() - begun)
    return listed, first, warm


async def one(client: Client, tool: str) -> None:
    result = await client.call_tool(tool, {"code": "1"})
    assert not result.is_error and result.content[0].text.strip() == "1", result


async def in_turns(contenders: list[Contender], rounds: int) -> None:
    """The first round warms caches and is not counted."""
    for number in range(rounds + 1):
        for contender in contenders:
            listed, first, warm = await round_of(contender)
            if number > 0:
                contender.listed.append(listed)
                contender.first.append(first)
                contender.warm.extend(warm)


def server_time(folder: Path, calls: int) -> float:
    """What a warm call takes on our side: a line written, a line read, no SDK between. Median of `calls`."""
    server = subprocess.Popen(
        [CELLWRIGHT, "mcp"],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    with server:
        answers = server.stdout

        def ask(number: int, method: str, params: dict) -> dict:
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            while True:
                line = b""
                while not line.endswith(b"\n"):
                    line += answers.read(65536)
                answer = json.loads(line.splitlines()[-1])
                if answer.get("id") == number:
                    return answer

        client = {"name": "bench", "version": "0"}
        ask(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        call = {"name": "eval", "arguments": {"code": "1"}}
        ask(1, "tools/call", call)
        times = []
        for number in range(2, calls + 2):
            begun = time.perf_counter()
            ask(number, "tools/call", call)
            times.append(time.perf_counter() - begun)
        server.stdin.close()
    return statistics.median(times)


@contextmanager
def jupyter_server(folder: Path) -> Iterator[str]:
    """A Jupyter Server that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [PEER / "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    settings = [
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.port_retries=0",
    ]
    with open(folder / "server.log", "w") as log:
        server = subprocess.Popen(
            [*command, *settings],
            cwd=folder,
            env=peer_environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        while True:
            try:
                urllib.request.urlopen(f"{url}/api/kernels?token={TOKEN}").read()
                break
            except OSError:
                if server.poll() is not None:
                    raise RuntimeError((folder / "server.log").read_text()[-2000:]) from None
                time.sleep(0.1)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def peer_environment() -> dict[str, str]:
    return {**ENVIRONMENT, "PATH": f"{PEER}{os.pathsep}{ENVIRONMENT['PATH']}"}


def median_row(heading: str, ours: float, theirs: float, wanted: float) -> tuple[list[str], str]:
    ratio = theirs / ours
    row = [heading, milliseconds(ours), milliseconds(theirs), f"{ratio:,.0f}x"]
    return row, target(ratio >= wanted, f"{heading}: at least {wanted:.0f}x faster, is {ratio:,.0f}x")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds of both")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ours = Contender(
            OURS,
            StdioServerParameters(command=CELLWRIGHT, args=["mcp"], cwd=name, env=ENVIRONMENT),
            "eval",
            100,
        )
        with jupyter_server(folder) as url:
            arguments = ["start", "--transport", "stdio", "--jupyter-url", url, "--jupyter-token", TOKEN]
            command = StdioServerParameters(
                command=str(PEER / "jupyter-mcp-server"), args=arguments, cwd=name, env=peer_environment()
            )
            theirs = Contender(THEIRS, command, "execute_code", 5)
            asyncio.run(in_turns([ours, theirs], rounds))
        own_time = server_time(folder, 500)
    version = first_line(
        PEER / "python", "-c", "from importlib.metadata import version; print(version('jupyter-mcp-server'))"
    )
    print(f"\n{first_line(CELLWRIGHT, '--version')}, {THEIRS} {version}; medians of {rounds} rounds\n")
    rows, verdicts = [], []
    for heading, measure, wanted in [
        ("start to the list of tools", "listed", 50),
        ("start to the first result", "first", 30),
        ("a warm call", "warm", 50),
    ]:
        row, verdict = median_row(
            heading,
            statistics.median(getattr(ours, measure)),
            statistics.median(getattr(theirs, measure)),
            wanted,
        )
        rows.append(row)
        verdicts.append(verdict)
    rows.append(["a warm call without the SDK", milliseconds(own_time), "", ""])
    rows.append(
        [
            "the list of tools, bytes",
            f"{ours.list_bytes:,}",
            f"{theirs.list_bytes:,}",
            f"{theirs.list_bytes / ours.list_bytes:.1f}x",
        ]
    )
    verdicts.append(
        target(own_time < 0.002, f"a warm call: under 2 ms of server time, is {milliseconds(own_time)}")
    )
    print(table(["", OURS, THEIRS, "ratio"], rows))
    print("\n" + "\n".join(verdicts))
    return any(verdict.startswith("MISSED") for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main())
