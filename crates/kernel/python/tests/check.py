"""Runs the runner's tests: `python tests/check.py [-j JOBS] [PYTHON...]`, with this Python when none is named.

Each PYTHON runs the tests that need the standard library only, JOBS of them at a time. The tests with IPython and the
data libraries run in this Python: call it with the one of `target/venv`, which `scripts/check.sh` makes.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
UNITTESTS = os.path.join(HERE, "../../../../scripts/unittests.py")


def main() -> int:
    options = argparse.ArgumentParser(description="Runs the runner's tests.")
    options.add_argument("-j", "--jobs", type=int, default=1, help="how many Pythons run at a time")
    options.add_argument("pythons", nargs="*", metavar="PYTHON")
    given = options.parse_args()
    suites = [(sys.executable, os.path.join(HERE, "rich"))]
    suites += [(python, HERE) for python in given.pythons or [sys.executable]]
    with ThreadPoolExecutor(given.jobs) as pool:
        failed = [suite for suite, passed in zip(suites, pool.map(run, suites)) if not passed]
    print("FAILED: %s" % ", ".join("%s in %s" % (folder, python) for python, folder in failed) if failed else "OK")
    return 1 if failed else 0


def run(suite) -> bool:
    python, folder = suite
    done = subprocess.run([python, UNITTESTS, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.decode("utf-8", "replace").rstrip().splitlines()
    passed = done.returncode == 0
    shown = lines[-2] if passed else "\n" + "\n".join(lines)
    print("%s %s: %s" % (os.path.basename(folder), python, shown), flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
