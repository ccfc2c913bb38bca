"""SIGINT: a `KeyboardInterrupt` in user code, nothing between cells, and never in the middle of a frame.

The handler looks at the stack it interrupted instead of at flags, so there is no instant between two
statements of ours at which an interrupt could tear a frame or unwind the runner. Where it must not
raise, the interrupt is held: whoever sends frames for user code delivers it afterwards, and should
nobody come by, the signal is sent again, and again. One raised where Python drops exceptions, in a finalizer or
a weak reference's callback, which importing also uses, is held too. A held interrupt never reaches a later cell.

Python runs the handler only between two steps of its own: after a signal that comes just before a system call blocks,
when the call is over. The watcher's thread learns of the signal at once and ends the call with another one.
"""

import _signal
import _thread
import os
import sys
import time

SIGINT, SIGTERM = 2, 15
# A signal that ends a system call and has no other effect. By default it is ignored.
NUDGE = _signal.SIGURG
# Seconds to wait before each of them. There are several because a busy machine may delay the main thread's call.
NUDGES = (0.001, 0.01, 0.1)
RETRY = 0.001
RETRY_AT_MOST = 0.05

_held: set = set()


def uninterruptible(function):
    """Marks a function that an interrupt must not leave half-way."""
    _held.add(function.__code__)
    return function


def _ignore(_number, _frame) -> None:
    pass


class Hurry(SystemExit):
    """Ends whatever keeps a kernel that was told to leave; Python goes on to the next thing it does at its end."""


class Interrupts:
    def __init__(self):
        self.running = False
        self.turn = 0  # counts what user code was run for
        self.held_for = 0  # the turn that an interrupt waits for
        self.loop = None  # set by `eventloop` once there is one: decides for cells that await
        self.main_thread = _thread.get_ident()
        self.retrying = False
        self.sent_again = False
        self.sending = _thread.allocate_lock()  # held from the decision to send again until the signal is out
        self.handler = self._on_signal
        self.unraisable = sys.unraisablehook
        sys.unraisablehook = self._on_unraisable

    def install(self) -> None:
        """Takes SIGINT, at the start of every cell again: one cell's handler must not make the next unstoppable."""
        if _signal.getsignal(SIGINT) is not self.handler:
            _signal.signal(SIGINT, self.handler)

    def watch_signals(self) -> None:
        """From here on `arrivals` is readable when a signal has come, whatever the main thread is at."""
        self.arrivals, self.signals_to = os.pipe()
        os.set_blocking(self.signals_to, False)
        _signal.signal(NUDGE, _ignore)
        _signal.set_wakeup_fd(self.signals_to, warn_on_full_buffer=False)

    def nudge(self) -> None:
        """Ends what the main thread waits for if an interrupt has come. The watcher's thread calls this when `arrivals`
        is readable."""
        if SIGINT in os.read(self.arrivals, 4096):
            for pause in NUDGES:
                time.sleep(pause)
                if _signal.getsignal(NUDGE) is _ignore:  # else it means something to user code
                    _signal.pthread_kill(self.main_thread, NUDGE)

    def leave(self) -> None:
        """SIGTERM, by which the host says that it will not wait for long, no longer ends the process at once: what open
        files hold would be lost."""

        def hurry(_number, _frame) -> None:
            _signal.signal(SIGTERM, _signal.SIG_IGN)
            raise Hurry

        if _signal.getsignal(SIGTERM) == _signal.SIG_DFL:
            _signal.signal(SIGTERM, hurry)

    def begin(self) -> None:
        """From here on an interrupt is meant for the user code that `call` is about to run."""
        with self.sending:
            pass  # one on its way to the last turn would be taken for this turn's, or this turn's for it
        self._heed_signals()
        self.turn += 1
        self.running = True

    def _heed_signals(self) -> None:
        pass  # Python runs the handlers of signals that have come when it enters a function

    def renew_in_child(self) -> None:
        """After a fork: the thread that sends again, and may have held the lock, is not in the child."""
        self.main_thread = _thread.get_ident()
        self.sending = _thread.allocate_lock()
        signals_to = _signal.set_wakeup_fd(-1)
        if signals_to != self.signals_to:
            _signal.set_wakeup_fd(signals_to)  # user code has a loop that takes signals
        os.close(self.arrivals)
        os.close(self.signals_to)

    def call(self, function, *arguments):
        """Runs user code: the only thing SIGINT can interrupt."""
        if not self.running:
            self.begin()
        try:
            self.deliver()
            return function(*arguments)
        finally:
            self.running = False

    def deliver(self) -> None:
        """Raises an interrupt that came while a frame was being sent."""
        if self.held_for == self.turn and self.running and _thread.get_ident() == self.main_thread:
            self._interrupt(sys._getframe(1))

    def hold_for_next(self) -> None:
        """The next user code is interrupted before it begins."""
        self.held_for = self.turn + 1

    def _interrupt(self, frame) -> None:
        self.held_for = 0
        if self.loop is None or not self.loop.interrupt(frame):
            interrupt = KeyboardInterrupt()
            interrupt._cellwright_turn = self.turn
            raise interrupt

    def _on_signal(self, _number, frame) -> None:
        if self.sent_again:
            self.sent_again = False
            if self.held_for != self.turn:
                return  # it was delivered meanwhile
        if not self.running:
            if self.loop is not None:
                self.loop.interrupt_idle(frame)
        elif self._in_user_code(frame):
            self._interrupt(frame)
        else:
            self._hold()

    def _hold(self) -> None:
        self.held_for = self.turn
        if not self.retrying:
            self.retrying = True
            _thread.start_new_thread(self._again, (os.getpid(),))

    def _on_unraisable(self, unraisable) -> None:
        if unraisable.exc_type is Hurry:
            return
        if getattr(unraisable.exc_value, "_cellwright_turn", None) != self.turn or not self.running:
            self.unraisable(unraisable)
        else:
            self._hold()

    def _in_user_code(self, frame) -> bool:
        caller = Interrupts.call.__code__
        if frame.f_code is caller:
            return False  # user code has not begun, or is over
        while frame is not None and frame.f_code is not caller:
            if frame.f_code in _held:
                return False
            frame = frame.f_back
        return True  # also at the end of the chain, which Python 3.9 cuts inside coroutines

    def _again(self, pid: int) -> None:
        pause = RETRY
        while True:
            time.sleep(pause)
            self.retrying = False  # whatever is held from here on gets a thread of its own
            with self.sending:
                if not (self.held_for == self.turn and self.running and os.getpid() == pid):
                    return
                self.retrying = self.sent_again = True
                _signal.pthread_kill(self.main_thread, SIGINT)
            pause = min(2 * pause, RETRY_AT_MOST)
