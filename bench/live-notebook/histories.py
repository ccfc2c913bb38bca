"""Many random histories of a person and an agent at one notebook, for a machine that has the time.

    target/venv/bin/python bench/live-notebook/histories.py --histories 40 --steps 20

Exits with 1 if anything was lost, doubled, or shown under code that did not make it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "conformance/lab"))

from histories import History
from lab import Lab

BRIDGES = ("extension", "injected", "nothing")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--histories", type=int, default=40)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--bridge", choices=BRIDGES, action="append")
    asked = arguments.parse_args()
    wrong = 0
    lab = Lab()
    try:
        for bridge in asked.bridge or BRIDGES:
            lab.extension("install" if bridge == "extension" else "uninstall")
            began, changes, refused = time.monotonic(), 0, 0
            for seed in range(asked.seed, asked.seed + asked.histories):
                history = History(lab, f"{bridge}-{seed}", seed, bridge)
                found = history.run(asked.steps)
                answers = [event["answer"] for event in history.events if event["by"] == "agent"]
                changes += sum("done" in answer for answer in answers)
                refused += sum("error" in answer for answer in answers)
                wrong += bool(found)
                for problem in found:
                    print(f"{bridge}, seed {seed}: {problem}")
            took = time.monotonic() - began
            print(
                f"{bridge}: {asked.histories} histories in {took:.0f} s; the agent made {changes} changes "
                f"and was refused {refused}",
                flush=True,
            )
    finally:
        lab.close()
    print("nothing was lost" if not wrong else f"{wrong} histories went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
