"""A small host for tests: runs the runner on five pipes as the real one does, and orders what comes."""

import atexit
import fcntl
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNNER = os.path.join(FOLDER, "runner.py")
NONCE = "0123456789abcdef0123456789abcdef"
MARK = re.compile(b"\x1b_cw:" + NONCE.encode() + b":([0-9]+)([+]?)\x1b\\\\")
# A home without the start files of the person who runs the tests: login shells read them, and may be slow or hold locks.
HOME = tempfile.mkdtemp()
atexit.register(shutil.rmtree, HOME, True)
# The cache of fonts takes seconds to make, and this home is new: all homes of tests share one.
FONTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(FOLDER))), "target", "matplotlib")
# Only reached by a runner that hangs: nothing waits for time to pass.
PATIENCE = 300


class Ended(Exception):
    """The runner has gone."""


class Lane:
    def __init__(self, fd):
        self.fd = fd
        self.data = b""
        self.closed = False

    def text(self):
        """What can be shown: everything up to a mark, or to what may become one."""
        match = MARK.search(self.data)
        end = match.start() if match else self.data.rfind(b"\x1b_")
        if end < 0 or (self.closed and not match):
            end = len(self.data)
        text, self.data = self.data[:end], self.data[end:]
        return text

    def mark(self):
        """The mark it stands at: its number, and whether a cell starts there."""
        match = MARK.match(self.data)
        return (int(match.group(1)), bool(match.group(2))) if match else None

    def pass_mark(self):
        self.data = self.data[MARK.match(self.data).end() :]


class Host:
    """`events` is what a host would act on: ("stdout", text), ("stderr", text), or a message."""

    def __init__(self, python=None, env=None, cwd=None, runner=RUNNER, arguments=()):
        theirs, self.requests = os.pipe()
        asked, self.questions = os.pipe()
        self.replies, replies = os.pipe()
        out, child_out = os.pipe()
        err, child_err = os.pipe()
        # Away from the numbers they are to have.
        ours = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs, replies, asked)]

        def attach():
            os.setpgid(0, 0)
            os.dup2(ours[0], 3)
            os.dup2(ours[1], 4)
            os.dup2(ours[2], 5)

        environment = dict(os.environ, HOME=HOME, MPLCONFIGDIR=FONTS)
        environment.update(env or {})
        self.process = subprocess.Popen(
            [python or sys.executable, *arguments, runner],
            stdin=subprocess.DEVNULL,
            stdout=child_out,
            stderr=child_err,
            preexec_fn=attach,
            pass_fds=(3, 4, 5),
            env=environment,
            cwd=cwd,
        )
        for fd in [theirs, replies, asked, child_out, child_err] + ours:
            os.close(fd)
        self.lanes = {"stdout": Lane(out), "stderr": Lane(err)}
        self.inbox = b""
        self.frames = []
        self.passed = 0
        self.sent = []  # cells that have not started
        self.events = []
        self.next_id = 0

    def send(self, **message):
        if message["type"] == "execute" and "id" in message:
            self.sent.append(message["id"])
        asks = message["type"] == "variables"
        self.send_bytes(json.dumps(message).encode("utf-8") + b"\n", self.questions if asks else None)

    def send_bytes(self, data, pipe=None):
        while data:
            data = data[os.write(self.requests if pipe is None else pipe, data) :]

    def greet(self, **configure):
        self.send(type="hello", protocol=1, nonce=NONCE)
        self.send(type="configure", **configure)
        self.wait_for(lambda event: is_message(event, "ready"))
        return self.wait_for(lambda event: is_message(event, "configured"))

    def start(self, code, **options):
        """Sends a cell without waiting for its end; its id."""
        self.next_id += 1
        message = {"allow_stdin": False, "silent": False, "store_history": True}
        message.update(options)
        self.send(type="execute", id=self.next_id, code=code, **message)
        return self.next_id

    def finish(self, cell):
        """Waits for the cell's `done`; the events since the last wait, texts of one stream joined."""
        self.wait_for(lambda event: is_message(event, "done") and event["id"] == cell)
        events, self.events = self.events, []
        return joined(events)

    def run(self, code, **options):
        return self.finish(self.start(code, **options))

    def ask(self, **message):
        self.next_id += 1
        self.send(id=self.next_id, **message)
        return self.wait_for(lambda event: is_message(event, "reply") and event["id"] == self.next_id)

    def wait_for(self, wanted):
        """Reads until an event is `wanted`; that event."""
        seen = 0
        deadline = time.monotonic() + PATIENCE
        while True:
            while seen < len(self.events):
                seen += 1
                if wanted(self.events[seen - 1]):
                    return self.events[seen - 1]
            self.read(deadline)

    def wait_for_text(self, text, stream="stdout"):
        """Waits until the stream has printed `text`, perhaps in several pieces."""
        self.wait_for(lambda _: text in "".join(e[1] for e in self.events if isinstance(e, tuple) and e[0] == stream))

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def read(self, deadline):
        lanes = [lane for lane in self.lanes.values() if not lane.closed]
        ready = select.select(
            [self.replies] + [lane.fd for lane in lanes], [], [], max(0, deadline - time.monotonic())
        )[0]
        if not ready:
            raise AssertionError("the runner is silent; so far: %r" % self.events[-10:])
        for lane in lanes:  # text before frames: a mark whose frame is not there then had none
            if lane.fd in ready:
                chunk = os.read(lane.fd, 1 << 20)
                lane.data += chunk
                lane.closed = not chunk
        ended = False
        if select.select([self.replies], [], [], 0)[0]:
            chunk = os.read(self.replies, 1 << 20)
            ended = not chunk
            self.inbox += chunk
            *lines, self.inbox = self.inbox.split(b"\n")
            self.frames += map(json.loads, lines)
        self.order()
        if ended and all(lane.closed for lane in self.lanes.values()):
            raise Ended(self.events[-5:])

    def order(self):
        while True:
            while self.frames and self.frames[0].get("mark", 0) <= self.passed:
                self.events.append(self.frames.pop(0))
            for name, lane in self.lanes.items():
                text = lane.text()
                if text:
                    self.events.append((name, text.decode("utf-8", "replace")))
            marks = [lane.mark() for lane in self.lanes.values()]
            if None in marks:
                return
            assert marks[0] == marks[1] and marks[0][0] == self.passed + 1, marks
            self.passed, starts = marks[0]
            for lane in self.lanes.values():
                lane.pass_mark()
            if starts:
                self.events.append({"type": "started", "id": self.sent.pop(0)})

    def close(self):
        """Hangs up and waits for the runner to end."""
        self.hang_up()
        self.process.wait(PATIENCE)
        for fd in [self.replies, self.questions] + [lane.fd for lane in self.lanes.values()]:
            os.close(fd)

    def hang_up(self):
        if self.requests >= 0:
            os.close(self.requests)
        self.requests = -1


