"""`input()`, `getpass()` and the debugger: answered by the host, or refused at once."""

import os
import select
import sys

from . import running
from .wire import Closed, decode, quote

NAP = 0.1  # a signal that came just before a wait is seen after it


def ask(prompt: str, password: bool) -> str:
    """Asks the host and waits. An interrupt ends the wait."""
    kernel, cell = running(), refuse_unless_answerable("getpass()" if password else "input()")
    kernel.wire.send_marked(
        kernel.streams.settle,
        '{"type":"input","id":%s,"prompt":%s,"password":%s' % (cell.id, quote(prompt), str(password).lower()),
    )
    try:
        return _answer(kernel.wire, decode(cell.id))
    except Closed:
        kernel.host_gone()
        raise


def refuse_unless_answerable(what: str):
    """The running cell, if somebody can type an answer for it."""
    cell = running().cells.current
    if running().wire.fd < 0 or cell is None or not cell.allow_stdin:
        raise EOFError(
            "%s has nobody to answer it: this cell runs without standard input. Put the value into the code, "
            "or read it from a file or an environment variable; to debug, print or inspect variables in a cell." % what
        )
    return cell


def breakpointhook(*arguments, **options):
    """`breakpoint()`."""
    if os.environ.get("PYTHONBREAKPOINT"):
        return sys.__breakpointhook__(*arguments, **options)
    refuse_unless_answerable("breakpoint()")
    import pdb

    # Two frames up: the original would stop in ours.
    return pdb.Pdb().set_trace(sys._getframe(2))


def _answer(wire, cell_id) -> str:
    while True:
        message = wire.buffered()
        if message is None:
            if select.select([wire.fd], [], [], NAP)[0]:  # an interrupt may end this wait, but not the read
                wire.fill()
        elif message.get("type") != "input_reply":
            wire.waiting.append(message)
        elif message.get("id") == cell_id:
            if message.get("error") is not None:
                raise EOFError(message["error"])
            return message.get("value", "")
