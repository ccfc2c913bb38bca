"""The magics of a Python without IPython."""

import os
import re
import sys

from . import part
from .children import expand, output_of, run, run_script


class BuiltinShell:
    """Answers to the names that translated cells call on `get_ipython()`."""

    formatter = None  # displays are ours

    def __init__(self, kernel):
        self.kernel = kernel
        self.previous_folder = _here()
        self.captured: list = []  # displays, while `%%capture` takes them: one list for each of those that are nested
        self.autoreload = None  # once `%load_ext autoreload` was called

    def get_ipython(self) -> "BuiltinShell":
        return self

    def translate(self, source: str) -> str:
        return part("magics").to_python(source)

    def before(self, cell) -> None:
        if self.autoreload is not None:
            self.autoreload.reload_changed()

    def after(self, cell) -> None:
        pass

    def transform(self, tree):
        return tree

    def publish_elsewhere(self, data, metadata, display_id, update) -> bool:
        """Whether `%%capture` has taken this display."""
        if self.captured:
            self.captured[-1].append((data, metadata or {}))
        return bool(self.captured)

    # What translated cells call

    def system(self, command: str) -> None:
        run(expand(command, self.kernel.namespace))

    def getoutput(self, command: str) -> list:
        return output_of(expand(command, self.kernel.namespace)).splitlines()

    def run_line_magic(self, name: str, line: str):
        return self._magic("line_", "%", name)(expand(line, self.kernel.namespace))

    def run_cell_magic(self, name: str, line: str, body: str):
        return self._magic("cell_", "%%", name)(expand(line, self.kernel.namespace), body)

    def run_cell(self, raw_cell: str, *_arguments, **_options):
        """Runs code as a cell does; what came of it, by the names that IPython has for it."""
        from types import SimpleNamespace

        result = SimpleNamespace(result=None, error_in_exec=None, success=True)
        try:
            result.result = self._evaluate(raw_cell)
            self.kernel.cells.displayhook(result.result)
        except Exception as error:
            result.error_in_exec, result.success = error, False
            print("\n".join(part("errors").lines_of(error, self.kernel.cells.history.sources)), file=sys.stderr)
        return result

    def show_help(self, name: str, detail: bool) -> None:
        if "*" in name:
            print("\n".join(part("introspection").matching(self.kernel, name)))
            return
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
        here = _here()
        quiet, line = _flag("q", line)
        target = line.strip().strip("'\"")
        os.chdir(self.previous_folder if target == "-" else os.path.expanduser(target or "~"))
        self.previous_folder = here
        if not quiet:
            print(os.getcwd())

    def line_pwd(self, line: str) -> str:
        return os.getcwd()

    def line_env(self, line: str):
        name, separator, value = line.partition("=" if "=" in line else " ")
        if not line:
            return dict(os.environ)
        if not separator and name not in os.environ:
            raise NameError("there is no environment variable %s" % name)
        if not separator:
            return os.environ[name]
        os.environ[name.strip()] = value.strip()
        print("env: %s=%s" % (name.strip(), value.strip()))
        return None

    def line_set_env(self, line: str) -> None:
        if not line.replace("=", " ").split()[1:]:
            raise ValueError("%set_env needs a name and a value: %set_env NAME=VALUE")
        self.line_env(line)

    def line_time(self, line: str):
        import time

        before, wall = os.times(), time.perf_counter()
        try:
            return self._evaluate(line)
        finally:
            wall, after = time.perf_counter() - wall, os.times()
            user, system = after[0] - before[0], after[1] - before[1]
            taken = tuple(map(_duration, (user, system, user + system, wall)))
            print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % taken)

    def line_timeit(self, line: str):
        counts, statement = _timeit_counts(line)
        return self._timeit(statement, "pass", **counts)

    def _timeit(self, statement: str, setup: str, loops: int = 0, repeat: int = 7, quiet=False, result=False):
        import timeit

        timer = timeit.Timer(statement, setup, globals=self.kernel.namespace)
        loops = loops or timer.autorange()[0]
        runs = [taken / loops for taken in timer.repeat(repeat, loops)]
        timed = TimeitResult(loops, repeat, runs)
        if not quiet:
            print(timed)
        return timed if result else None

    def _listed(self, line: str) -> list:
        """The user's variables; of these types, if the line names any."""
        kinds = line.split()
        listed = part("variables").variables(self.kernel, {})["variables"]
        return [found for found in listed if not kinds or found["type"].rpartition(".")[2] in kinds]

    def line_who(self, line: str) -> None:
        names = [found["name"] for found in self._listed(line)]
        print("\t".join(names) if names else "Interactive namespace is empty.")

    def line_whos(self, line: str) -> None:
        listed = self._listed(line)
        if not listed:
            print("No variables match your requested type." if line.strip() else "Interactive namespace is empty.")
        for found in listed:
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

    def line_who_ls(self, line: str) -> list:
        return sorted(found["name"] for found in self._listed(line))

    def line_reset(self, line: str) -> None:
        if not any(_flag(letter, line)[0] for letter in "fs"):
            print("%reset removes all variables and asks first, which it cannot here. Say %reset -f")
            return
        for name in self.line_who_ls(""):
            self.kernel.namespace.pop(name, None)
        if not _flag("s", line)[0]:
            self.kernel.cells.history.forget()

    def line_history(self, line: str) -> None:
        """All sources, or those of some cells (`3`, `2-5`); `-n` numbers them."""
        numbered, line = _flag("n", line)
        entered = self.kernel.cells.history.entered
        chosen = [(1, len(entered) - 1)]
        if line.strip():
            ends = [word.partition("-") for word in line.split()]
            chosen = [
                (int(first or 1), int(last or len(entered) - 1) if dash else int(first)) for first, dash, last in ends
            ]
        for first, last in chosen:
            for number in range(max(first, 1), min(last, len(entered) - 1) + 1):
                print("%4d: %s" % (number, entered[number]) if numbered else entered[number])

    def line_prun(self, line: str) -> None:
        """Runs a statement under the profiler."""
        import cProfile
        import pstats

        quiet, line = _flag("q", line)
        profile = cProfile.Profile()
        try:
            profile.runcall(self._evaluate, line)
        finally:
            if not quiet:
                pstats.Stats(profile, stream=sys.stdout).strip_dirs().sort_stats("time").print_stats(30)

    def cell_prun(self, line: str, body: str) -> None:
        self.line_prun(line + "\n" + body)

    def line_sx(self, line: str) -> list:
        return self.getoutput(line)

    line_system = line_sx

    def line_pinfo(self, line: str) -> None:
        self.show_help(line.strip(), False)

    line_pdoc = line_pinfo

    def line_pinfo2(self, line: str) -> None:
        self.show_help(line.strip(), True)

    line_psource = line_pinfo2

    def line_xdel(self, line: str) -> None:
        del self.kernel.namespace[line.strip()]

    def line_pylab(self, line: str) -> None:
        """numpy's and matplotlib's names, as old tutorials want them."""
        names = "import numpy, matplotlib; from matplotlib import pylab, pyplot; np, plt = numpy, pyplot"
        exec(names + "; from pylab import *; from numpy import *", self.kernel.namespace)
        print("%pylab is deprecated, use %matplotlib inline and import the required libraries.")

    def line_ls(self, line: str) -> None:
        run("ls " + line)

    def line_mkdir(self, line: str) -> None:
        run("mkdir " + line)

    def line_cat(self, line: str) -> None:
        run("cat " + line)

    line_pycat = line_cat

    def line_config(self, line: str) -> None:
        name, separator, value = line.partition("=")
        if name.strip() in ("InlineBackend.figure_format", "InlineBackend.figure_formats") and separator:
            formats = eval(value, self.kernel.namespace)
            part("figures").choose_formats([formats] if isinstance(formats, str) else formats)
        else:
            raise NameError(
                "%%config %s needs IPython: %%pip install ipython. Without it there is InlineBackend.figure_format"
                % (name.strip() or "alone")
            )

    def line_load_ext(self, line: str) -> None:
        if line.strip() != "autoreload":
            raise NameError("%%load_ext %s needs IPython: %%pip install ipython" % line.strip())
        if self.autoreload is None:
            self.autoreload = part("autoreload").Autoreload(self.kernel)

    def line_reload_ext(self, line: str) -> None:
        self.line_load_ext(line)

    def line_autoreload(self, line: str) -> None:
        if self.autoreload is None:
            raise NameError("%autoreload needs %load_ext autoreload first")
        self.autoreload.set_mode(line.strip())

    def line_aimport(self, line: str) -> None:
        for name in line.replace(",", " ").split():
            __import__(name)
            self.kernel.namespace[name.partition(".")[0]] = sys.modules[name.partition(".")[0]]
            if self.autoreload is not None:
                self.autoreload.chosen.add(name)

    # Cell magics

    def cell_bash(self, line: str, body: str) -> None:
        self.cell_script("bash " + line, body)

    def cell_sh(self, line: str, body: str) -> None:
        self.cell_script("sh " + line, body)

    def cell_script(self, line: str, body: str) -> None:
        """Gives the cell to a program. `--out NAME` and `--err NAME` keep what it prints in variables."""
        import shlex
        import subprocess

        kept, words = {}, shlex.split(line)
        for name in ("--out", "--err"):
            if name in words:
                at = words.index(name)
                kept[name] = words[at + 1]
                del words[at : at + 2]
        may_fail = "--no-raise-error" in words
        words = [word for word in words if word not in ("--no-raise-error", "--bg")]
        status, texts = run_script(words, body, "--out" in kept, "--err" in kept)
        for name, text in zip(("--out", "--err"), texts):
            if name in kept:
                self.kernel.namespace[kept[name]] = text
        if status and not may_fail:
            raise subprocess.CalledProcessError(status, words[0])

    def cell_python(self, line: str, body: str) -> None:
        import shlex

        self.cell_script("%s %s" % (shlex.quote(sys.executable), line), body)

    cell_python3 = cell_python

    def cell_perl(self, line: str, body: str) -> None:
        self.cell_script("perl " + line, body)

    def cell_capture(self, line: str, body: str) -> None:
        """Keeps what the cell prints and shows in a variable."""
        import contextlib
        import io

        out, err, shown = io.StringIO(), io.StringIO(), []
        keeps = {name: "--no-" + name not in line.split() for name in ("stdout", "stderr", "display")}
        names = [word for word in line.split() if not word.startswith("-")]
        with contextlib.ExitStack() as stack:
            if keeps["stdout"]:
                stack.enter_context(contextlib.redirect_stdout(out))
            if keeps["stderr"]:
                stack.enter_context(contextlib.redirect_stderr(err))
            if keeps["display"]:
                self.captured.append(shown)
                stack.callback(self.captured.pop)
            value = self._evaluate(body)
            if value is not None:
                part("display").display(value)
            figures = sys.modules.get("cellwright_runner.figures")
            if figures is not None:
                figures.show()
        for name in names[:1]:
            self.kernel.namespace[name] = part("captured").Captured(out.getvalue(), err.getvalue(), shown)

    def cell_writefile(self, line: str, body: str) -> None:
        append = line.startswith("-a ")
        path = os.path.expanduser(line[3 * append :].strip().strip("'\""))
        print("%s %s" % ("Appending to" if append else "Overwriting" if os.path.exists(path) else "Writing", path))
        with open(path, "a" if append else "w", encoding="utf-8") as file:
            file.write(body)

    cell_file = cell_writefile

    def cell_time(self, line: str, body: str):
        return self.line_time(body)

    def cell_timeit(self, line: str, body: str):
        counts, setup = _timeit_counts(line)
        return self._timeit(body, setup or "pass", **counts)

    def _publish(self, mime: str, body: str) -> None:
        part("display").publish({mime: body, "text/plain": body}, {}, None, False)

    def cell_html(self, line: str, body: str) -> None:
        self._publish("text/html", body)

    def cell_markdown(self, line: str, body: str) -> None:
        self._publish("text/markdown", body)

    def cell_latex(self, line: str, body: str) -> None:
        self._publish("text/latex", body)

    def cell_svg(self, line: str, body: str) -> None:
        self._publish("image/svg+xml", body)

    def cell_javascript(self, line: str, body: str) -> None:
        self._publish("application/javascript", body)

    cell_js = cell_javascript


