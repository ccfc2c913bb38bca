"""The part of Cellwright that runs inside the user's interpreter (see `docs/runner-protocol.md`).

Start time is part of the contract: modules loaded before the first cell import nothing that a bare
interpreter has not loaded already. Everything else is reached through `part` when first needed.
"""

import sys

_kernel = None


def running():
    """The kernel of this process, for code that is called without one: `display`, `input`, import hooks."""
    return _kernel


def part(name: str):
    """The submodule `name`, imported when first asked for, its bytecode cached whatever the user chose for theirs."""
    full = __name__ + "." + name
    module = sys.modules.get(full)
    if module is None:
        user_choice, sys.dont_write_bytecode = sys.dont_write_bytecode, False
        try:
            __import__(full)
        finally:
            sys.dont_write_bytecode = user_choice
        module = sys.modules[full]
    return module
