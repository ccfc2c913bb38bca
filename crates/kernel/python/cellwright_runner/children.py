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


def run_script(program: list, source: str, keeps_out: bool, keeps_err: bool) -> tuple:
    """Runs a program with the source as its input; its status and what it printed where that is kept."""
    streams = running().streams
    plain = sys.stdout is streams.out.text and sys.stderr is streams.err.text
    child = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if keeps_out or not plain else 1,
        stderr=subprocess.PIPE if keeps_err or not plain else 2,
    )
    try:
        printed = child.communicate(source.encode("utf-8", "surrogateescape"))
    except BaseException:
        part("prelude").end_family(child)
        raise
    texts = [(text or b"").decode("utf-8", "replace") for text in printed]
    for stream, text, kept in ((sys.stdout, texts[0], keeps_out), (sys.stderr, texts[1], keeps_err)):
        if not kept:
            stream.write(text)
    return child.returncode, texts


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
