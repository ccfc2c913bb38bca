"""What someone waits for at a notebook of an agent: the kernel's start, the first word of an answer, a long answer.

Beside the kernel that seed 003 describes, as it is on PyPI, and beside ipykernel where it does the same. All are driven over
Jupyter's messages by jupyter_client, and the agents' kernels talk to the same agent. bench/agent-kernel/run.sh starts this.
"""

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from measure import ENVIRONMENT, first_line, megabytes, milliseconds, table, target  # noqa: E402

CELLWRIGHT = os.environ["CELLWRIGHT_BIN"]
PEERS = WORKSPACE / "target/bench-agent-kernel-venv/bin/python"
AGENT = [sys.executable, str(HERE / "agent.py")]
OURS, THEIRS, IPYKERNEL = "cellwright", "agent-client-kernel", "ipykernel"
CHUNKS, SIZE = 100_000, 50
TIMEOUT = 600
WARM = 20


@dataclass
class Contender:
    name: str
    command: list[str]
    """What follows is the connection file."""
    arguments: list[str]
    say: str
    """A cell whose output is the word behind `%s`."""
    chunks: str
    environment: dict[str, str] = field(default_factory=dict)
    start: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    long: list[float] = field(default_factory=list)
    lost: int = 0
    idle_bytes: int = 0
    resident_bytes: int = 0
    peak_bytes: int = 0


CONTENDERS = [
    Contender(OURS, [CELLWRIGHT, "kernel", "run", "-f"], ["--", *AGENT], "say %s", "chunks"),
    Contender(
        THEIRS,
        [str(PEERS), "-m", "agent_client_kernel", "-f"],
        [],
        "say %s",
        "chunks",
        {"ACP_AGENT_COMMAND": AGENT[0], "ACP_AGENT_ARGS": " ".join(AGENT[1:])},
    ),
    Contender(
        IPYKERNEL,
        [str(PEERS), "-m", "ipykernel_launcher", "-f"],
        [],
        "print('%s')",
        f"for number in range({CHUNKS}): print(f'{{number}} '.ljust({SIZE - 1}, 'x'))",
    ),
]


@contextlib.contextmanager
def kernel(contender: Contender, folder: Path) -> Iterator[tuple[BlockingKernelClient, int, float]]:
    """A kernel that has said what it is, its process, and how long that took."""
    file, _ = write_connection_file(str(folder / f"{contender.name}.json"))
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.output = None
    with open(folder / f"{contender.name}.log", "wb") as log:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [*contender.command, file, *contender.arguments],
            cwd=folder,
            env=ENVIRONMENT | contender.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        # ZeroMQ tries again after 100 ms where nobody listens yet; that would be measured instead.
        while not listens(client.shell_port):
            if process.poll() is not None:
                raise RuntimeError(Path(log.name).read_text()[-2000:])
        client.start_channels(stdin=False, hb=False, iopub=False)
        # Read directly: the channels of jupyter_client wait by an event loop of their own, once for each message.
        client.output = client.connect_iopub()
        client.output.rcvtimeo = TIMEOUT * 1000
        client.kernel_info()
        client.get_shell_msg(timeout=TIMEOUT)
        took = time.perf_counter() - begun
        yield client, process.pid, took
    finally:
        client.shutdown()
        if client.output:
            client.output.close(0)
        client.stop_channels()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.unlink(file)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            return True
    time.sleep(0.001)
    return False


def run(client: BlockingKernelClient, code: str, word: str = "") -> tuple[float, float, str]:
    """How long until the word was there, how long until the cell was over, and all that it shows."""
    begun = time.perf_counter()
    message_id = client.execute(code, allow_stdin=False)
    shown: dict[str, str] = {}
    first = 0.0
    while True:
        _, message = client.session.recv(client.output, mode=0)
        if message["parent_header"].get("msg_id") != message_id:
            continue
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            break
        if kind in ("stream", "display_data", "update_display_data", "execute_result"):
            text = (
                content.get("text") or content["data"].get("text/markdown") or content["data"]["text/plain"]
            )
            display = content.get("transient", {}).get("display_id") or f"#{len(shown)}"
            shown[display] = text
            if word and not first and word in text:
                first = time.perf_counter() - begun
        elif kind == "error":
            raise RuntimeError(content["evalue"])
    reply = client.get_shell_msg(timeout=TIMEOUT)
    assert reply["content"]["status"] == "ok", reply["content"]
    return first, time.perf_counter() - begun, "".join(shown.values())


def memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def round_of(contender: Contender, folder: Path, counted: bool, long: bool) -> None:
    with kernel(contender, folder) as (client, pid, start):
        # Messages of a kernel are lost to a client whose subscription it has not seen yet.
        warm_up(client, contender.say % "ready")
        contender.idle_bytes = max(contender.idle_bytes, memory(pid, "VmRSS"))
        firsts = []
        for number in range(WARM):
            word = f"word-{number}"
            first, _, text = run(client, contender.say % word, word)
            assert word in text, text
            firsts.append(first)
        took = 0.0
        if long:
            _, took, text = run(client, contender.chunks)
            whole = sum(line.endswith("xx") and len(line) == SIZE - 1 for line in text.splitlines())
            contender.lost = max(contender.lost, CHUNKS - whole)
            contender.resident_bytes = max(contender.resident_bytes, memory(pid, "VmRSS"))
            contender.peak_bytes = max(contender.peak_bytes, memory(pid, "VmHWM"))
        if counted:
            contender.start.append(start)
            contender.first.extend(firsts)
            if long:
                contender.long.append(took)


def warm_up(client: BlockingKernelClient, code: str) -> None:
    """Until one cell was seen from its beginning to its end."""
    client.execute(code, allow_stdin=False)
    client.get_shell_msg(timeout=TIMEOUT)
    time.sleep(1)
    while client.output.poll(0):
        client.session.recv(client.output)
    run(client, code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds of start and first word")
    parser.add_argument("--long-rounds", type=int, default=2, help="counted rounds of the long answer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.rounds + 1):
            for contender in CONTENDERS:
                round_of(contender, Path(name), number > 0, number in range(1, options.long_rounds + 1))
    ours, theirs, ipykernel = CONTENDERS
    version = "from importlib.metadata import version; print(version('%s'))"
    versions = [f"{peer.name} {first_line(PEERS, '-c', version % peer.name)}" for peer in (theirs, ipykernel)]
    print(
        f"\n{first_line(CELLWRIGHT, '--version')}, {', '.join(versions)}; medians of {options.rounds} rounds\n"
    )
    rows, verdicts = [], []
    for heading, measure, wanted in [
        ("start to kernel_info", "start", 15),
        ("a warm cell to its first word", "first", 3),
        ("100,000 chunks of 50 bytes", "long", 20),
    ]:
        times = [statistics.median(getattr(contender, measure)) for contender in CONTENDERS]
        ratio = times[1] / times[0]
        rows.append([heading, *map(milliseconds, times), f"{ratio:,.0f}x"])
        verdicts.append(target(ratio >= wanted, f"{heading}: at least {wanted}x faster, is {ratio:,.1f}x"))
    rows.append(["  of them lost", *(f"{contender.lost:,}" for contender in CONTENDERS), ""])
    for heading, measure in [
        ("memory after a first cell", "idle_bytes"),
        ("memory after the long answer", "resident_bytes"),
        ("memory at its largest", "peak_bytes"),
    ]:
        sizes = [getattr(contender, measure) for contender in CONTENDERS]
        rows.append([heading, *map(megabytes, sizes), f"{sizes[1] / sizes[0]:,.1f}x"])
    verdicts.append(target(ours.lost == 0, f"nothing of the long answer is lost, {ours.lost:,} were"))
    size = max(ours.idle_bytes, ours.resident_bytes)
    verdicts.append(target(size < 30e6, f"under 30 MB of memory, is {megabytes(size)}"))
    print(table(["", OURS, THEIRS, IPYKERNEL, "ratio to the peer"], rows))
    print("\n" + "\n".join(verdicts))
    return any(verdict.startswith("MISSED") for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main())
