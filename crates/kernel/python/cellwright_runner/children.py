"""Shell commands of cells: `!cmd`, `x = !cmd`, `%%bash`. They write straight to fd 1 and 2 and find no input."""

import os
import re
import subprocess
import sys

from . import part, running


def run(command: str) -> int:
    """Runs a command to its end; the exit status, negative when a signal ended it."""
    streams = running().streams
    if sys.stdout is streams.out.text and sys.stderr is streams.err.text:
        return _run(command, 1, 2)[0]
    # The cell redirects its output (`redirect_stdout`, `%%capture`): follow it.
    status, printed = _run(command, subprocess.PIPE, subprocess.STDOUT)
    sys.stdout.write(printed)
    return status


def output_of(command: str) -> str:
    """What the command prints on stdout, whatever its encoding."""
    return _run(command, subprocess.PIPE, 2)[1]


def _run(command: str, stdout: int, stderr: int) -> tuple:
    kernel = running()
    child = subprocess.Popen(
        command,
        shell=True,
        executable=shell_program(),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        printed = child.communicate()[0]
    except BaseException:
        part("prelude").end_family(child)
        raise
    kernel.namespace["_exit_code"] = kernel.hidden["_exit_code"] = child.returncode
    return child.returncode, (printed or b"").decode("utf-8", "replace")


def shell_program() -> str:
    for path in ("/bin/bash", "/usr/bin/bash"):
        if os.path.exists(path):
            return path
    return "/bin/sh"


def expand(line: str, namespace: dict) -> str:
    """`{expression}` and `$name` by their values; what is neither stays for the shell."""

    def expression(match) -> str:
        try:
            return str(eval(match.group(1), namespace))
        except Exception:
            return match.group(0)

    def name(match) -> str:
        return str(namespace[match.group(1)]) if match.group(1) in namespace else match.group(0)

    line = re.sub(r"(?<!\$)\{([^{}\n]+)\}", expression, line)
    return re.sub(r"(?<![\\$])\$([A-Za-z_]\w*)", name, line)
