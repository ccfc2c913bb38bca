"""Entry of the Cellwright runner: refuses Pythons that are too old, then hands over to the package beside it.

This file is compiled at every start and must parse on any Python, so it holds nothing else.
"""

import os
import sys

if sys.version_info < (3, 8):
    import json

    os.write(
        4,
        json.dumps(
            {
                "type": "ready",
                "error": "%s is Python %d.%d; Cellwright needs Python 3.8 or newer"
                % ((sys.executable,) + tuple(sys.version_info[:2])),
            }
        ).encode("ascii")
        + b"\n",
    )
    sys.exit(1)

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    # Our bytecode is cached beside our sources whatever the user chose for theirs: start time depends on it.
    user_choice, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    from cellwright_runner.kernel import serve

    sys.dont_write_bytecode = user_choice
    # The script's folder goes; the current folder takes its place, as at the interactive prompt.
    sys.path[:] = ["" if entry == here else entry for entry in sys.path[1:]]
    serve()