class TimeitResult:
    """What `%timeit -o` returns, with the names IPython gave its parts."""

    def __init__(self, loops: int, repeat: int, runs: list):
        self.loops, self.repeat, self.timings = loops, repeat, runs
        self.all_runs = [taken * loops for taken in runs]
        self.best, self.worst, self.average = min(runs), max(runs), sum(runs) / len(runs)
        self.stdev = (sum((taken - self.average) ** 2 for taken in runs) / len(runs)) ** 0.5

    def __str__(self) -> str:
        return "%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
            *(_duration(self.average), _duration(self.stdev), self.repeat, "s" * (self.repeat != 1)),
            *(f"{self.loops:,}", "s" * (self.loops != 1)),
        )

    def __repr__(self) -> str:
        return "<TimeitResult : %s>" % self


def _flag(letter: str, line: str) -> tuple:
    """Whether the line begins with the option, and the rest of the line."""
    option = re.match(r"\s*-%s(?:\s+|$)" % letter, line)
    return (True, line[option.end() :]) if option else (False, line)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was deleted
        return os.path.expanduser("~")


def _timeit_counts(line: str) -> tuple:
    """What `-n LOOPS` and `-r REPEAT` say, and the rest of the line."""
    counts = {}
    while True:
        option = re.match(r"\s*-(?:([nr])\s*(\d+)|([qotcv]|p\s*\d+))(?:\s+|$)", line)
        if option is None:
            return counts, line
        if option.group(1):
            counts["loops" if option.group(1) == "n" else "repeat"] = max(1, int(option.group(2)))
        elif option.group(3) in "qo":
            counts["quiet" if option.group(3) == "q" else "result"] = True
        line = line[option.end() :]


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds / 1e-9)
