"""Runs the runner's tests: `python tests/check.py [PYTHON...]`, with this Python when none is named.

Each PYTHON runs the tests that need the standard library only. The tests with IPython and the data libraries follow
once, in the interpreter that CELLWRIGHT_TEST_PYTHON names (default: `target/venv`, which `scripts/check.sh` makes).
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
UNITTESTS = os.path.join(HERE, "../../../../scripts/unittests.py")


def main(pythons: list) -> int:
    failed = []
    for python in pythons or [sys.executable]:
        print("%s: " % python, end="", flush=True)
        failed += run(python, HERE)
    print("with libraries: ", end="", flush=True)
    failed += run(sys.executable, os.path.join(HERE, "rich"))
    print("failed: %s" % ", ".join(failed) if failed else "all passed")
    return 1 if failed else 0


def run(python: str, folder: str) -> list:
    done = subprocess.run([python, UNITTESTS, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.decode("utf-8", "replace").rstrip().splitlines()
    steady = done.returncode == 0 and lines[-1].startswith("OK")
    print(lines[-3] if steady else "\n" + "\n".join(lines))
    return ["%s in %s" % (folder, python)] if done.returncode else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
