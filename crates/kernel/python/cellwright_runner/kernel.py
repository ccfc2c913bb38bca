"""The runner's main loop: takes messages one at a time and answers them in order."""

import _frozen_importlib
import _signal
import _thread
import _weakref
import atexit
import builtins
import os
import sys
import time

from . import part
from .cells import Cells
from .imports import AfterImport
from .interrupts import Interrupts
from .streams import Streams
from .wire import MAX_MESSAGE, Closed, Wire, decode, encode, quote

PROTOCOL = 1
# How long a host that hung up may leave us with `shutdown` and its `atexit` functions.
LEAVING = 1.0
# How often the watcher looks whether messages are let wait: twice before the host begins to wonder.
LOOKS_EVERY = 2.0


def _descendants(pid: int) -> list:
    """The processes below one, parents first, as far as `/proc` shows."""
    found = [pid]
    for parent in found:  # which grows meanwhile
        folder = "/proc/%d/task" % parent
        try:
            for thread in os.listdir(folder):
                with open("%s/%s/children" % (folder, thread)) as children:
                    found.extend(map(int, children.read().split()))
        except OSError:
            continue  # it has ended
    return found[1:]


class Spare:
    """Descriptors kept back: a cell that has used up all others could not be reported without loading modules."""

    def __init__(self):
        self.held = [os.dup(0) for _ in range(4)]

    def release(self) -> None:
        while self.held:
            try:
                os.close(self.held.pop())
            except OSError:
                pass  # user code closed it

    def renew(self) -> None:
        """Takes them again, when a cell is over that left some."""
        try:
            while len(self.held) < 4:
                self.held.append(os.dup(0))
        except OSError:
            pass  # there are none


