"""What the namespace holds and what a name stands for, told without changing anything."""

import inspect as inspection
import keyword
import re
import reprlib
import types

LONGEST = 200

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 100


def variables(kernel, message: dict) -> dict:
    """The user's names, without modules and without what we put there."""
    found = []
    for name, value in list(kernel.namespace.items()):
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if name in kernel.hidden and kernel.hidden[name] is value:
            continue
        found.append((name, value))
    limit = message.get("limit")
    return {
        "variables": [_variable(name, value) for name, value in (found if limit is None else found[:limit])],
        "total": len(found),
    }


def _variable(name: str, value) -> dict:
    kind = type(value)
    told = {"name": name, "type": kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)}
    shape = _attribute(value, "shape")
    if isinstance(shape, tuple) and all(isinstance(length, int) for length in shape):
        told["shape"] = list(shape)
    elif not isinstance(value, type):
        try:
            told["size"] = len(value)
        except Exception:
            pass  # has no length
    told["preview"] = _preview(value, told.get("shape"))
    return told


def _full_name(kind: type) -> str:
    # pandas.core.frame.DataFrame is known as pandas.DataFrame.
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package == "__main__" else "%s.%s" % (package, kind.__qualname__)


def _preview(value, shape) -> str:
    if shape is not None:  # an array or a frame: its repr may be long in the making
        dtype = _attribute(value, "dtype")
        size = " x ".join(map(str, shape)) or "scalar"
        return "%s %s%s" % (type(value).__name__, size, " %s" % dtype if dtype is not None else "")
    try:
        text = _repr.repr(value)
    except Exception as error:
        text = "<no repr: %s>" % type(error).__name__
    text = " ".join(text.split("\n"))
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _attribute(value, name: str):
    try:
        return None if isinstance(value, type) else getattr(value, name, None)
    except Exception:
        return None


# What stands at the cursor

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
        parts.append("%s: %s" % (_full_name(type(value)), _preview(value, None)))
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
