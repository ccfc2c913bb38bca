"""How an exception that ended a cell is told: the user's frames, with source lines, and none of ours."""

import os
import sys
import traceback

from .wire import encode, quote

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
RUNNER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runner.py")
# More than anyone reads; a message of a gigabyte must still fit a frame.
LONGEST = 1 << 20


def report(kernel, cell, error: BaseException) -> str:
    """The `error` frame."""
    # An interrupt that comes twice must not end the report of the first: only code of the user's is run as such.
    call = kernel.interrupts.call
    try:
        text = (call if _makes_own_text(error) else _call)(message_of, error)
    except BaseException as trouble:  # `__str__` is user code: it may raise, or run until interrupted
        if not _makes_own_text(error):
            raise  # a module of the user's has the place of one that we need
        text = "<no message: %s>" % type(trouble).__name__
    try:
        lines = (call if _has_own_text(error) else _call)(lines_of, error, kernel.cells.history.sources)
    except BaseException:
        if not _has_own_text(error):
            raise
        lines = ["%s: %s" % (type(error).__name__, text) if text else type(error).__name__]
    if isinstance(error, SystemExit):
        lines.append("The cell asked Python to exit, which ends the cell and not the kernel.")
    line = line_in(cell.file, error)
    _keep_for_debugger(error, kernel.cells.history.sources)
    return '{"type":"error","id":%s,"ename":%s,"evalue":%s,"traceback":%s%s' % (
        cell.id,
        quote(type(error).__name__),
        quote(text),
        encode(lines),
        "" if line is None else ',"line":%d' % line,
    )


def _has_own_text(error: BaseException) -> bool:
    """Whether the message is made by code that is not Python's own, here or in an exception it came from."""
    seen: list = []
    while error is not None and not any(error is other for other in seen):
        if _makes_own_text(error):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


def _makes_own_text(error: BaseException) -> bool:
    return type(error).__str__ not in _TEXTS or not all(type(item) in _PLAIN for item in error.args)


_TEXTS = {kind.__str__ for kind in (BaseException, OSError, KeyError, SyntaxError, ImportError)}
_PLAIN = (str, int, float, bool, bytes, tuple, type(None))


def _call(function, *arguments):
    return function(*arguments)


def summary(error: BaseException) -> str:
    """One line for messages of ours."""
    try:
        text = message_of(error)
    except BaseException:
        text = ""
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


def message_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.msg:
        return _clip(error.msg)  # where it is has its own field
    return _clip(str(error))


def lines_of(error: BaseException, cells=()) -> list:
    """The traceback as lines, from the first frame of user code on."""
    start = _from_user_code(error, cells)
    if isinstance(error, SyntaxError) and error.text is None and error.filename in cells and error.lineno:
        # Found after parsing (`'return' outside function`), when Python looks for the line in a file.
        error.text = "".join(cells[error.filename].split("\n")[error.lineno - 1 : error.lineno])
    told = traceback.TracebackException(type(error), error, start)
    _drop_ours(told, set())
    if type(error).__name__ == "UsageError":  # a magic used wrongly: where IPython noticed helps nobody
        told.stack[:] = [frame for frame in told.stack if frame.filename in cells]
    return [_clip(line) for text in told.format() for line in text.rstrip("\n").split("\n")]


def _from_user_code(error: BaseException, cells):
    """The traceback from the first frame of user code on."""
    start = error.__traceback__
    while start is not None and start.tb_frame.f_code.co_filename not in cells:
        start = start.tb_next
    if start is None:  # not raised in a cell: leave out ours at least
        start = error.__traceback__
        while start is not None and _ours(start.tb_frame.f_code.co_filename):
            start = start.tb_next
    return start


def line_in(file: str, error: BaseException) -> "int | None":
    """The line of the cell or file that raised, or that does not parse."""
    line = None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno
    return line


def leave_child(error: BaseException) -> None:
    """Ends a process that a cell forked, the way the error would have ended a script."""
    if isinstance(error, SystemExit):
        raise error
    print("\n".join(lines_of(error)), file=sys.stderr)
    raise SystemExit(1)


def _ours(file: str) -> bool:
    return file.startswith(OURS) or file == RUNNER


def _drop_ours(told: traceback.TracebackException, seen: set) -> None:
    """Removes our frames here and in the exceptions this one came from."""
    if id(told) in seen:
        return
    seen.add(id(told))
    if told.stack is not None:
        told.stack[:] = [frame for frame in told.stack if not _ours(frame.filename)]
    for other in [told.__cause__, told.__context__] + list(getattr(told, "exceptions", None) or []):
        if other is not None:
            _drop_ours(other, seen)


def _keep_for_debugger(error: BaseException, cells) -> None:
    """As at the prompt: `pdb.pm()` and `%tb` look here, and need none of our frames."""
    error.__traceback__ = _from_user_code(error, cells)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.last_exc = error


def _clip(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return "%s… (%d characters in all)" % (text[:LONGEST], len(text))
