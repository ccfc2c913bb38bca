"""Things to do once the user imports a module: nothing of it is paid for by those who do not."""

import sys

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
    "pandas": "show_columns",
    "altair": "render_as_data",
    "IPython.core.display_functions": "redirect_display",
    "IPython.core.display": "redirect_display",
}


class AfterImport:
    """A meta path finder that finds nothing itself: it wraps the loader another finder came up with."""

    def __init__(self, kernel):
        self.kernel = kernel

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        for name in ACTIONS:
            if name in sys.modules:
                self.act(sys.modules[name])

    def find_spec(self, name, path=None, target=None):
        if name not in ACTIONS:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = Loader(spec.loader, self.act)
                    return spec
        return None

    def act(self, module) -> None:
        try:
            getattr(part("after_import"), ACTIONS[module.__name__])(self.kernel, module)
        except Exception as error:  # a version of the module we do not know: its users get it as it is
            self.kernel.warn("could not adapt `%s`: %s: %s" % (module.__name__, type(error).__name__, error))


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
