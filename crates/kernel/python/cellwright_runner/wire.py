"""The connection to the host: JSON lines on three pipes, and marks on the output pipes that order text against frames.

One `Wire` owns every descriptor the protocol uses, so a forked kernel can drop them all or make a new one.
"""

import _thread
import os

from .interrupts import uninterruptible

MAX_MESSAGE = 256 << 20


class Closed(Exception):
    """The host has gone."""


class Wire:
    def __init__(self, fd: int, replies: int, questions: int, stdout: int = 1, stderr: int = 2):
        self.fd, self.replies, self.questions = fd, replies, questions
        os.set_inheritable(fd, False)
        os.set_inheritable(replies, False)
        os.set_inheritable(questions, False)
        # Private duplicates: marks arrive even when user code redirects or closes fd 1. `dup` makes them close-on-exec.
        self.pipes = (os.dup(stdout), os.dup(stderr))
        self.lock = _thread.RLock()  # reentrant: a signal handler of the user may print while we send
        self.inbox = bytearray()
        self.asked = b""  # the beginning of a question
        self.searched = 0  # no line break in the inbox before this
        self.waiting: list = []  # messages read while the cell waited for input
        self.nonce = b""
        self.marks = 0

    def close(self) -> None:
        """Drops the descriptors without a word on them: what a forked child does."""
        for fd in (self.fd, self.replies, self.questions) + self.pipes:
            try:
                os.close(fd)
            except OSError:
                pass  # user code closed it
        self.fd = self.replies = self.questions = -1
        self.pipes = ()

    # Receiving

    def receive(self) -> dict:
        """The next message; blocks. Raises `Closed` at the end of the connection."""
        if self.waiting:
            return self.waiting.pop(0)
        while True:
            message = self.buffered()
            if message is not None:
                return message
            self.fill()

    @uninterruptible
    def fill(self) -> None:
        """Reads what has come; blocks when nothing has. Held against interrupts, which would drop what was read."""
        chunk = os.read(self.fd, 1 << 16)
        if not chunk:
            raise Closed
        self.inbox += chunk

    def foresees(self, kind: str) -> bool:
        """Whether a message of this type has come and waits. What looks like one in a string is written otherwise."""
        import select

        try:
            while select.select([self.fd], [], [], 0)[0]:
                self.fill()
        except Closed:
            pass  # `receive` will tell
        return b'"type":"%s"' % kind.encode("ascii") in self.inbox

    @uninterruptible
    def buffered(self) -> "dict | None":
        """The next message among the bytes already read. A line that is none is reported and skipped."""
        while True:
            end = self.inbox.find(b"\n", self.searched)
            if end < 0:
                self.searched = len(self.inbox)
                return None
            line = self.inbox[:end]
            del self.inbox[: end + 1]
            self.searched = 0
            try:
                message = decode(line.decode("utf-8"))
                if isinstance(message, dict):
                    return message
                problem: object = "not an object"
            except (ValueError, RecursionError) as error:
                problem = error
            self.send(
                '{"type":"warning","message":%s' % quote("a message from the host could not be read: %s" % problem)
            )

    # Sending. Frames are given as JSON text without their closing brace.

    def send(self, frame: str) -> None:
        """Sends a frame whose place among the printed text does not matter."""
        with self.lock:
            self._write(to_utf8(frame + "}\n"))

    @uninterruptible
    def send_marked(self, settle, *frames: str) -> None:
        """Sends frames that belong after all text printed so far; `settle` pushes out what Python still holds."""
        with self.lock:
            settle()
            end = ',"mark":%d}\n' % self.mark()
            self._write(to_utf8(end.join(frames) + end))

    @uninterruptible
    def send_started(self, settle) -> None:
        """Says that the next cell starts, by a mark alone: a frame would wake the host for it."""
        with self.lock:
            settle()
            self.mark(b"+")

    @uninterruptible
    def mark(self, kind: bytes = b"") -> int:
        """Writes the next mark to both pipes. Called with the lock held: marks reach the pipes in order."""
        self.marks += 1
        text = b"\x1b_cw:%s:%d%s\x1b\\" % (self.nonce, self.marks, kind)
        write = os.write
        for pipe in self.pipes:
            while True:
                try:
                    write(pipe, text)
                    break
                except BlockingIOError:
                    # A child made the shared pipe non-blocking (node does).
                    os.set_blocking(pipe, True)
                except OSError:
                    break  # the host closed this pipe; it will not wait for the mark
        return self.marks

    @uninterruptible
    def _write(self, data: bytes) -> None:
        if self.fd < 0:
            return
        try:
            sent = os.write(self.replies, data)
            if sent < len(data):
                rest = memoryview(data)[sent:]
                while rest:
                    rest = rest[os.write(self.replies, rest) :]
        except OSError:
            pass  # the host has gone: the watcher ends this process


def to_utf8(text: str) -> bytes:
    """UTF-8; a lone surrogate becomes U+FFFD, a pair the character it stands for."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


try:
    # The C half of `json`, without the regular expressions that importing `json` itself would load.
    from _json import encode_basestring as quote
    from _json import make_encoder, make_scanner

    class _Settings:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float
        memo: dict = {}

    _scan = make_scanner(_Settings)

    def decode(text: str):
        try:
            value, end = _scan(text, 0)
            if end == len(text):
                return value
        except (StopIteration, SystemError):  # the latter because the exception's class, in `json`, is not loaded
            pass
        import json

        return json.loads(text)  # also knows white space, and how to say what is wrong

    def _refuse(value):
        raise TypeError(type(value).__name__)

    def encode_strict(value) -> str:
        return "".join(make_encoder({}, _refuse, quote, None, ":", ",", False, False, False)(value, 0))

except ImportError:  # an implementation without the accelerator
    import json

    decode = json.loads
    _encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    encode_strict = _encoder.encode

    def quote(text: str) -> str:
        return encode_strict(text)


def encode(value) -> str:
    """JSON for any value. What JSON cannot say (NaN, sets, cycles, numpy scalars) becomes the nearest thing it can."""
    try:
        return encode_strict(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        from . import part

        return encode_strict(part("jsonable").jsonable(value))
