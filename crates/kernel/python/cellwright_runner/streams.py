"""`sys.stdout` and `sys.stderr`: ordinary buffered text files that need no flush to be seen or to stay in order.

Printing runs entirely in C. A stream with nothing pending carries a `write` attribute of ours on the instance, which
shadows the C method: the first write after a flush passes through `_touched`, which wakes the flusher and, when the
other stream was written last, separates the two by a mark. Then the attribute is gone until the next flush.
"""

import _thread
import io
import os
import sys
import time

from . import part
from .interrupts import uninterruptible

# Printed text is promised to the host within 50 ms.
DELAY = 0.03


class Stream:
    """One of the two: a text file over a buffer over fd 1 or 2."""

    def __init__(self, fd: int, name: str, touched):
        self.fd = fd
        raw = io.FileIO(fd, "w", closefd=False)
        raw.name = name
        self.buffer = io.BufferedWriter(raw, 1 << 16)
        # Exact types, no subclass: their C code has fast paths that a subclass would lose.
        self.text = io.TextIOWrapper(self.buffer, "utf-8", "backslashreplace", newline="\n")
        self.text.mode = "w"
        self.touched = touched
        self.text_names, self.buffer_names = self.text.__dict__, self.buffer.__dict__
        self.text_hook, self.bytes_hook = self._write_text, self._write_bytes
        self.flush_text = self.text.flush  # kept: this is called twice for every cell
        # Closing would take the stream from everyone else in this process; a stray wrapper does so when collected.
        self.text.close = self.text.flush
        self.buffer.close = self.buffer.flush
        self.arm()

    def renew_in_child(self) -> None:
        """Forgets what the parent had pending and whoever held the locks; each line is written at once from here on."""
        self.disarm()
        self.buffer.__init__(self.buffer.raw, 1 << 16)
        self.text.__init__(self.buffer, self.text.encoding, self.text.errors, newline="\n", line_buffering=True)
        self.arm()

    def leave(self) -> None:
        """Becomes a file that writes at once and needs no module to do so: nobody flushes it any more."""
        text, write, flush = self.text, io.TextIOWrapper.write, self.flush_text

        def write_at_once(piece: str) -> int:
            written = write(text, piece)
            flush()
            return written

        self.disarm()
        self.text_names.setdefault("write", write_at_once)

    def armed(self) -> bool:
        return self.text_names.get("write") is self.text_hook

    def arm(self) -> None:
        # A `write` that the user put there stays.
        self.text_names.setdefault("write", self.text_hook)
        self.buffer_names.setdefault("write", self.bytes_hook)

    def disarm(self) -> None:
        for names, hook in ((self.text_names, self.text_hook), (self.buffer_names, self.bytes_hook)):
            if names.get("write") is hook:
                del names["write"]

    def _write_text(self, text: str) -> int:
        if self.armed():  # else this method was kept by the caller from before
            self.touched(self)
        return io.TextIOWrapper.write(self.text, text)

    def _write_bytes(self, data) -> int:
        if self.buffer_names.get("write") is self.bytes_hook:
            self.touched(self)
        return io.BufferedWriter.write(self.buffer, data)

    @uninterruptible
    def flush(self) -> None:
        # Armed first: what is written while the flush waits for the pipe announces itself again. Flushed always: a
        # `print` may have looked up the C method just before the stream was armed.
        names, hook = self.text_names, self.text_hook
        if "write" not in names:
            names["write"] = hook
        try:
            self.flush_text()
        except BlockingIOError:
            # A child made the shared pipe non-blocking (node does): undo that and finish.
            os.set_blocking(self.buffer.fileno(), True)
            self.flush_text()
        except (OSError, ValueError):
            # fd 1 was closed, or the text layer detached, by user code.
            try:
                self.buffer.flush()
            except (OSError, ValueError):
                pass
        if names.get("write") is hook and "write" not in self.buffer_names:
            self.buffer_names["write"] = self.bytes_hook


