"""The magics of a Python without IPython."""

import os
import re
import sys

from . import part
from .children import expand, output_of, run


class BuiltinShell:
    """Answers to the names that translated cells call on `get_ipython()`."""

    formatter = None  # displays are ours

    def __init__(self, kernel):
        self.kernel = kernel
        self.previous_folder = os.getcwd()

    def get_ipython(self) -> "BuiltinShell":
        return self

    def translate(self, source: str) -> str:
        return part("magics").to_python(source)

    def before(self, cell) -> None:
        pass

    def after(self, cell) -> None:
        pass

    def transform(self, tree):
        return tree

    def publish_elsewhere(self, data, metadata, display_id, update) -> bool:
        return False

    # What translated cells call

    def system(self, command: str) -> None:
        run(expand(command, self.kernel.namespace))

    def getoutput(self, command: str) -> list:
        return output_of(expand(command, self.kernel.namespace)).splitlines()

    def run_line_magic(self, name: str, line: str):
        return self._magic("line_", "%", name)(expand(line, self.kernel.namespace))

    def run_cell_magic(self, name: str, line: str, body: str):
        return self._magic("cell_", "%%", name)(expand(line, self.kernel.namespace), body)

    def show_help(self, name: str, detail: bool) -> None:
        text = part("introspection").describe(self.kernel, name, detail)
        print("Object `%s` not found." % name if text is None else text)

    def _magic(self, prefix: str, sign: str, name: str):
        method = getattr(self, prefix + name, None)
        if method is None:
            known = sorted(sign + key[len(prefix) :] for key in dir(self) if key.startswith(prefix))
            raise NameError(
                "%s%s is not among the magics available without IPython: %s. For the rest: %%pip install ipython"
                % (sign, name, " ".join(known))
            )
        return method

    def _evaluate(self, source: str):
        return self.kernel.cells.run_nested(source)

    # Line magics

    def line_pip(self, line: str) -> None:
        import importlib
        import shlex

        run("%s -m pip %s" % (shlex.quote(sys.executable), line))
        importlib.invalidate_caches()

    def line_cd(self, line: str) -> None:
        here = os.getcwd()
        target = line.strip().strip("'\"")
        os.chdir(self.previous_folder if target == "-" else os.path.expanduser(target or "~"))
        self.previous_folder = here
        print(os.getcwd())

    def line_pwd(self, line: str) -> str:
        return os.getcwd()

    def line_env(self, line: str):
        name, separator, value = line.partition("=" if "=" in line else " ")
        if not line:
            return dict(os.environ)
        if not separator:
            return os.environ.get(name)
        os.environ[name.strip()] = value.strip()
        print("env: %s=%s" % (name.strip(), value.strip()))
        return None

    def line_time(self, line: str):
        import time

        cpu, wall = time.process_time(), time.perf_counter()
        try:
            return self._evaluate(line)
        finally:
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            print("CPU time: %s, wall time: %s" % (_duration(cpu), _duration(wall)))

    def line_timeit(self, line: str) -> None:
        counts, statement = _timeit_counts(line)
        self._timeit(statement, "pass", **counts)

    def _timeit(self, statement: str, setup: str, loops: int = 0, repeat: int = 7) -> None:
        import timeit

        timer = timeit.Timer(statement, setup, globals=self.kernel.namespace)
        loops = loops or timer.autorange()[0]
        runs = [taken / loops for taken in timer.repeat(repeat, loops)]
        print(
            "%s per loop (best of %d runs, %d loops each; worst %s)"
            % (_duration(min(runs)), repeat, loops, _duration(max(runs)))
        )

    def line_who(self, line: str) -> None:
        names = [found["name"] for found in part("introspection").variables(self.kernel, {})["variables"]]
        print("\t".join(names) if names else "Interactive namespace is empty.")

    def line_whos(self, line: str) -> None:
        for found in part("introspection").variables(self.kernel, {})["variables"]:
            print("%-20s %-20s %s" % (found["name"], found["type"], found["preview"]))

    def line_run(self, line: str) -> None:
        import shlex

        arguments = shlex.split(line)
        if not arguments:
            raise ValueError("%run needs the path of a script or notebook")
        path = os.path.expanduser(arguments[0])
        if path.endswith(".ipynb"):
            import json

            with open(path, encoding="utf-8") as file:
                for cell in json.load(file)["cells"]:
                    if cell["cell_type"] == "code":
                        self._evaluate("".join(cell["source"]))
            return
        with open(path, "rb") as file:
            code = compile(file.read(), os.path.abspath(path), "exec")
        names = {"__name__": "__main__", "__file__": path, "__builtins__": __builtins__}
        saved, sys.argv = sys.argv, arguments
        try:
            exec(code, names)
        except SystemExit as leave:
            if leave.code:
                raise
        finally:
            sys.argv = saved
            self.kernel.namespace.update((key, value) for key, value in names.items() if not key.startswith("__"))

    def line_load(self, line: str) -> None:
        print(part("prelude").read(line.strip().strip("'\"")), end="")

    def line_matplotlib(self, line: str) -> None:
        if line.split() not in ([], ["inline"]):
            print("Figures are shown inline; no other display is available here.")

    def line_lsmagic(self, line: str) -> None:
        for sign, prefix in (("%", "line_"), ("%%", "cell_")):
            print(" ".join(sorted(sign + key[len(prefix) :] for key in dir(self) if key.startswith(prefix))))

    # Cell magics

    def cell_bash(self, line: str, body: str) -> None:
        import subprocess

        status = run(body)
        if status:
            raise subprocess.CalledProcessError(status, "bash")

    cell_sh = cell_bash

    def cell_writefile(self, line: str, body: str) -> None:
        append = line.startswith("-a ")
        path = os.path.expanduser(line[3 * append :].strip().strip("'\""))
        print("%s %s" % ("Appending to" if append else "Overwriting" if os.path.exists(path) else "Writing", path))
        with open(path, "a" if append else "w", encoding="utf-8") as file:
            file.write(body)

    def cell_time(self, line: str, body: str):
        return self.line_time(body)

    def cell_timeit(self, line: str, body: str) -> None:
        counts, setup = _timeit_counts(line)
        self._timeit(body, setup or "pass", **counts)

    def cell_html(self, line: str, body: str) -> None:
        part("display").publish({"text/html": body, "text/plain": body}, {}, None, False)

    def cell_markdown(self, line: str, body: str) -> None:
        part("display").publish({"text/markdown": body, "text/plain": body}, {}, None, False)


def _timeit_counts(line: str) -> tuple:
    """What `-n LOOPS` and `-r REPEAT` say, and the rest of the line."""
    counts = {}
    while True:
        option = re.match(r"\s*-([nr])\s*(\d+)(?:\s+|$)", line)
        if option is None:
            return counts, line
        counts["loops" if option.group(1) == "n" else "repeat"] = max(1, int(option.group(2)))
        line = line[option.end() :]


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds / 1e-9)
