"""IPython's shell for the cells that need it: the same namespace, our engine, our frames, its magics."""

import sys

from IPython import version_info
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell
from IPython.utils.text import SList
from traitlets import Type
from traitlets.config import Config

from . import part, running
from .children import output_of, run


def create(kernel) -> "IPythonShell":
    config = Config()
    config.HistoryManager.enabled = False  # no sqlite file
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor" if version_info >= (9,) else "NoColor"
    shell = Shell.instance(config=config, user_module=sys.modules["__main__"])
    shell.last_execution_result = ExecutionResult(None)
    _have_inline_backend(shell)
    shell.extension_manager.load_extension("storemagic")  # as IPython's programs do
    return IPythonShell(kernel, shell)


def _have_inline_backend(shell) -> None:
    """What `%config InlineBackend.figure_format` and `set_matplotlib_formats` set, which our backend goes by."""
    try:
        from matplotlib_inline.config import InlineBackend
    except ImportError:
        return
    backend = InlineBackend.instance(parent=shell)
    backend.shell = shell
    shell.configurables.append(backend)


class Publisher(DisplayPublisher):
    """What calls `shell.display_pub` directly arrives in our frames."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **options) -> None:
        part("display").publish(data, metadata, (transient or {}).get("display_id"), update)

    def clear_output(self, wait: bool = False) -> None:
        part("display").clear_output(wait)


class Hook(DisplayHook):
    def __call__(self, result=None) -> None:
        running().cells.displayhook(result)


class Shell(InteractiveShell):
    display_pub_class = Type(Publisher)
    displayhook_class = Type(Hook)

    def init_virtualenv(self) -> None:
        pass  # the host has chosen the interpreter

    def system(self, cmd: str) -> None:
        run(self.var_expand(cmd, depth=1))

    system_piped = system_raw = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0):
        text = output_of(self.var_expand(cmd, depth=depth + 1))
        return SList(text.splitlines()) if split else text

    def enable_gui(self, gui=None) -> None:
        pass

    def enable_matplotlib(self, gui=None) -> tuple:
        import matplotlib

        backend = "agg" if gui == "agg" else "module://cellwright_runner.figures"
        if gui not in (None, "inline", "agg"):
            print("Figures are shown inline; %s is not available here." % gui)
        matplotlib.use(backend)
        return ("inline", backend)

    def set_next_input(self, s: str, replace: bool = False) -> None:
        print(s)

    def _showtraceback(self, etype, evalue, stb) -> None:
        print(self.InteractiveTB.stb2text(stb), file=sys.stderr)

    def run_cell(self, raw_cell, store_history=False, silent=False, *_arguments, **_options) -> ExecutionResult:
        """Magics that run code (`%%capture`) run it as cells do."""
        result = ExecutionResult(ExecutionInfo(raw_cell, store_history, silent, True, None))
        try:
            result.result = running().cells.run_nested(raw_cell)
            if result.result is not None and not silent:
                sys.displayhook(result.result)  # which `%%capture` replaces
        except Exception as error:
            result.error_in_exec = error
            print("\n".join(part("errors").lines_of(error, running().cells.history.sources)), file=sys.stderr)
        return result


class IPythonShell:
    """What the kernel asks of a shell, answered by IPython."""

    def __init__(self, kernel, shell: Shell):
        self.kernel = kernel
        self.shell = shell
        self.formatter = shell.display_formatter
        self.info = None
        self.get_ipython = shell.get_ipython  # one object, by which `%who` knows it
        history = kernel.cells.history
        manager = shell.history_manager
        manager.input_hist_parsed = manager.input_hist_raw = history.entered
        manager.output_hist = history.results
        # The shell has put its own `In`, `Out`, `exit` and `quit` into the namespace.
        kernel.namespace.update(In=history.entered, Out=history.results, _ih=history.entered, _oh=history.results)
        for name in ("exit", "quit", "open"):
            kernel.namespace.pop(name, None)
        kernel.hidden.update(_dh=kernel.namespace.get("_dh"), get_ipython=self.get_ipython)
        shell.user_ns_hidden.update(kernel.hidden)  # what `%who` leaves out

    def translate(self, source: str) -> str:
        return self.shell.transform_cell(source)

    def transform(self, tree):
        return self.shell.transform_ast(tree) if self.shell.ast_transformers else tree

    def before(self, cell) -> None:
        self.shell.execution_count = self.kernel.cells.count
        self.info = ExecutionInfo(cell.code, cell.stored, cell.silent, True, None)
        self.shell.events.trigger("pre_execute")
        if not cell.silent:
            self.shell.events.trigger("pre_run_cell", self.info)

    def after(self, cell) -> None:
        self.shell.events.trigger("post_execute")
        self.shell.last_execution_result = ExecutionResult(self.info)
        if not cell.silent:
            self.shell.events.trigger("post_run_cell", self.shell.last_execution_result)

    def publish_elsewhere(self, data, metadata, display_id, update) -> bool:
        """Whether a magic that captures displays (`%%capture`) has taken this one."""
        publisher = self.shell.display_pub
        if isinstance(publisher, Publisher):
            return False
        publisher.publish(data, metadata, transient={"display_id": display_id} if display_id else {}, update=update)
        return True