class Kernel:
    """Everything that ties this process to its host: descriptors, threads and signal handlers, made in one place."""

    def __init__(self, namespace: dict):
        self.namespace = namespace
        self.wire = Wire(3, 4, 5)
        self.streams = Streams(self.wire)
        self.interrupts = Interrupts()
        self.hidden: dict = {}  # names we put into the namespace; they are not the user's variables
        self.cells = Cells(self)
        self.loop = None  # asyncio's, once something imports asyncio
        self.shell = None  # IPython's or the built-in one, once a cell needs it
        self.print_formula = None  # how sympy is to print, once the user has chosen
        self.largest_display = MAX_MESSAGE - (1 << 20)
        self.leaving = False
        self.imports = AfterImport(self)
        self.spare = Spare()

    def attach(self) -> None:
        """Takes over this process's output, signals and forks."""
        self.pid = os.getpid()
        self.streams.install()
        self.interrupts.install()
        self.interrupts.watch_signals()
        atexit.register(self.streams.leave)  # the first to register runs last
        self.until_main_ends = _weakref.ref(sys.modules["__main__"], self._let_go)
        os.register_at_fork(before=self._before_fork, after_in_parent=self._forked, after_in_child=self._in_child)
        _thread.start_new_thread(self._watch, (self.wire.fd, self.wire.questions))
        if sys.version_info >= (3, 12):
            # Python warns of forks in a process with threads; the threads it would count are ours, and ready for it.
            import _warnings

            for call in ("fork", "forkpty"):
                text = "This process (pid=%d) is multi-threaded, use of %s() may lead to deadlocks in the child."
                _warnings.filters.insert(0, ("ignore", text % (self.pid, call), DeprecationWarning, None, 0))

    def serve(self) -> None:
        while not self.leaving:
            try:
                if self.loop is not None:
                    self.loop.wait(self.wire)
                message = self.wire.receive()
            except Closed:
                self.host_gone()
            handler = getattr(self, "on_" + str(message.get("type")), None)
            if handler is None:
                self.warn("unknown message type %r" % message.get("type"))
                continue
            try:
                handler(message)
            except Exception as error:
                self.warn("`%s` failed: %s" % (message["type"], part("errors").summary(error)))

    def warn(self, text: str) -> None:
        self.wire.send('{"type":"warning","message":%s' % quote(text))

    # Ends

    def host_gone(self) -> None:
        """Nobody is left to run for: ends the process and everything it started, also in sessions of its own. Whoever
        comes after us would not find those: they have no parent then."""
        if os.getpgrp() == self.pid:
            for pid in reversed(_descendants(self.pid)):
                try:
                    if os.getpgid(pid) != self.pid:
                        os.kill(pid, _signal.SIGKILL)
                except OSError:
                    pass  # it has ended, or is another user's
            os.killpg(self.pid, _signal.SIGKILL)
        os._exit(1)

    def _watch(self, fd: int, questions: int) -> None:
        """A thread that waits for the host to hang up, which the main thread cannot do while a cell runs. It also
        answers questions, speaks for a main thread that lets a message wait, and ends a call that an interrupt came
        too early for."""
        while True:
            time.sleep(LEAVING / 20)  # the start is for the first cell
            try:
                import select

                break
            except (ImportError, OSError):
                pass  # the cell holds every descriptor that there is; it may close some
        ends, comes = select.poll(), select.poll()
        ends.register(fd, select.POLLHUP)  # not POLLIN: messages are the main thread's
        ends.register(questions, select.POLLIN)
        comes.register(fd, select.POLLIN)
        ends.register(self.interrupts.arrivals, select.POLLIN)
        kept = None
        look_at = time.monotonic() + LOOKS_EVERY
        while True:
            ready = dict(ends.poll(max(0, look_at - time.monotonic()) * 1000))
            if fd in ready:
                break
            if questions in ready and not self._answer_questions(questions):
                ends.unregister(questions)
            if self.interrupts.arrivals in ready:
                self.interrupts.nudge()
            if time.monotonic() < look_at:
                continue
            look_at = time.monotonic() + LOOKS_EVERY
            before, kept = kept, None
            if self.cells.current is None and (self.wire.inbox or self.wire.waiting or comes.poll(0)):
                kept = self.interrupts.turn
                if kept == before:
                    self.wire.send('{"type":"busy","at":%s' % encode(self._whereabouts()))
        if self.wire.fd == fd:
            if self.cells.current is None:
                time.sleep(LEAVING)  # the main thread may have a `shutdown` to read
            self.host_gone()

    def _answer_questions(self, questions: int) -> bool:
        """Answers what was asked on the pipe for questions; whether there may be more."""
        try:
            chunk = os.read(questions, 1 << 16)
        except OSError:  # user code closed it
            return False
        *lines, self.wire.asked = (self.wire.asked + chunk).split(b"\n")
        for line in lines:
            reply: dict = {"type": "reply"}
            try:
                message = decode(line.decode("utf-8"))
                reply["id"] = message["id"]
                reply.update(part("variables").variables(self, message))
            except Exception as error:
                reply["error"] = "%s: %s" % (type(error).__name__, error)
            self.wire.send(encode(reply)[:-1])
        return bool(chunk)

    def _whereabouts(self) -> "str | None":
        """What the main thread is at: the line of a cell, or of whatever else is not ours."""
        frame, found = sys._current_frames().get(self.interrupts.main_thread), None
        while frame is not None:
            file = frame.f_code.co_filename
            is_cell = file in self.cells.history.sources
            if is_cell or (found is None and not file.startswith(os.path.dirname(__file__))):
                found = "%s, line %s, in %s" % (file, frame.f_lineno, frame.f_code.co_name)
            frame = None if is_cell else frame.f_back
        return found

    # Forks: the child keeps fd 1 and 2 and loses everything by which it could be taken for the kernel.

    def _before_fork(self) -> None:
        self.wire.lock.acquire()  # no frame is half sent, no flush half done
        self.streams.flush()

    def _forked(self) -> None:
        self.wire.lock.release()

    def _in_child(self) -> None:
        self.wire.close()
        self.spare.release()
        self.wire.lock = _thread.RLock()
        self.streams.renew_in_child()
        self.interrupts.renew_in_child()

    # Messages

    def on_hello(self, message: dict) -> None:
        self.wire.nonce = message["nonce"].encode("ascii")
        self.wire.send(
            '{"type":"ready","protocol":%d,"python":"%d.%d.%d","implementation":%s,"executable":%s,"prefix":%s,"pid":%d'
            % (
                (PROTOCOL,)
                + sys.version_info[:3]
                + (quote(sys.implementation.name), quote(sys.executable), quote(sys.prefix), self.pid)
            )
        )

    def on_configure(self, message: dict) -> None:
        warnings = part("setup").configure(self, message)
        self.wire.send('{"type":"configured","warnings":%s' % encode(warnings))

    def on_execute(self, message: dict) -> None:
        self.cells.execute(message)

    def on_input_reply(self, message: dict) -> None:
        pass  # the cell that asked was interrupted meanwhile

    def on_withdraw(self, message: dict) -> None:
        pass  # the cell has begun meanwhile, or is over

    def on_complete(self, message: dict) -> None:
        self._reply(message, "completion", "complete")

    def on_inspect(self, message: dict) -> None:
        self._reply(message, "introspection", "inspect")

    def on_ping(self, message: dict) -> None:
        self.wire.send('{"type":"reply","id":%s' % encode(message.get("id")))

    def on_shutdown(self, message: dict) -> None:
        # Python then ends as it always does: it waits for threads, runs `atexit`, and writes out files that are open.
        self.leaving = True
        self.spare.release()  # what runs at the end may need them
        self.interrupts.leave()
        self.streams.do_without_flusher()
        if self.loop is not None:
            self.loop.end()

    def _let_go(self, _main) -> None:
        """Clears the namespace when Python drops `__main__`, as it would itself if we did not hold on to it."""
        self.cells.history.forget()
        for name in [name for name in self.namespace if name != "__builtins__"]:
            self.namespace[name] = None

    def _reply(self, message: dict, module: str, function: str) -> None:
        reply = {"type": "reply", "id": message.get("id")}
        try:
            reply.update(self.interrupts.call(getattr(part(module), function), self, message))
        except BaseException as error:  # properties and `__dir__` are user code, which may raise anything
            reply["error"] = part("errors").summary(error)
        self.wire.send(encode(reply)[:-1])


