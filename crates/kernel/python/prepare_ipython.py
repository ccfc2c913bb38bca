"""Prepares an IPython kernel that is not our runner, as `configure` does there; sent as source before the first cell.

Finds `config`, a JSON text, among its globals.
"""

import json
import os
import sys
from warnings import filterwarnings


def prepare(shell, config: dict) -> list:
    """Applies what it can; what it cannot is told as a list of warnings."""
    warnings: list = []
    for name, value in config["env"].items():
        try:
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        except (ValueError, OSError) as error:
            warnings.append("environment variable %r was not set: %s" % (name, error))
    # plotly would otherwise send megabytes of script with every figure.
    os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype")
    cwd = config["cwd"]
    if cwd:
        try:
            os.chdir(cwd)
            os.environ["PWD"] = cwd
        except OSError as error:
            warnings.append("the kernel runs in %s: %s" % (os.getcwd(), error))
    for folder in reversed(config["path"]):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
    if config["prelude"]:
        names: dict = {"__name__": "prelude", "__builtins__": __builtins__}
        if execute(config["prelude"], "<prelude>", names, "the prelude", warnings):
            exported = names.get("__all__") or [name for name in names if not name.startswith("_")]
            keep(shell, {name: names[name] for name in exported})
    for module in config["modules"]:
        before = dict(shell.user_ns)
        shell.user_ns["__file__"] = module["path"]
        try:
            execute(module["source"], module["path"], shell.user_ns, "module `%s`" % module["name"], warnings)
        finally:
            shell.user_ns.pop("__file__", None)
        after = shell.user_ns.items()
        keep(shell, {name: value for name, value in after if before.get(name, before) is not value})
    return warnings


def keep(shell, names: dict) -> None:
    """Gives the user names that are not the user's own."""
    shell.user_ns.update(names)
    shell.user_ns_hidden.update(names)


def execute(source: str, file: str, names: dict, what: str, warnings: list) -> bool:
    try:
        exec(compile(source, file, "exec", dont_inherit=True), names)
        return True
    except BaseException as error:  # also `sys.exit()`: a module must not take the kernel with it
        line, step = None, error.__traceback__
        if isinstance(error, SyntaxError) and error.filename == file:
            line = error.lineno
        while step is not None:
            if step.tb_frame.f_code.co_filename == file:
                line = step.tb_lineno
            step = step.tb_next
        place = file if line is None else "%s, line %d" % (file, line)
        warnings.append("%s was not loaded: %s: %s (%s)" % (what, type(error).__name__, error, place))
        return False


def stay() -> None:
    """`quit()` and `exit()` end the cell: whoever wants the kernel's end has other ways, and its variables are many."""
    raise SystemExit


shell = get_ipython()  # noqa: F821
shell.ask_exit = stay
filterwarnings("ignore", message="To exit: use")  # IPython's advice at every `SystemExit`, which is not true here
prepared = {"warnings": prepare(shell, json.loads(config))}  # noqa: F821
shell.display_pub.publish({"application/vnd.cellwright.prepared+json": prepared})
