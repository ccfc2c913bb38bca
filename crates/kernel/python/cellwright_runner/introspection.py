"""What the name at the cursor stands for, told without changing anything."""

import inspect as inspection
import keyword
import re

from .variables import preview, shape_of, type_name

_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def inspect(kernel, message: dict) -> dict:
    """Signature and documentation of the name at the cursor, or of the function whose arguments are being typed."""
    text = None
    for name in names_at(message["code"], message["cursor"]):
        text = describe(kernel, name, message.get("detail", 0) > 0)
        if text is not None:
            break
    return {"found": text is not None, "data": {} if text is None else {"text/plain": text}, "metadata": {}}


def names_at(code: str, cursor: int) -> list:
    """The dotted name around the cursor, then those whose open bracket the cursor is in."""
    names = []
    line_start = code.rfind("\n", 0, cursor) + 1
    for match in _PATH.finditer(code, line_start):
        if match.start() <= cursor <= match.end() and not keyword.iskeyword(match.group()):
            end = code.find(".", cursor, match.end())  # `os.pa|th.join`: what the cursor has reached
            names.append(code[match.start() : end if end >= 0 else match.end()])
            break
    depth = 0
    for position in range(min(cursor, len(code)) - 1, -1, -1):
        if code[position] == ")":
            depth += 1
        elif code[position] == "(":
            if depth:
                depth -= 1
            else:
                before = re.search(_PATH.pattern + r"\s*$", code[:position])
                if before:
                    names.append(before.group().strip())
    return names


def describe(kernel, name: str, detail: bool) -> "str | None":
    """Text about the object a dotted name stands for."""
    try:
        value = resolve(kernel, name)
    except LookupError:
        return None
    parts = []
    if callable(value):
        try:
            parts.append(name.rpartition(".")[2] + str(inspection.signature(value)))
        except (ValueError, TypeError):
            pass  # many functions in C have none
    else:
        parts.append("%s: %s" % (type_name(type(value)), preview(value, shape_of(value))))
    source = None
    if detail:
        try:
            source = inspection.getsource(value)
        except (OSError, TypeError):
            pass
    documentation = source or inspection.getdoc(value)
    if documentation:
        parts.append(documentation.rstrip())
    return "\n\n".join(parts) if parts else repr(value)


def matching(kernel, pattern: str) -> list:
    """The names that a pattern with `*` stands for: `np.arr*`."""
    import builtins
    import fnmatch

    path, _, last = pattern.rpartition(".")
    if path:
        try:
            names = dir(resolve(kernel, path))
        except LookupError:
            names = []
    else:
        names = list(kernel.namespace) + dir(builtins)
    hides = not last.startswith("_")
    found = {name for name in names if fnmatch.fnmatchcase(name, last) and not (hides and name.startswith("_"))}
    return [path + "." + name if path else name for name in sorted(found)]


def resolve(kernel, name: str):
    """The object of a dotted name; `LookupError` when there is none. Calls nothing but attribute access."""
    import builtins

    first, *rest = name.split(".")
    if first in kernel.namespace:
        value = kernel.namespace[first]
    elif hasattr(builtins, first):
        value = getattr(builtins, first)
    else:
        raise LookupError(first)
    for attribute in rest:
        try:
            value = getattr(value, attribute)
        except Exception:
            raise LookupError(attribute) from None
    return value
