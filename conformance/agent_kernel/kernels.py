"""Kernelspecs for the tests: our kernel with the agents that the tests talk to."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[2]
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(ROOT / "target/debug/cellwright"))
FAULT_AGENT = [sys.executable, str(ROOT / "crates/testkit/src/fault_agent.py")]
TIMEOUT = 120

folder = Path(tempfile.mkdtemp(prefix="cellwright-kernels-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)
os.environ["JUPYTER_PATH"] = str(folder)
# Kernels of this machine's user, and what is set for them, are not ours to test.
for name in [name for name in os.environ if name.startswith(("ACP_", "CELLWRIGHT_AGENT"))]:
    del os.environ[name]
# Most agents of these tests use no MCP servers, and would be waited for.
os.environ["CELLWRIGHT_AGENT_TOOLS"] = "none"


def install(name: str, *agent: str, options: tuple[str, ...] = ()) -> str:
    """A kernelspec that runs our kernel with an agent."""
    spec = folder / "kernels" / name
    spec.mkdir(parents=True, exist_ok=True)
    argv = [
        CELLWRIGHT,
        "kernel",
        "run",
        "-f",
        "{connection_file}",
        *options,
        *(["--", *agent] if agent else []),
    ]
    kernel = {"argv": argv, "display_name": name, "language": "agent", "interrupt_mode": "message"}
    (spec / "kernel.json").write_text(json.dumps(kernel))
    return name


FAULTS = install("faults", *FAULT_AGENT)


@contextlib.contextmanager
def running(name: str = FAULTS, *, specs: KernelSpecManager | None = None, **start):
    """A kernel and a client that is ready."""
    manager = KernelManager(kernel_name=name, kernel_spec_manager=specs or KernelSpecManager())
    manager.start_kernel(**start)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT)
        # While it waited for a slow start it asked more than once; what is answered from here on was asked by the test.
        last = client.kernel_info()
        while client.get_shell_msg(timeout=TIMEOUT)["parent_header"]["msg_id"] != last:
            pass
        yield manager, client
    finally:
        client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=not manager.is_alive())


def wait_until(true: Callable[[], object], what: str) -> None:
    """Waits for something that comes to pass by itself."""
    deadline = time.monotonic() + TIMEOUT
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Outcome:
    """What a cell gave."""

    def __init__(self) -> None:
        self.reply: dict = {}
        self.outputs: list[dict] = []
        self.displays: dict[str, dict] = {}

    @property
    def status(self) -> str:
        return self.reply["status"]

    @property
    def text(self) -> str:
        """All text, in the order it is shown."""
        return "".join(output.get("text") or output["data"].get("text/plain", "") for output in self.shown)

    @property
    def shown(self) -> list[dict]:
        return [output for output in self.outputs if "text" in output or "data" in output]

    @property
    def error(self) -> str:
        return "\n".join(self.reply.get("traceback", []))


def execute(
    client, code: str, *, allow_stdin: bool = False, answer=None, on_output=None, **options
) -> Outcome:
    """Runs a cell as a notebook would: displays are followed, questions answered."""
    return collect(client, client.execute(code, allow_stdin=allow_stdin, **options), answer, on_output)


def collect(client, msg_id: str, answer=None, on_output=None) -> Outcome:
    outcome = Outcome()

    def hook(message):
        kind, content = message["header"]["msg_type"], message["content"]
        display = content.get("transient", {}).get("display_id")
        if kind == "update_display_data":
            outcome.displays[display]["data"] = content["data"]
        elif kind in ("stream", "display_data", "execute_result", "error"):
            outcome.outputs.append(content)
            if display:
                outcome.displays[display] = content
        if on_output:
            on_output(message)

    # Messages of other cells are kept for whoever collects those.
    aside = vars(client).setdefault("set_aside", {})

    def take(message) -> None:
        nonlocal idle
        parent = message["parent_header"].get("msg_id")
        if parent != msg_id:
            aside.setdefault(parent, []).append(message)
        elif message["header"]["msg_type"] == "execute_reply":
            outcome.reply = message["content"]
        elif message["header"]["msg_type"] == "status":
            idle = message["content"]["execution_state"] == "idle"
        else:
            hook(message)

    stdin = (lambda message: client.input(answer(message["content"]["prompt"]))) if answer else None
    # What `execute_interactive` does, for a message that was sent already.
    deadline = time.monotonic() + TIMEOUT
    idle = False
    for message in aside.pop(msg_id, []):
        take(message)
    while not (idle and outcome.reply):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{outcome.reply} {outcome.outputs}")
        if stdin:
            with contextlib.suppress(queue.Empty):
                stdin(client.get_stdin_msg(timeout=0))
        with contextlib.suppress(queue.Empty):
            take(client.get_shell_msg(timeout=0))
        with contextlib.suppress(queue.Empty):
            take(client.get_iopub_msg(timeout=0.02))
    return outcome