def serve() -> None:
    """Runs until the host is gone or says `shutdown`. The calling script's namespace becomes the user's."""
    namespace = sys.modules["__main__"].__dict__
    for name in [name for name in namespace if name not in ("__name__", "__package__", "__builtins__")]:
        del namespace[name]
    # As at the interactive prompt.
    sys.argv[:] = [""]
    namespace.update(__doc__=None, __spec__=None, __loader__=_frozen_importlib.BuiltinImporter, __annotations__={})
    package = sys.modules[__package__]
    kernel = package._kernel = Kernel(namespace)
    kernel.attach()
    _install_builtins(kernel)
    kernel.imports.install()
    kernel.serve()


def _install_builtins(kernel: Kernel) -> None:
    """Names every cell can use. Each loads its implementation when first called."""

    def display(*objects, **options):
        """Shows objects in the richest form they offer. `display_id=` makes the output one that can be updated."""
        return part("display").display(*objects, **options)

    def update_display(obj, *, display_id, **options):
        """Shows `obj` in place of what was displayed under `display_id`."""
        return part("display").update_display(obj, display_id=display_id, **options)

    def clear_output(wait=False):
        """Removes the cell's output so far; with `wait`, when the next output comes."""
        return part("display").clear_output(wait)

    def input(prompt="", /):
        """Asks the person or program that runs this cell; an `EOFError` when there is none."""
        return part("stdin").ask(str(prompt), False)

    class Exit:
        def __init__(self, name: str):
            self.name = name

        def __repr__(self) -> str:
            return "%s() ends the cell; the kernel and its variables stay" % self.name

        def __call__(self, code=None):
            # Unlike the original, leaves sys.stdin open.
            raise SystemExit if code is None else SystemExit(code)

    run_by_shell = os.system

    def system(command):
        kernel.streams.before_child()
        return run_by_shell(command)

    def breakpointhook(*arguments, **options):
        return part("stdin").breakpointhook(*arguments, **options)

    for function in (display, update_display, clear_output, input):
        function.__qualname__ = function.__name__
        function.__module__ = "builtins"
        setattr(builtins, function.__name__, function)
    builtins.exit, builtins.quit = Exit("exit"), Exit("quit")
    os.system = system
    sys.breakpointhook = breakpointhook
    sys.displayhook = kernel.cells.displayhook
