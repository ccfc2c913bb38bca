"""How long the program takes to be of use: `read` beside `/bin/true`, the first result over MCP beside `python -c pass`.

`bench/start/run.sh` builds what this needs and starts it; `--against OLD` puts another binary beside ours.

Each binary is copied first, as every way of installing does. A file that the linker has just written lies in the page
cache in single pages, and starts a fifth more slowly than the same bytes copied.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from measure import ENVIRONMENT, first_line, milliseconds, table, target  # noqa: E402

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}
CONVERSATION = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "eval", "arguments": {"code": "40 + 2"}},
    },
]
SAID = "".join(json.dumps(message) + "\n" for message in CONVERSATION).encode()


def notebook(path: Path) -> None:
    """About 200 KB, most of it outputs, as notebooks are."""
    text = ["x" * 60 + "\n"] * 20
    cells = [
        {
            "cell_type": "code",
            "execution_count": number,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": text}],
            "source": [f"print({number})\n"] * 5,
        }
        for number in range(115)
    ]
    kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernelspec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole, indent=1))


def process(*command: str) -> Callable[[], float]:
    """From start to exit."""

    def once() -> float:
        begun = time.perf_counter()
        pid = os.posix_spawn(command[0], command, ENVIRONMENT, file_actions=QUIET)
        _, status = os.waitpid(pid, 0)
        taken = time.perf_counter() - begun
        assert status == 0, (command, status)
        return taken

    return once


NOWHERE = os.open(os.devnull, os.O_RDWR)
QUIET = [(os.POSIX_SPAWN_DUP2, NOWHERE, 0), (os.POSIX_SPAWN_DUP2, NOWHERE, 1)]


def first_result(binary: str, folder: str) -> Callable[[], float]:
    """From start to the first result over MCP."""

    def once() -> float:
        begun = time.perf_counter()
        server = subprocess.Popen(
            [binary, "mcp"], cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with server:
            server.stdin.write(SAID)
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == 1:
                    break
            taken = time.perf_counter() - begun
            assert "42" in json.dumps(answer["result"]), answer
            server.stdin.close()
            server.stdout.read()
        return taken

    return once


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="counted rounds")
    parser.add_argument("--against", metavar="OLD", help="another cellwright to measure beside ours")
    arguments = parser.parse_args()
    python = sys.executable
    ENVIRONMENT["CELLWRIGHT_PYTHON"] = python  # the same for all
    binaries = {"cellwright": os.environ["CELLWRIGHT_BIN"]}
    if arguments.against:
        binaries["the other"] = arguments.against
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        notebook(path)
        contenders = {"/bin/true": process("/bin/true"), "python -c pass": process(python, "-c", "pass")}
        for number, (name, built) in enumerate(binaries.items()):
            binary = shutil.copy(built, Path(folder) / f"cellwright-{number}")
            contenders[f"{name} read"] = process(binary, "read", str(path))
            contenders[f"{name} run -c"] = process(binary, "run", "-c", "40 + 2")
            contenders[f"{name} mcp, first result"] = first_result(binary, folder)
        times = {name: [] for name in contenders}
        for number in range(arguments.rounds + 3):  # the first ones warm caches
            for name, once in contenders.items():
                taken = once()
                if number >= 3:
                    times[name].append(taken)
    best = {name: sorted(taken)[len(taken) // 4] for name, taken in times.items()}
    print(
        f"\n{first_line(binaries['cellwright'], '--version')}; lower quartile of {arguments.rounds} rounds\n"
    )
    rows = []
    verdicts = []
    for name, taken in best.items():
        beside = "/bin/true" if name.endswith("read") else "python -c pass"
        ratio = taken / best[beside]
        compared = f"{ratio:.2f}x {beside}" if name.startswith(tuple(binaries)) else ""
        rows.append([name, milliseconds(taken), compared])
        for suffix, most in [("read", 3.0), ("mcp, first result", 2.5)]:
            if name == f"cellwright {suffix}":
                verdicts.append(target(ratio <= most, f"{suffix}: at most {most}x {beside}, is {ratio:.2f}x"))
    print(table(["", "time", "beside"], rows))
    print("\n".join(verdicts))
    return int(any("MISSED" in verdict for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
