"""Many idle sessions in one `cellwright mcp`: what each costs, and whether the last one answers like the first.

    bench/scale/run.sh [COUNT]

Every session is a Python of its own that has run one cell. Memory of the Pythons is proportional (PSS): what they share is
counted once. CPU time is what the system charged while nothing was asked of them.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CELLWRIGHT = os.environ["CELLWRIGHT_BIN"]
IDLE_SECONDS = 30
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """`cellwright mcp`, spoken to line by line."""

    def __init__(self, folder: Path, count: int, variables: dict[str, str] | None = None) -> None:
        config = folder / "config/cellwright"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(f"[session]\nlimit = {count + 1}\nidle = 86400\n")
        (folder / "run").mkdir(mode=0o700)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            **(variables or {}),
        }
        self.process = subprocess.Popen(
            [CELLWRIGHT, "mcp"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last = 0
        client = {"name": "bench", "version": "0"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})

    def ask(self, method: str, params: dict) -> dict:
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last:
                return answer["result"]

    def call(self, session: int, code: str) -> dict:
        return self.ask("tools/call", {"name": "eval", "arguments": {"code": code, "session": f"s{session}"}})

    def answer(self, session: int, code: str) -> str:
        """What a cell shows, also if it failed."""
        return "\n".join(part.get("text", "") for part in self.call(session, code)["content"])

    def run(self, session: int, code: str) -> str:
        result = self.call(session, code)
        text = "\n".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            sys.exit(f"session {session}: {text}")
        return text

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def children(pid: int) -> list[int]:
    """All processes below one, at any depth."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(
                    Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def memory(pid: int, field: str) -> float:
    """Megabytes, by a line of `smaps_rollup`."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def cpu(pid: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def warm(server: Server, sessions: list[int]) -> float:
    """Milliseconds of a warm cell, the median over these sessions."""
    times = []
    for session in sessions:
        begun = time.perf_counter()
        text = server.run(session, "x")
        times.append(time.perf_counter() - begun)
        if text.split()[0] != str(session):
            sys.exit(f"session {session} answered {text}")
    return statistics.median(times) * 1000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory(prefix="cellwright-scale-") as folder:
        server = Server(Path(folder), count)
        pid = server.process.pid
        server.run(0, "x = 0")
        few = warm(server, [0] * 50)
        host_before = memory(pid, "Rss")
        begun = time.perf_counter()
        for session in range(1, count):
            server.run(session, f"x = {session}")
        started = time.perf_counter() - begun
        host_after = memory(pid, "Rss")
        kernels = children(pid)
        charged = sum(map(cpu, kernels)), cpu(pid)
        time.sleep(IDLE_SECONDS)
        idle_kernels, idle_host = sum(map(cpu, kernels)) - charged[0], cpu(pid) - charged[1]
        shared = sum(memory(kernel, "Pss") for kernel in kernels)
        threads = len(os.listdir(f"/proc/{pid}/task"))
        files = len(os.listdir(f"/proc/{pid}/fd"))
        # The first call after a rest, and one that comes soon after another.
        rested = warm(server, list(range(count)))
        many = warm(server, list(range(count)))
        begun = time.perf_counter()
        server.close()
        ended = time.perf_counter() - begun
        # The guard of the kernels ends when it has seen that all of them are gone.
        deadline = time.monotonic() + 10
        while left := [kernel for kernel in kernels if Path(f"/proc/{kernel}").exists()]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        rows = [
            ("sessions in one process", f"{count:,}"),
            (
                "starting the rest, one after another",
                f"{started:.1f} s, {started / max(count - 1, 1) * 1000:.0f} ms each",
            ),
            ("the process before and after", f"{host_before:.1f} MB, {host_after:.1f} MB"),
            ("of it for each session", f"{(host_after - host_before) / max(count - 1, 1) * 1024:.0f} kB"),
            ("Python for each session", f"{shared / count:.1f} MB"),
            ("all Pythons", f"{shared / 1024:.2f} GB in {len(kernels):,} processes"),
            (f"CPU of the process, {IDLE_SECONDS} s idle", f"{idle_host * 1000:.0f} ms"),
            (f"CPU of all Pythons, {IDLE_SECONDS} s idle", f"{idle_kernels * 1000:.0f} ms"),
            ("threads and open files of the process", f"{threads}, {files:,}"),
            ("a warm cell with one session", f"{few:.2f} ms"),
            ("with all: after the rest, and then", f"{rested:.2f} ms, {many:.2f} ms"),
            ("ending all of them", f"{ended:.1f} s"),
            ("processes left behind", str(len(left))),
        ]
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            print(f"{name:<{width}}  {value}")
        if left:
            sys.exit("processes were left behind")


if __name__ == "__main__":
    main()
