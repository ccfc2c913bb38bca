"""What `imports.ACTIONS` names: small adaptations of modules the user has just imported."""

import functools
import os
import sys

from . import part


def know_cells(kernel, linecache) -> None:
    """Tracebacks and `inspect.getsource` find the cells that ran before anyone asked."""
    for file, code in kernel.cells.history.sources.items():
        linecache.cache[file] = part("cells").lines(code, file)


def find_classes(kernel, inspect) -> None:
    """`inspect.getsource` of a class defined in a cell: `__main__` has no file, the cell has."""
    if hasattr(inspect.getfile, "__wrapped__"):
        return
    original = inspect.getfile

    def getfile(obj):
        if isinstance(obj, type) and obj.__module__ == "__main__":
            file = part("definitions").file_of_class(kernel, obj)
            if file is not None:
                return file
        return original(obj)

    getfile.__wrapped__ = original
    inspect.getfile = getfile
    find = inspect.findsource

    def findsource(obj):
        """A class is found by parsing the whole cell, which Python cannot when it has magics: not as it was typed."""
        if isinstance(obj, type):
            file = getfile(obj)
            translation = kernel.cells.history.translations.get(file)
            if translation is not None:
                typed = inspect.linecache.cache.get(file)
                inspect.linecache.cache[file] = part("cells").lines(translation, file)
                try:
                    return find(obj)
                finally:
                    inspect.linecache.cache[file] = typed or part("cells").lines(translation, file)
        return find(obj)

    inspect.findsource = findsource


def watch_threads(kernel, threading) -> None:
    """The streams learn of threads; an exception in one is told with source lines, which C does not find for cells."""

    def excepthook(told) -> None:
        if told.exc_type is SystemExit:
            return
        name = told.thread.name if told.thread is not None else "?"
        lines = part("errors").lines_of(told.exc_value, kernel.cells.history.sources)
        print("Exception in thread %s:\n%s" % (name, "\n".join(lines)), file=sys.stderr)

    threading.excepthook = excepthook
    original = threading.Thread.start
    if not hasattr(original, "__wrapped__"):

        @functools.wraps(original)
        def start(self):
            kernel.streams.threads_begin()
            return original(self)

        threading.Thread.start = start


def announce_children(kernel, subprocess) -> None:
    """Text printed before a child is started comes before the child's, as it would on a terminal."""
    original = subprocess.Popen._execute_child
    if not hasattr(original, "__wrapped__"):

        @functools.wraps(original)
        def execute_child(self, *arguments, **options):
            kernel.streams.before_child()
            return original(self, *arguments, **options)

        subprocess.Popen._execute_child = execute_child


def adopt_loop(kernel, asyncio) -> None:
    eventloop = part("eventloop")
    if hasattr(eventloop, "adopt"):  # else it is what imports asyncio, and will see to it
        eventloop.adopt(kernel, asyncio)


def ask_host(kernel, getpass) -> None:
    """The original reads the terminal of whoever started the host."""

    def ask(prompt="Password: ", stream=None, **options):
        return part("stdin").ask(str(prompt), True)

    ask.__name__ = ask.__qualname__ = "getpass"
    getpass.getpass = getpass.unix_getpass = ask


def guard_debugger(kernel, pdb) -> None:
    """A debugger that nobody can answer says so instead of stopping."""
    original = pdb.Pdb.interaction

    def interaction(self, *arguments, **options):
        part("stdin").refuse_unless_answerable("The debugger")
        return original(self, *arguments, **options)

    if not hasattr(original, "__wrapped__"):
        interaction.__wrapped__ = original
        pdb.Pdb.interaction = interaction


def bring_definitions(kernel, spawn) -> None:
    part("definitions").bring_to_children(kernel, spawn)


def choose_backend(kernel, matplotlib) -> None:
    """Figures become displays, unless the user chose a backend. Not by MPLBACKEND: children would inherit that."""
    if not os.environ.get("MPLBACKEND"):
        matplotlib.rcParams["backend"] = "module://cellwright_runner.figures"


def show_columns(kernel, pandas) -> None:
    """As in a notebook: wide frames are wrapped, not cut to the width of a terminal that is not there."""
    if pandas.get_option("display.max_columns") == 0:
        pandas.set_option("display.max_columns", 20)


def render_as_data(kernel, altair) -> None:
    """The chart's specification for whoever reads data, beside the page that notebooks show."""
    page = altair.renderers.get()
    # Not altair's own type, `v6.json`: nbformat takes JSON only under types that end in `+json`.
    version = getattr(altair, "VEGALITE_VERSION", "5").split(".")[0]
    mime = "application/vnd.vegalite.v%s+json" % version
    altair.renderers.register("cellwright", lambda spec, **options: dict(page(spec, **options), **{mime: spec}))
    altair.renderers.enable("cellwright")


def make_shell_when_asked(kernel, getipython) -> None:
    """Libraries that import IPython ask it for the shell; it is made when the first one does."""
    original = getipython.get_ipython

    def get_ipython():
        if kernel.shell is None and kernel.wire.fd >= 0 and not kernel.imports.makes_shell:
            part("magics").need_shell(kernel)
        return original()

    get_ipython.__doc__ = original.__doc__
    getipython.get_ipython = get_ipython


def display_without_ipython(kernel, renderers) -> None:
    """`fig.show()` of plotly displays through IPython and asks for nbformat, of which it needs a version only."""
    from types import SimpleNamespace

    if not getattr(renderers, "ipython_display", None):
        renderers.ipython_display = part("display")
    if not getattr(renderers, "nbformat", None):
        renderers.nbformat = SimpleNamespace(__version__="5.0.0")


def print_mathematics(kernel, printing) -> None:
    """`sympy.init_printing()` without IPython chooses how formulas are shown; it would take over everything shown."""
    if kernel.imports.has_ipython():
        return

    def init_printing_in_cells(stringify_func, **settings) -> None:
        kernel.print_formula = lambda value: stringify_func(value, **settings)

    printing._init_python_printing = init_printing_in_cells


def show_when_asked(kernel, pyplot) -> None:
    """`plt.show()` shows figures also with the backend `agg`, which only draws: nothing else would show them here."""
    original = pyplot.show

    @functools.wraps(original)
    def show(*arguments, **options):
        if str(sys.modules["matplotlib"].rcParams["backend"]).lower() == "agg":
            return part("figures").show_all()
        return original(*arguments, **options)

    pyplot.show = show


def redirect_display(kernel, functions) -> None:
    """`IPython.display` reaches our frames whether or not IPython's shell is in use."""
    display = part("display")
    for name in ("display", "update_display", "clear_output", "publish_display_data", "DisplayHandle"):
        if name in functions.__dict__:  # old versions keep them in `IPython.core.display`
            setattr(functions, name, getattr(display, name))
