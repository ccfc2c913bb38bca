"""Completion: names, attributes, keyword arguments, modules after `import`, keys inside `d["`."""

import builtins
import inspect
import keyword
import re

from .introspection import names_at, resolve

_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]*)|import\s+(?:[\w., ]*,\s*)?([\w.]*))$")
_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+(?:\(?[\w, ]*,\s*|\(?)(\w*)$")
_KEY = re.compile(r"([^\W\d][\w.]*)\[\s*(['\"])([^'\"\]]*)$")
_TAIL = re.compile(r"(?:([^\W\d][\w.]*)\.)?([^\W\d]\w*)?$")


def complete(kernel, message: dict) -> dict:
    code, cursor = message["code"], min(message["cursor"], len(message["code"]))
    before = code[code.rfind("\n", 0, cursor) + 1 : cursor]
    for attempt in (_from_module, _modules, _keys, _names):
        found = attempt(kernel, before, code, cursor)
        if found is not None:
            typed, matches = found
            return {"matches": matches, "start": cursor - len(typed), "end": cursor}
    return {"matches": [], "start": cursor, "end": cursor}


def _from_module(kernel, before: str, code: str, cursor: int) -> "tuple | None":
    match = _FROM.match(before)
    if match is None:
        return None
    import sys

    module = sys.modules.get(match.group(1))  # importing it would run its code
    names = dir(module) if module is not None else []
    submodules = _submodules(match.group(1) + ".")
    names = list(names) + [name.rpartition(".")[2] for name in submodules]
    return match.group(2), _starting(names, match.group(2))


def _modules(kernel, before: str, code: str, cursor: int) -> "tuple | None":
    match = _IMPORT.match(before)
    if match is None:
        return None
    typed = match.group(1) if match.group(1) is not None else match.group(2)
    return typed, _starting(_submodules(typed), typed)


def _submodules(typed: str) -> list:
    import pkgutil
    import sys

    package = typed.rpartition(".")[0]
    if not package:
        return [module.name for module in pkgutil.iter_modules()] + list(sys.builtin_module_names)
    path = getattr(sys.modules.get(package), "__path__", None)
    return [] if path is None else ["%s.%s" % (package, module.name) for module in pkgutil.iter_modules(path)]


def _keys(kernel, before: str, code: str, cursor: int) -> "tuple | None":
    match = _KEY.search(before)
    if match is None:
        return None
    try:
        value = resolve(kernel, match.group(1))
        keys = value.keys() if hasattr(value, "keys") else getattr(value, "columns", ())
        return match.group(3), _starting([key for key in keys if isinstance(key, str)], match.group(3))
    except Exception:
        return None


def _names(kernel, before: str, code: str, cursor: int) -> "tuple | None":
    path, typed = _TAIL.search(before).groups()
    typed = typed or ""
    if path is not None:
        try:
            names = [name for name in dir(resolve(kernel, path)) if isinstance(name, str)]
        except Exception:
            names = []
        # The dotted name is replaced whole, as Jupyter's clients expect to see it.
        return path + "." + typed, [path + "." + name for name in _starting(names, typed)]
    if before.rstrip().endswith((".", "'", '"')):
        return None
    names = list(kernel.namespace) + dir(builtins) + keyword.kwlist
    return typed, _starting(names + _parameters(kernel, code, cursor), typed)


def _parameters(kernel, code: str, cursor: int) -> list:
    """`name=` for the parameters of the function being called."""
    for name in names_at(code, cursor)[-1:]:
        try:
            parameters = inspect.signature(resolve(kernel, name)).parameters.values()
            kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            return [parameter.name + "=" for parameter in parameters if parameter.kind in kinds]
        except Exception:
            pass  # not callable, or has no signature
    return []


def _starting(names: list, typed: str) -> list:
    """Sorted; names with an underscore only when one was typed."""
    last = typed.rpartition(".")[2]
    return sorted(
        {
            name
            for name in names
            if name.startswith(typed) and (last.startswith("_") or not name.rpartition(".")[2].startswith("_"))
        }
    )
