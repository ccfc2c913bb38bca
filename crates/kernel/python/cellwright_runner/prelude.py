"""Helpers that cells find in their namespace: `env`, `read`, `write`, `bash`, `output` and `tool`.

Complete in itself, so that it can also be sent as source to a kernel that is not ours. Loading it imports nothing:
each helper imports what it needs when called.
"""

import os

__all__ = ["env", "read", "write", "bash", "output", "tool"]


def env(key=None, value=None):
    """All environment variables, sorted; one by its `key` (None if unset); or sets one and returns it."""
    if key is None:
        return dict(sorted(os.environ.items()))
    if value is not None:
        os.environ[key] = str(value)
    return os.environ.get(key)


def read(path, offset: int = 1, limit: "int | None" = None, encoding: str = "utf-8") -> str:
    """The text of a file: whole, or `limit` lines from line `offset` on (counted from 1)."""
    with open(os.path.expanduser(path), encoding=encoding, errors="replace", newline="") as file:
        if offset <= 1 and limit is None:
            return file.read()
        import itertools

        start = max(offset, 1) - 1
        return "".join(itertools.islice(file, start, None if limit is None else start + limit))


def write(path, content) -> str:
    """Writes text or bytes to a file, making its folders; the absolute path."""
    path = os.path.abspath(os.path.expanduser(path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(content, (bytes, bytearray, memoryview)):
        with open(path, "wb") as file:
            file.write(content)
    else:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(str(content))
    return path


class BashResult:
    """What a shell command left: `text` (stdout and stderr as they came) and `exit_code`."""

    def __init__(self, text: str, exit_code: int):
        self.text = text
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:  # short: the text has been printed already
        return "<bash: exit code %d, %d characters>" % (self.exit_code, len(self.text))

    def __bool__(self) -> bool:
        return self.exit_code == 0


def bash(cmd: str, cwd=None, timeout: "float | None" = None) -> BashResult:
    """Runs a shell command and prints its output as it comes. After `timeout` seconds it is ended: `TimeoutError`."""
    import codecs
    import subprocess
    import sys
    import time

    snapshot = _snapshot()
    if snapshot is not None:
        # The snapshot holds what a login shell would set up, at a fraction of its cost.
        program = ["bash", "-c", _START, "bash", snapshot, cmd]
    else:
        program = ["bash", "-lc", cmd]
    sys.stdout.flush()
    child = subprocess.Popen(
        program, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    )
    deadline = None if timeout is None else time.monotonic() + timeout
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = []
    try:
        while True:
            chunk = _read_until(child.stdout, deadline)
            piece = decoder.decode(chunk, final=not chunk)
            pieces.append(piece)
            sys.stdout.write(piece)
            if not chunk:
                break
        child.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        end_family(child)
        raise TimeoutError("the command did not end within %g seconds: %s" % (timeout, cmd)) from None
    except BaseException:
        end_family(child)
        raise
    finally:
        child.stdout.close()
    return BashResult("".join(pieces), child.returncode)


# Reads the snapshot `$1`, then runs the command `$2`. Variables that we have keep our values: cells change them, and
# `PATH` begins with the tools of this Python. One line: the shell counts the command's lines from here.
_START = (
    'shopt -s expand_aliases; __cellwright_ours=$(export -p); . "$1" >/dev/null 2>&1; __cellwright_login=$PATH; '
    'eval "$__cellwright_ours" 2>/dev/null; IFS=:; for __cellwright_folder in $__cellwright_login; do '
    'case ":$PATH:" in *":$__cellwright_folder:"*) ;; *) PATH=$PATH:$__cellwright_folder;; esac; done; '
    "unset IFS __cellwright_ours __cellwright_login __cellwright_folder; __cellwright_command=$2; set --; "
    'eval "unset __cellwright_command; $__cellwright_command"'
)
# What login files leave: variables to `$1`, functions and aliases to `$2`.
_SAVE = 'env -0 >"$1"; { declare -f; alias -p; } >"$2" 2>/dev/null'
_OWN = {b"PWD", b"OLDPWD", b"SHLVL", b"_"}  # every shell has its own
_LOGIN = 10.0  # seconds that login files may take


def _snapshot() -> "str | None":
    """The file that shells start from: the one that was passed to us, or one made by the first call, once for all."""
    import atexit
    import shutil
    import subprocess
    import sys
    import tempfile

    snapshot = _variable("SHELL_SNAPSHOT")
    if snapshot is not None and os.path.isfile(snapshot):
        return snapshot
    folder = tempfile.mkdtemp(prefix="cellwright-shell-")  # for its owner alone: environments hold secrets
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    snapshot, variables, functions = (os.path.join(folder, name) for name in ("login.sh", "variables", "functions"))
    login = subprocess.Popen(
        ["bash", "-lc", _SAVE, "bash", variables, functions],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        login.wait(_LOGIN)
    except subprocess.TimeoutExpired:
        end_family(login)
        print("bash(): your login files took longer than %d s and were left out" % _LOGIN, file=sys.stderr)
        for path in (variables, functions):
            open(path, "w").close()
    except BaseException:
        end_family(login)
        raise
    if not os.path.isfile(functions):
        return None
    with open(variables, "rb") as new, open(functions, "rb") as rest, open(snapshot, "wb") as file:
        file.write(_changed(new.read()) + rest.read())
    for prefix in ("CELLWRIGHT_", "PI_"):
        os.environ[prefix + "SHELL_SNAPSHOT"] = snapshot
    return snapshot


def _changed(variables: bytes) -> bytes:
    """Shell code that sets what login files have set, of what `env -0` printed."""
    lines = []
    for variable in variables.split(b"\0"):
        name, _, value = variable.partition(b"=")
        if _is_name(name) and name not in _OWN and os.environb.get(name) != value:
            lines.append(b"export %s='%s'\n" % (name, value.replace(b"'", b"'\\''")))
    return b"".join(lines)


def _is_name(name: bytes) -> bool:
    return name.decode("ascii", "replace").isidentifier()


def output(id, encoding: str = "utf-8") -> str:
    """The full text of an artifact: what `artifact://ID` in a truncated reply stands for."""
    folder = _variable("ARTIFACTS_DIR")
    if not folder:
        raise RuntimeError("there are no artifacts here: CELLWRIGHT_ARTIFACTS_DIR is not set")
    name = str(id)
    if name.startswith("artifact://"):
        name = name[len("artifact://") :]
    for entry in sorted(os.listdir(folder)):
        if entry == name or entry.startswith(name + "."):
            with open(os.path.join(folder, entry), encoding=encoding, errors="replace", newline="") as file:
                return file.read()
    raise FileNotFoundError("no artifact %r in %s" % (name, folder))


class ToolError(RuntimeError):
    """A tool answered with an error."""


_FIRST_PARAMETERS = {"bash": "command", "kernel": "action", "notebook": "action"}  # of the others it is `path`


class Tools:
    """`tool.<name>(**arguments)` calls a tool of the session that runs this cell; its untruncated, typed result."""

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*first, **arguments):
            if first:
                parameter = _FIRST_PARAMETERS.get(name, "path")
                if len(first) > 1 or parameter in arguments:
                    raise TypeError("%s() takes its arguments by name, all but %s" % (name, parameter))
                arguments[parameter] = first[0]
            return _call_tool(name, arguments)

        call.__name__ = call.__qualname__ = name
        return call

    def __call__(self, name: str, **arguments):
        """For tools whose name is not a Python name."""
        return _call_tool(name, arguments)

    def __dir__(self):
        return ["bash", "edit", "kernel", "notebook", "read", "write"]

    def __repr__(self) -> str:
        return "<tools of this session: tool.<name>(**arguments)>"


tool = Tools()


def _call_tool(name: str, arguments: dict):
    import json
    import urllib.error
    import urllib.request

    url, token = _variable("TOOL_BRIDGE_URL"), _variable("TOOL_BRIDGE_TOKEN")
    if not url:
        raise RuntimeError("tool.%s() needs a session with a tool bridge: CELLWRIGHT_TOOL_BRIDGE_URL is not set" % name)
    body = {"session": _variable("TOOL_BRIDGE_SESSION"), "name": name, "args": arguments}
    request = urllib.request.Request(
        url.rstrip("/") + "/v1/tool",
        json.dumps(body).encode("utf-8"),
        {"Content-Type": "application/json", "Authorization": "Bearer %s" % token},
    )
    # The bridge is on this machine: never through the proxy of the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as response:
            answer = response.read()
    except urllib.error.HTTPError as refused:
        answer = refused.read()
        if not answer.lstrip().startswith(b"{"):
            raise ToolError("tool.%s(): the bridge answered %d %s" % (name, refused.code, refused.reason)) from None
    except urllib.error.URLError as unreachable:
        raise ToolError("tool.%s(): the bridge at %s cannot be reached: %s" % (name, url, unreachable.reason)) from None
    answer = json.loads(answer)
    if not answer.get("ok"):
        raise ToolError("tool.%s(): %s" % (name, answer.get("error", "no reason given")))
    return answer.get("value")


def _variable(name: str) -> "str | None":
    return os.environ.get("CELLWRIGHT_" + name) or os.environ.get("PI_" + name)


def _read_until(pipe, deadline: "float | None") -> bytes:
    """The next bytes of a pipe, none at its end. `TimeoutError` when they do not come in time."""
    import select
    import time

    if deadline is not None:
        poll = select.poll()  # `select` refuses descriptors above 1,023
        poll.register(pipe, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
    return os.read(pipe.fileno(), 1 << 16)


def end_family(child) -> None:
    """Ends a child process and its descendants. They share our process group, so that they also end with us."""
    import signal
    import subprocess

    family = _descendants(child.pid)
    for pid in [child.pid] + family:
        _kill(pid, signal.SIGTERM)
    try:
        child.wait(0.5)
    except subprocess.TimeoutExpired:
        _kill(child.pid, signal.SIGKILL)
        child.wait()
    for pid in family:
        _kill(pid, signal.SIGKILL)
    _wait_until_gone(family)


def _wait_until_gone(pids: list) -> None:
    """Waits for processes that were killed. On a busy machine they are there for a moment longer."""
    import time

    deadline = time.monotonic() + 5
    while any(_is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.001)


def _is_running(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        if os.path.exists("/proc/self/stat"):
            return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # already gone


def _descendants(pid: int) -> list:
    children: dict = {}
    for child, parent in _processes():
        children.setdefault(parent, []).append(child)
    found: list = []
    front = [pid]
    while front:
        front = [child for parent in front for child in children.get(parent, [])]
        found += front
    return found


def _processes() -> list:
    """(pid, parent) of every process: from /proc, and elsewhere from `ps`."""
    pairs = []
    if os.path.exists("/proc/self/stat"):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open("/proc/%s/stat" % entry, "rb") as file:
                        # The name, in parentheses, may hold anything; state and parent follow it.
                        pairs.append((int(entry), int(file.read().rpartition(b")")[2].split()[1])))
                except (OSError, IndexError, ValueError):
                    pass  # ended meanwhile
        return pairs
    import subprocess

    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
