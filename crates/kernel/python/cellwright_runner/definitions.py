"""Where things defined in cells can be found by those who only know `__main__`: `inspect` and spawned processes."""

import ast
import os
import re
import shutil


def file_of_class(kernel, cls: type) -> "str | None":
    """The newest cell that defines the class."""
    for member in vars(cls).values():
        code = getattr(getattr(member, "__func__", member), "__code__", None)
        if code is not None and code.co_filename in kernel.cells.history.sources:
            return code.co_filename
    pattern = re.compile(r"^[ \t]*class\s+%s\b" % re.escape(cls.__name__), re.MULTILINE)
    for file, source in reversed(list(kernel.cells.history.sources.items())):
        if pattern.search(source):
            return file
    return None


def bring_to_children(kernel, spawn) -> None:
    """A process started by spawn or forkserver imports the parent's main script to find functions and classes. A kernel
    has no script: it is given one with the imports, definitions and constants of the cells, and nothing that acts."""
    original = spawn.get_preparation_data
    if hasattr(original, "__wrapped__"):
        return

    def get_preparation_data(name):
        data = original(name)
        if "init_main_from_name" not in data and "init_main_from_path" not in data:
            data["init_main_from_path"] = _script(kernel)
        return data

    get_preparation_data.__wrapped__ = original
    spawn.get_preparation_data = get_preparation_data


_written: dict = {}


def _script(kernel) -> str:
    """The path of a script with what the cells have defined so far."""
    import atexit
    import tempfile

    pieces = []
    for file, source in kernel.cells.history.sources.items():
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            if _inert(node):
                # Blank lines keep the numbers of the cell, for tracebacks.
                pieces.append((file, "\n" * (_first_line(node) - 1) + _text(source, node)))
    text = TEMPLATE % pieces
    if text not in _written:
        folder = tempfile.mkdtemp(prefix="cellwright-")
        path = os.path.join(folder, "cells.py")
        with open(path, "w", encoding="utf-8") as script:
            script.write(text)
        atexit.register(_remove, folder, os.getpid())
        _written.clear()
        _written[text] = path
    return _written[text]


TEMPLATE = """\
# What the cells of the parent process define, for processes it spawns.
for _file, _source in %r:
    try:
        exec(compile(_source, _file, "exec"), globals())
    except Exception:
        pass  # depends on something only the parent has
"""


def _inert(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        try:
            ast.literal_eval(node.value)
            return True
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
    return False


def _first_line(node) -> int:
    return min([node.lineno] + [decorator.lineno for decorator in getattr(node, "decorator_list", [])])


def _text(source: str, node) -> str:
    lines = source.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8").split(b"\n")
    lines = lines[_first_line(node) - 1 : node.end_lineno]
    lines[-1] = lines[-1][: node.end_col_offset]
    if not getattr(node, "decorator_list", []):
        lines[0] = lines[0][node.col_offset :]  # `a = 1; b = 2`
    return b"\n".join(lines).decode("utf-8")


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
