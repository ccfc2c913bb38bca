"""Finds `!cmd`, `%magic`, `%%magic` and `obj?` in a cell that is not valid Python, and makes Python of it.

A scan at the level of tokens, not of lines: nothing inside a string, a bracket or a continued line is a magic. The
result calls `get_ipython()`, which is IPython's shell where IPython is installed and the built-in one elsewhere.
"""

import re

from . import part

_NAME = r"[A-Za-z_]\w*"
_MAGIC = re.compile(r"%%?(" + _NAME + r"(?:[.:]\w+)*)")
_ASSIGNED = re.compile(r"^[ \t]*[\w.\[\]'\", ]+?=[ \t]*(?=!|%[A-Za-z_])")
_HELP = re.compile(
    r"^([ \t]*)(\?\??)?([ \t]*%{0,2}(?:"
    + _NAME
    + r"|[\w*]*\*[\w*]*)(?:\.[\w*]+|\[[^\]]*\])*)[ \t]*(\?\??)?[ \t]*;?[ \t]*$"
)
# What consoles print before and between lines of input.
_PROMPT = re.compile(r"^[ \t]*(?:>>>(?: |$)|In \[\d+\]: ?)")
_CONTINUED = re.compile(r"^[ \t]*(?:(?:>>>|\.\.\.)(?: |$)|In \[\d+\]: ?|\.\.\.+: ?)")
_AUTOMATIC = re.compile(r"^(pip|conda) +(install|uninstall|list|show|freeze|check|--version|--help)(?![\w-])")


def translate(kernel, source: str) -> "str | None":
    """The cell as Python, or None when there is nothing to translate."""
    indented = re.match(r"(?:[ \t]*\n)*([ \t]+)\S", source)
    if indented:  # pasted from inside a function
        source = re.sub("(?m)^" + indented.group(1), "", source)
    pasted = without_prompts(source)
    if pasted is not None:
        source = pasted
    if source.lstrip().startswith("%%") or any(kind != "python" for kind, _ in logical_lines(source)):
        if _AUTOMATIC.match(source.strip()):
            source = "%" + source.strip()
        return need_shell(kernel).translate(source)
    return source if indented or pasted is not None else None


def without_prompts(source: str) -> "str | None":
    """The input in a text that was copied from a console, without what the console printed; None when it was not.

    Lines stay where they are: output becomes empty lines."""
    lines = source.split("\n")
    if not any(_PROMPT.match(line) for line in lines[:1] + [line for line in lines if line.strip()][:1]):
        return None
    kept, indent = [], re.match(r"[ \t]*", lines[0]).group()
    for line in lines:
        prompt = _CONTINUED.match(line)
        kept.append(line[prompt.end() :] if prompt else "" if line.startswith(indent) else line)
    return "\n".join(kept)


def need_shell(kernel):
    """The shell for magics, made when the first cell needs it."""
    if kernel.shell is None:
        if kernel.imports.has_ipython():
            kernel.imports.makes_shell = True  # whoever asks for it meanwhile gets none
            try:
                kernel.shell = part("ipython_shell").create(kernel)
            except ImportError:
                pass  # too broken to load
            finally:
                kernel.imports.makes_shell = False
        if kernel.shell is None:
            kernel.shell = part("builtin_shell").BuiltinShell(kernel)
        kernel.namespace["get_ipython"] = kernel.hidden["get_ipython"] = kernel.shell.get_ipython
    return kernel.shell


def logical_lines(source: str):
    """(kind, text) of each logical line: `python`, `system`, `magic`, `assign`, `help`. Joined they are the source."""
    position = 0
    while position < len(source):
        end = _raw_end(source, position)
        line = source[position:end]
        stripped = line.lstrip(" \t")
        if stripped.startswith("!"):
            kind = "system"
        elif _MAGIC.match(stripped) or _AUTOMATIC.match(stripped):
            kind = "magic"
        elif _ASSIGNED.match(line):
            kind = "assign"
        elif "?" in line and _is_help(line):
            kind = "help"
        else:
            kind = "python"
            end = _python_end(source, position)
        yield kind, source[position:end]
        position = end