def is_message(event, kind):
    return isinstance(event, dict) and event["type"] == kind


def joined(events):
    """Neighbouring texts of one stream as one; how a pipe cuts them means nothing."""
    result = []
    for kind, group in itertools.groupby(events, lambda event: event[0] if isinstance(event, tuple) else None):
        group = list(group)
        result += group if kind is None else [(kind, "".join(event[1] for event in group))]
    return result


def brief(events):
    """Events as tests compare them: frames by their gist, `started` and `done` left out unless interrupted."""
    told = []
    for event in events:
        if isinstance(event, tuple):
            told.append(event)
        elif event["type"] == "result":
            told.append(("result", event["data"]))
        elif event["type"] == "display":
            told.append(("update" if event["update"] else "display", event["data"]))
        elif event["type"] == "error":
            told.append(("error", event["ename"], event["evalue"]))
        elif event["type"] == "clear":
            told.append(("clear", event["wait"]))
        elif event["type"] in ("warning", "input"):
            told.append((event["type"], event.get("message", event.get("prompt"))))
        elif event["type"] == "done" and event["status"] == "interrupted":
            told.append(("interrupted",))
    return told


def plain(text):
    return ("result", {"text/plain": text})


# For PYTHONPATH: a Python in which IPython is not installed, whatever is installed.
BARE = tempfile.mkdtemp()
atexit.register(shutil.rmtree, BARE, True)
with open(os.path.join(BARE, "sitecustomize.py"), "w") as file:
    file.write(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('IPython', 'nbformat'):\n"
        "            raise ModuleNotFoundError('No module named %r' % name, name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
    )


class RunnerTest(unittest.TestCase):
    """A test with a runner of its own, started when first used."""

    python = None
    env = None
    configure = {}

    maxDiff = None

    @property
    def host(self):
        if not hasattr(self, "_host"):
            self._host = self.launch()
            self.configured = self._host.greet(**self.configure)
        return self._host

    def launch(self, **options):
        settings = {"python": self.python, "env": self.env}
        settings.update(options)
        host = Host(**settings)
        self.addCleanup(host.close)
        return host

    def check(self, code, *expected, **options):
        """Runs a cell and compares all it says."""
        self.assertEqual(brief(self.host.run(code, **options)), list(expected))

    def value(self, code):
        """The text of a cell's result; the cell says nothing else."""
        told = brief(self.host.run(code))
        self.assertEqual([event[0] for event in told], ["result"], told)
        return told[0][1]["text/plain"]
