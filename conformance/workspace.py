"""What every suite here starts from: the program under test, and a folder with a home of its own."""

import asyncio
import os
import signal
import tempfile
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
CELLWRIGHT = os.environ.get("CELLWRIGHT_BIN", str(WORKSPACE / "target/debug/cellwright"))
PYTHON = os.environ.get("CELLWRIGHT_TEST_PYTHON", str(WORKSPACE / "target/venv/bin/python"))
NODE_PROGRAMS = WORKSPACE / "target/node/node_modules/.bin"


class Folder:
    """A workspace with a home of its own, so that nothing of this machine's user is met."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.path = Path(self._folder.name).resolve() / "work"
        self.home = self.path.parent / "home"
        self.python = PYTHON
        self.path.mkdir()
        self.home.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        runtime = self.home / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(runtime),
            "CELLWRIGHT_PYTHON": self.python,
            # The cache of fonts: it takes seconds to make, and every home here is new.
            "MPLCONFIGDIR": str(WORKSPACE / "target/matplotlib"),
        }

    def end_daemon(self) -> None:
        """Ends the session daemon of this home. It would end by itself, but not soon enough for the folder."""
        for entry in os.listdir("/proc"):
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if b"daemon" in command.split(b"\0") and str(self.home).encode() in environment:
                os.kill(int(entry), signal.SIGTERM)
                asyncio.run(all_gone([int(entry)]))

    def close(self) -> None:
        self._folder.cleanup()


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return ") Z " not in stat.read()
    except FileNotFoundError:
        return False


async def all_gone(pids: list[int]) -> None:
    """Waits until these processes have ended."""
    while any(lives(pid) for pid in pids):
        await asyncio.sleep(0.01)


def node_program(name: str) -> Path:
    """A program from conformance/package.json."""
    program = NODE_PROGRAMS / name
    if not program.exists():
        raise FileNotFoundError(f"{program} is missing; run scripts/check.sh prepare")
    return program