def _is_help(line: str) -> bool:
    match = _HELP.match(line.rstrip("\n"))
    return match is not None and bool(match.group(2)) != bool(match.group(4))


def _raw_end(source: str, position: int) -> int:
    """The end of a line that is not Python: it goes on only after a backslash."""
    while True:
        end = source.find("\n", position)
        if end < 0:
            return len(source)
        if source[position:end].endswith("\\"):
            position = end + 1
            continue
        return end + 1


def _python_end(source: str, position: int) -> int:
    """The end of a logical line of Python: past its brackets, strings and continuations."""
    depth = 0
    while position < len(source):
        char = source[position]
        if char == "#":
            position = _or_end(source.find("\n", position), source)
        elif char == "\\":
            position += 2
        elif char in "([{":
            depth += 1
            position += 1
        elif char in ")]}":
            depth = max(0, depth - 1)
            position += 1
        elif char == "\n":
            position += 1
            if not depth:
                return position
        elif char in "'\"":
            position = _string_end(source, position)
        else:
            position += 1
    return position


def _string_end(source: str, position: int) -> int:
    quote = source[position]
    triple = source.startswith(quote * 3, position)
    end = quote * 3 if triple else quote
    position += len(end)
    while position < len(source):
        if source.startswith(end, position):
            return position + len(end)
        if source[position] == "\\":
            position += 2
        elif source[position] == "\n" and not triple:
            return position  # not closed: Python will say so
        else:
            position += 1
    return position


def _or_end(position: int, source: str) -> int:
    return len(source) if position < 0 else position


def to_python(source: str) -> str:
    """What IPython's own transformer would make of the cell, for the built-in shell. Line numbers stay."""
    stripped = source.lstrip()
    if stripped.startswith("%%"):
        first, _, body = stripped.partition("\n")
        name, _, line = first[2:].strip().partition(" ")
        body += "\n" * (body[-1:] not in ("", "\n"))
        return "get_ipython().run_cell_magic(%r, %r, %r)" % (name, line.strip(), body)
    return "".join(_PYTHON[kind](text) for kind, text in logical_lines(source))


def _split(text: str) -> tuple:
    """(indent, content on one line, line breaks to keep)."""
    body = text.rstrip("\n")
    content = body.lstrip(" \t")
    indent = body[: len(body) - len(content)]
    return indent, re.sub(r"\\\n[ \t]*", " ", content), "\n" * text.count("\n")


def _system(text: str) -> str:
    indent, content, breaks = _split(text)
    if content.startswith("!!"):
        return "%sget_ipython().getoutput(%r)%s" % (indent, content[2:].strip(), breaks)
    return "%sget_ipython().system(%r)%s" % (indent, content[1:].strip(), breaks)


def _magic(text: str) -> str:
    indent, content, breaks = _split(text)
    return indent + _magic_call(content) + breaks


def _magic_call(content: str) -> str:
    name, _, line = content.lstrip("%").partition(" ")
    return "get_ipython().run_line_magic(%r, %r)" % (name, line.strip())


def _assign(text: str) -> str:
    indent, content, breaks = _split(text)
    end = _ASSIGNED.match(content).end()
    target, call = content[:end], content[end:]
    if call.startswith("!"):
        return "%s%sget_ipython().getoutput(%r)%s" % (indent, target, call[1:].strip(), breaks)
    return indent + target + _magic_call(call) + breaks


def _help(text: str) -> str:
    indent, before, name, after = _HELP.match(text.rstrip("\n")).groups()
    return "%sget_ipython().show_help(%r, %r)%s" % (
        indent,
        name.strip(),
        len(before or after) > 1,
        "\n" * text.count("\n"),
    )


_PYTHON = {"python": str, "system": _system, "magic": _magic, "assign": _assign, "help": _help}
