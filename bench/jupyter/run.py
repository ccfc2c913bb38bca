"""Our zmq client beside jupyter_client, on the same ipykernel: start, warm execute, 100 MB, a reader that pauses.

`run.py PYTHON OURS`: the Python that has ipykernel and jupyter_client, and the built `bench_jupyter`. Contenders take turns.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

python, ours = sys.argv[1:3]
CONTENDERS = {
    "cellwright": [ours, python],
    "jupyter_client": [python, Path(__file__).with_name("peer.py")],
}
ROUNDS = {"start": 7, "warm": 5, "stdout": 5, "lines": 2}
LINES = 20_000


# What our launcher tells ipykernel, too: how much of the difference it makes.
IN_MEMORY = "--HistoryManager.hist_file=:memory:"


def once(command: list, mode: str, *arguments: str) -> dict:
    done = subprocess.run([*command, mode, *arguments], capture_output=True, text=True, timeout=300)
    if done.returncode:
        # A client that waits for an idle that was thrown away never ends: that is a result, too.
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def median(results: list, field: str) -> float:
    return statistics.median(result[field] for result in results if "failed" not in result)


def main() -> None:
    found: dict = {}
    for mode, rounds in ROUNDS.items():
        for _ in range(rounds):
            for name, command in CONTENDERS.items():
                found.setdefault((mode, name), []).append(once(command, mode))

            if mode == "warm":
                result = once(CONTENDERS["jupyter_client"], mode, IN_MEMORY)
                found.setdefault((mode, IN_MEMORY), []).append(result)

    rows = [("start to first result, s", "start", "seconds"), ("warm execute, s", "warm", "seconds")]
    rows += [
        ("100 MB of stdout, s", "stdout", "seconds"),
        ("  client's peak memory, KiB", "stdout", "peak_kib"),
    ]
    print(f"{'':34}{'cellwright':>14}{'jupyter_client':>16}{'ratio':>8}")
    figures = {}
    for title, mode, field in rows:
        us, them = (median(found[mode, name], field) for name in CONTENDERS)
        figures[mode, field] = them / us
        print(f"{title:34}{us:14.4g}{them:16.4g}{them / us:8.2f}")
    in_memory = median(found["warm", IN_MEMORY], "seconds")
    print(f"jupyter_client with {IN_MEMORY}: warm execute {in_memory:.4g} s")
    kept = {}
    for name in CONTENDERS:
        results = found["lines", name]
        kept[name] = min(result.get("lines", 0) for result in results)
        failures = {result["failed"] for result in results if "failed" in result}
        print(f"{name}: {kept[name]} of {LINES} flushed lines after a pause of 2 s {'; '.join(failures)}")

    whole = all(result.get("bytes") == 100_000_100 for result in found["stdout", "cellwright"])
    targets = {
        "starts no slower": figures["start", "seconds"] >= 1,
        "warm execute at least 1.2 times as fast": figures["warm", "seconds"] >= 1.2,
        "and no slower than with the history in memory": in_memory
        >= median(found["warm", "cellwright"], "seconds"),
        "100 MB at least as fast": figures["stdout", "seconds"] >= 1,
        "with at most half the memory": figures["stdout", "peak_kib"] >= 2,
        "and nothing lost": whole,
        "a reader that pauses loses nothing": kept["cellwright"] == LINES,
    }
    print()
    for target, met in targets.items():
        print(f"{'met   ' if met else 'MISSED'}  {target}")


main()
