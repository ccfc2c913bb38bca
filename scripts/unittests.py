"""Runs folders of tests: `python scripts/unittests.py [-j JOBS] FOLDER...`; needs Python 3.8 and nothing else.

Every test module runs in a process of its own, JOBS of them at a time (one, unless told). A module gets one line when it
passes and all it printed when it fails. Nothing is tried twice: a test that passes now and then is a failure.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

# A test that takes longer is named, with its time, so that it is seen where the time goes.
SLOW = 5.0


def main() -> int:
    options = argparse.ArgumentParser(description="Runs folders of tests.")
    options.add_argument("-j", "--jobs", type=int, default=1, help="how many modules run at a time")
    options.add_argument("--module", help=argparse.SUPPRESS)  # what this script runs itself with
    options.add_argument("folders", nargs="+")
    given = options.parse_args()
    if given.module:
        return run_here(given.folders[0], given.module)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    modules = [(folder, name) for folder in given.folders for name in modules_in(folder)]
    for folder in given.folders:
        if not any(folder == where for where, _ in modules):
            print(f"no tests in {folder}")
            return 1
    begun = time.monotonic()
    runs = Runs()
    try:
        with ThreadPoolExecutor(given.jobs) as pool:
            done = list(pool.map(lambda module: runs.run(*module), modules))
    finally:
        runs.end()
    failed = runs.failed
    print(f"{len(done)} modules in {time.monotonic() - begun:.0f} s")
    print("FAILED: " + ", ".join(failed) if failed else "OK")
    return 1 if failed else 0


def modules_in(folder: str) -> list:
    """The names of its test modules, as `unittest` discovers them: in the folder and in the packages below it."""
    names = []
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if os.path.exists(os.path.join(where, name, "__init__.py"))
        )
        package = os.path.relpath(where, folder).replace(os.sep, ".")
        for file in sorted(files):
            if file.startswith("test") and file.endswith(".py"):
                names.append(file[:-3] if package == "." else f"{package}.{file[:-3]}")
    return names


class Runs:
    """The processes that run modules, and what they print: one module's at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.processes = set()
        self.failed: list = []
        self.ended = False

    def run(self, folder: str, module: str) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--module", module, folder]
        begun = time.monotonic()
        with self.lock:
            if self.ended:
                return
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.processes.add(process)
        output = process.communicate()[0].decode("utf-8", "replace")
        lines = output.rstrip().splitlines()
        passed = process.returncode == 0
        with self.lock:
            self.processes.discard(process)
            said = [line for line in lines if line.startswith(("Ran ", "OK (", "slow: "))]
            how = "ok    " if passed else "FAILED"
            taken = time.monotonic() - begun
            print(f"{how} {taken:5.1f} s  {folder} {module}: {', '.join(said)}")
            if not passed:
                self.failed.append(f"{folder} {module}")
                print(output)
            sys.stdout.flush()

    def end(self) -> None:
        with self.lock:
            self.ended = True
            for process in self.processes:
                process.terminate()


class TimedResult(unittest.TextTestResult):
    """Names what takes long."""

    def startTest(self, test) -> None:
        self.begun = time.monotonic()
        super().startTest(test)

    def stopTest(self, test) -> None:
        taken = time.monotonic() - self.begun
        if taken > SLOW:
            name = test.id().rpartition(".")[2]
            self.stream.write(f"\nslow: {taken:.1f} s {name}\n")
        super().stopTest(test)


def run_here(folder: str, module: str) -> int:
    sys.path.insert(0, os.path.abspath(folder))
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    runner = unittest.TextTestRunner(stream=sys.stdout, resultclass=TimedResult)
    result = runner.run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
