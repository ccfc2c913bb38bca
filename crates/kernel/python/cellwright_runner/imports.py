"""What happens when a module is imported: adaptations of it, and which of two modules of one name is meant.

Nothing of it is paid for by those who do not import.
"""

import sys
from _frozen_importlib_external import PathFinder

from . import part

# Module → function of `after_import` that is given the module when it has been loaded.
ACTIONS = {
    "linecache": "know_cells",
    "inspect": "find_classes",
    "threading": "watch_threads",
    "subprocess": "announce_children",
    "asyncio": "adopt_loop",
    "getpass": "ask_host",
    "pdb": "guard_debugger",
    "multiprocessing.spawn": "bring_definitions",
    "matplotlib": "choose_backend",
    "matplotlib.pyplot": "show_when_asked",
    "pandas": "show_columns",
    "altair": "render_as_data",
    "plotly.io._renderers": "display_without_ipython",
    "sympy.interactive.printing": "print_mathematics",
    "IPython.core.getipython": "make_shell_when_asked",
    "IPython.core.display_functions": "redirect_display",
    "IPython.core.display": "redirect_display",
}
STAND_INS = ("IPython", "IPython.display") + tuple(
    "IPython.core" + name for name in ("", ".display", ".getipython", ".magic")
)


class AfterImport:
    """A meta path finder. It wraps the loader another finder came up with, keeps files of the user from taking the
    place of standard modules in other people's code, and has a stand-in for `IPython.display`."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.standard: list = []  # the folders of the standard library
        self.libraries: tuple = ()  # and those whose code is not the user's
        self.makes_shell = False
        self.ipython: bool | None = None  # whether IPython is installed, once someone wants to know

    def install(self) -> None:
        import os

        library = os.path.dirname(os.__file__)
        archive = os.path.join(os.path.dirname(library), "python%d%d.zip" % sys.version_info[:2])
        standard = (archive, library, os.path.join(library, "lib-dynload"))
        self.standard = [entry for entry in sys.path if entry in standard]
        self.libraries = tuple({library, os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})
        sys.meta_path.insert(0, self)
        for name in ACTIONS:
            if name in sys.modules:
                self.act(sys.modules[name])

    def has_ipython(self) -> bool:
        """Whether IPython is installed, without loading it. Then cells behave as in its kernel."""
        if self.ipython is None:
            try:
                self.ipython = "IPython" in sys.modules or self._found_by_others("IPython", None, None) is not None
            except ImportError:  # a finder of somebody's forbids it
                self.ipython = False
        return self.ipython

    def find_spec(self, name, path=None, target=None):
        if self.ipython is None and path is None and self.has_ipython():
            self._offer_shell()  # libraries, which come by an import, ask for it
        spec = self._unshadowed(name) if path is None else None
        if spec is None and name.partition(".")[0] == "IPython" and name in STAND_INS:
            spec = self._stand_in(name, path)
        if name not in ACTIONS:
            return spec
        if spec is None:
            spec = self._found_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader, self.act)
        return spec

    def _offer_shell(self) -> None:
        """`get_ipython()` for libraries, which look for it to find out where they run. Calling it makes the shell.

        Only where IPython is installed: elsewhere its absence is the answer."""
        import builtins

        def get_ipython():
            """The shell that runs the cells."""
            return None if self.makes_shell else part("magics").need_shell(self.kernel).get_ipython()

        builtins.get_ipython = get_ipython
        builtins.__IPYTHON__ = True

    def _found_by_others(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _unshadowed(self, name: str):
        """The standard module, where a file of the user (`token.py`) has its name and the user did not ask for it."""
        if not self.standard or name in sys.builtin_module_names:
            return None
        before = sys.path[: sys.path.index(self.standard[0])] if self.standard[0] in sys.path else sys.path
        if not before or PathFinder.find_spec(name, before) is None:
            return None
        spec = PathFinder.find_spec(name, self.standard)
        return spec if spec is not None and not self._asked_by_user() else None

    def _asked_by_user(self) -> bool:
        """Whether the code that imports is a cell, or a file of the user's."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if not (file.startswith("<frozen importlib") or frame.f_globals is globals()):
                return not file.startswith(self.libraries) and not is_installed(file)
            frame = frame.f_back
        return False

    def _stand_in(self, name: str, path):
        """`IPython.display` where there is no IPython, for the user's code: libraries go by whether there is one."""
        stand_in = part("display_stand_in")
        if name == "IPython":
            if self.has_ipython() or not self._asked_by_user():
                return None
        elif not stand_in.is_loaded():
            return None
        return stand_in.spec(name)

    def act(self, module) -> None:
        try:
            getattr(part("after_import"), ACTIONS[module.__name__])(self.kernel, module)
        except Exception as error:  # a version of the module we do not know: its users get it as it is
            self.kernel.warn("could not adapt `%s`: %s: %s" % (module.__name__, type(error).__name__, error))


def is_installed(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file or file.startswith("<frozen")


class Loader:
    def __init__(self, original, act):
        self.original = original
        self.act = act

    def __getattr__(self, name):
        return getattr(self.original, name)

    def create_module(self, spec):
        return self.original.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self.original
        self.original.exec_module(module)
        self.act(module)