class Streams:
    def __init__(self, wire):
        self.wire = wire
        self.out = Stream(1, "<stdout>", self._touched)
        self.err = Stream(2, "<stderr>", self._touched)
        self.last = None  # the stream that carries text since the last mark
        self.flush_c = None  # flushes C's own buffers, once something is loaded that may fill them
        self.modules = len(sys.modules)  # when last looked at
        self.threaded = False
        self.leaving = False
        self._forget_flusher()

    def install(self) -> None:
        sys.stdout = sys.__stdout__ = self.out.text
        sys.stderr = sys.__stderr__ = self.err.text

    def settle(self) -> None:
        """As `flush`; the caller writes a mark next, which orders what comes after."""
        self.flush()
        self.last = None

    def settle_at_start(self) -> None:
        """As `settle`, for a cell that starts: nothing to do unless something was printed since the last one ended."""
        out, err = self.out, self.err
        if (
            out.text_names.get("write") is out.text_hook
            and err.text_names.get("write") is err.text_hook
            and sys.stdout is out.text
            and sys.stderr is err.text
        ):
            self.last = None
        else:
            self.settle()

    @uninterruptible
    def before_child(self) -> None:
        """What was printed so far comes before what a child process is about to print, on either pipe."""
        with self.wire.lock:
            self.settle()
            self.wire.mark()

    def flush(self) -> None:
        """Pushes everything Python and C hold into the pipes."""
        out, err = self.out, self.err
        out.flush()
        err.flush()
        if sys.stdout is not out.text or sys.stderr is not err.text:
            for stream in (sys.stdout, sys.stderr):  # the user's own, perhaps wrapped around ours
                try:
                    stream.flush()
                except Exception:
                    pass
            out.flush()
            err.flush()
        if self.flush_c is not None:
            self.flush_c(None)

    def threads_begin(self) -> None:
        """Keeps threads from losing each other's text: in older Pythons `TextIOWrapper.write` may overwrite what
        another thread wrote while it waits for the pipe (CPython issue 119506). Writing through is slower and safe."""
        if sys.version_info < (3, 12, 4) and not self.threaded:
            self._set_threaded(True)

    def forget_threads(self) -> None:
        """Buffers text again once no thread but the main one and ours is left."""
        if _thread._count() <= 1 + self.flusher:
            self._set_threaded(False)

    def _set_threaded(self, threaded: bool) -> None:
        with self.wire.lock:
            self.threaded = threaded
            for stream in (self.out, self.err):
                try:
                    stream.text.reconfigure(write_through=threaded)
                except (OSError, ValueError):
                    pass  # closed or detached by user code

    @uninterruptible
    def _touched(self, stream: Stream) -> None:
        with self.wire.lock:
            stream.disarm()
            try:
                # The pipe is shared with children, and some (node) leave it non-blocking.
                os.set_blocking(stream.fd, True)
            except OSError:
                pass  # closed by user code
            if self.last is not stream:
                if self.last is not None:
                    self.last.flush()
                    self.wire.mark()
                self.last = stream
            if not self.pending:
                self.pending = True
                if not self.flusher:
                    self.flusher = True
                    _thread.start_new_thread(self._flush_later, (self.wake,))
                self.wake.release()

    def _flush_later(self, wake) -> None:
        while True:
            wake.acquire()
            time.sleep(DELAY)
            with self.wire.lock:
                if self.leaving:
                    return
                self.pending = False
                self.out.flush()
                self.err.flush()

    def do_without_flusher(self) -> None:
        """Writes each line at once from here on: an interpreter that ends starts no thread, and one that it stops
        half-way keeps the streams' locks."""
        with self.wire.lock:
            self.leaving = self.pending = True
            for stream in (self.out, self.err):
                try:
                    stream.text.reconfigure(line_buffering=True)
                except (OSError, ValueError):
                    pass  # closed or detached by user code

    def leave(self) -> None:
        """The interpreter is about to take down its modules, while finalizers may still print."""
        with self.wire.lock:
            self.flush()
            self.out.leave()
            self.err.leave()

    def look_for_c_output(self) -> None:
        """Finds out whether C code that may print has been loaded since the last look."""
        self.modules = len(sys.modules)
        if self.flush_c is None and _c_may_print():
            self.flush_c = part("native").flush

    def renew_in_child(self) -> None:
        for stream in (self.out, self.err):
            try:
                stream.renew_in_child()
            except ValueError:
                pass  # detached by user code
        self._forget_flusher()

    def _forget_flusher(self) -> None:
        """There is no flusher thread: at start, and again in a forked child."""
        self.pending = False
        self.flusher = False
        self.wake = _thread.allocate_lock()
        self.wake.acquire()


def _c_may_print() -> bool:
    """Whether something is loaded that could print by C's stdio: a library by ctypes, an extension not Python's own."""
    if "ctypes" in sys.modules:
        return True
    standard = os.path.dirname(os.__file__)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith((".so", ".pyd")):
            if not file.startswith(standard) or "site-packages" in file:
                return True
    return False
