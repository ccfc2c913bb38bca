"""`configure`: the process before its first cell."""

import os
import sys

from . import part
from .wire import quote


def configure(kernel, message: dict) -> list:
    """Applies what it can; what it cannot is told as a list of warnings."""
    warnings: list = []
    limits = message.get("limits") or {}
    kernel.cells.history.outputs = limits.get("outputs", kernel.cells.history.outputs)
    kernel.cells.history.source_bytes = limits.get("sources", kernel.cells.history.source_bytes)
    kernel.largest_display = min(kernel.largest_display, limits.get("display", kernel.largest_display))
    for name, value in (message.get("env") or {}).items():
        try:
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        except (ValueError, OSError, TypeError) as error:
            warnings.append("environment variable %r was not set: %s" % (name, error))
    # plotly would otherwise send megabytes of script with every figure.
    os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype")
    cwd = message.get("cwd")
    if cwd:
        try:
            os.chdir(cwd)
            os.environ["PWD"] = cwd
        except OSError as error:
            warnings.append("the working folder is still %s: %s" % (os.getcwd(), error))
    folders = message.get("path") or []
    if message.get("file"):
        # As Python does: files beside a script can be imported wherever it is run.
        folders = [os.path.dirname(os.path.realpath(message["file"])), *folders]
    for folder in reversed(folders):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
    _prelude(kernel, message.get("prelude"), warnings)
    for module in message.get("modules") or []:
        kernel.wire.send('{"type":"loading","module":%s' % quote(module["name"]))
        _module(kernel, module, warnings)
    _startup_files(kernel, warnings)
    if message.get("file"):
        kernel.namespace["__file__"] = kernel.hidden["__file__"] = sys.argv[0] = message["file"]
        sys.argv[1:] = message.get("arguments") or []
        kernel.cells.script = os.path.basename(message["file"])
    kernel.streams.look_for_c_output()
    return warnings


def patch_environment(env: dict):
    """Sets variables for one cell; what undoes it. A variable that the cell itself has changed stays as it left it."""
    before = {}
    for name, value in env.items():
        try:
            old, os.environ[name] = os.environ.get(name), value
            before[name] = old
        except (ValueError, OSError, TypeError):
            pass  # no name or value for a variable: the caller's system would not have let it exist either

    def undo() -> None:
        for name, old in before.items():
            if os.environ.get(name) != env[name]:
                continue
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old

    return undo


def _prelude(kernel, prelude, warnings: list) -> None:
    """The prelude beside us, or one that came as source, of which only what it exports reaches the user."""
    if not prelude:
        return
    if prelude is True:
        names = part("prelude").__dict__
    else:
        names = {"__name__": "prelude", "__builtins__": __builtins__}
        if not _execute(kernel, prelude, "<prelude>", names, "the prelude", warnings):
            return
    for name in names.get("__all__") or [name for name in names if not name.startswith("_")]:
        kernel.namespace[name] = kernel.hidden[name] = names[name]


def _startup_files(kernel, warnings: list) -> None:
    """What IPython runs when it starts, where it is installed: files in its profile, in the order of their names."""
    home = os.environ.get("IPYTHONDIR") or os.path.join(os.path.expanduser("~"), ".ipython")
    folder = os.path.join(home, "profile_default", "startup")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".py", ".ipy")))
    except OSError:
        return
    if names and kernel.imports.has_ipython():
        for name in names:
            path = os.path.join(folder, name)
            kernel.wire.send('{"type":"loading","module":%s' % quote(path))
            _module(kernel, {"name": name, "path": path}, warnings)


def _module(kernel, module: dict, warnings: list) -> None:
    """An extension module: a file run in the user's namespace."""
    path, what = module["path"], "module `%s`" % module["name"]
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        warnings.append("%s was not loaded: %s" % (what, error))
        return
    names = kernel.namespace
    if path.endswith(".ipy"):
        source = part("magics").need_shell(kernel).translate(source.decode("utf-8", "replace"))
    before = dict(names)
    names["__file__"] = path
    try:
        _execute(kernel, source, path, names, what, warnings)
    finally:
        names.pop("__file__", None)
        for name, value in names.items():
            if name not in before or before[name] is not value:
                kernel.hidden[name] = value


def _execute(kernel, source, file: str, names: dict, what: str, warnings: list) -> bool:
    try:
        kernel.interrupts.call(exec, compile(source, file, "exec", dont_inherit=True), names)
        return True
    except BaseException as error:  # also `sys.exit()`: a module must not take the kernel with it
        errors = part("errors")
        line = errors.line_in(file, error)
        place = file if line is None else "%s, line %d" % (file, line)
        warnings.append("%s was not loaded: %s (%s)" % (what, errors.summary(error), place))
        return False
