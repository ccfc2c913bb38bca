"""`%load_ext autoreload` without IPython: modules whose file has changed are loaded again before a cell runs."""

import os
import sys


class Autoreload:
    """Mode 0 reloads nothing, 1 what `%aimport` named, 2 and 3 everything that is not installed."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.mode = "0"
        self.chosen: set = set()
        self.times: dict = {}

    def set_mode(self, mode: str) -> None:
        names = {"": "now", "now": "now", "off": "0", "explicit": "1", "all": "2", "complete": "3"}
        mode = names.get(mode, mode)
        if mode == "now":
            return self.reload_changed(everything=True)
        if mode not in ("0", "1", "2", "3"):
            raise ValueError("%%autoreload takes 0, 1, 2, 3 or now, not %r" % mode)
        self.mode = mode
        return self._look()

    def reload_changed(self, everything: bool = False) -> None:
        """Loads changed modules again. Names that cells took from them (`from module import f`) follow."""
        if self.mode == "0" and not everything:
            return
        import importlib

        for name, module, time in self._files():
            if self.times.setdefault(name, time) == time:
                continue
            self.times[name] = time
            if self.mode == "1" and not everything and name not in self.chosen:
                continue
            before = dict(vars(module))
            try:
                importlib.reload(module)
            except Exception as error:
                print("[autoreload of %s failed: %s: %s]" % (name, type(error).__name__, error), file=sys.stderr)
                continue
            self._renew(before, vars(module))

    def _renew(self, before: dict, after: dict) -> None:
        namespace = self.kernel.namespace
        for name, value in list(namespace.items()):
            for known, old in before.items():
                if value is old and known in after and not known.startswith("__") and after[known] is not old:
                    namespace[name] = after[known]
                    break

    def _look(self) -> None:
        for name, _, time in self._files():
            self.times.setdefault(name, time)

    def _files(self):
        standard = os.path.dirname(os.__file__)
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or not file.endswith(".py") or name == "__main__":
                continue
            if file.startswith(standard) or "site-packages" in file or name.startswith("cellwright_runner"):
                continue
            try:
                yield name, module, os.stat(file).st_mtime_ns
            except OSError:
                pass  # gone
