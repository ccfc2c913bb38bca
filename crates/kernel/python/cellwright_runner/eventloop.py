"""One asyncio loop for the life of the kernel: cells await on it, background tasks go on between cells."""

import _signal
import _thread
import asyncio
import os
import sys
import time
from asyncio import events

from . import part, running

ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
# For how long one step of a background task may keep a message waiting before an interrupt is meant for it.
PATIENCE = 0.05


def adopt(kernel, asyncio_module) -> None:
    """Called when asyncio is imported, by whomever."""
    if kernel.loop is None:
        kernel.loop = kernel.interrupts.loop = EventLoop()
    original = asyncio_module.create_task
    if hasattr(original, "__wrapped__"):
        return

    def create_task(coro, **options):
        # A cell without `await` runs outside the loop, so that `asyncio.run` works in it; its tasks start after it.
        if events._get_running_loop() is None and kernel.cells.current is not None:
            return kernel.loop.loop.create_task(coro, **options)
        return original(coro, **options)

    running_loop = asyncio_module.get_running_loop

    def get_running_loop():
        # The same, for the cell's own code only: libraries ask whether they may run a loop, and they may.
        if events._get_running_loop() is None and kernel.cells.current is not None:
            if sys._getframe(1).f_code.co_filename in kernel.cells.history.sources:
                return kernel.loop.loop
        return running_loop()

    get_running_loop.__doc__ = running_loop.__doc__
    asyncio_module.get_running_loop = get_running_loop
    create_task.__wrapped__ = original
    create_task.__doc__ = original.__doc__
    asyncio_module.create_task = asyncio_module.tasks.create_task = create_task


def ensure(kernel) -> "EventLoop":
    if kernel.loop is None:
        adopt(kernel, asyncio)
    return kernel.loop


class EventLoop:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.task = None  # of the cell that awaits
        self.asked = False  # to stop
        self.suspect = None  # the step of a background task that an interrupt found, while a message waited
        self.make_current()

    def make_current(self) -> None:
        """`asyncio.run` in a cell leaves no current loop behind, and a cell may have closed ours."""
        if self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def run(self, coroutine):
        """Runs the coroutine of a cell to its end."""
        self.asked = False
        self.task = task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            if not self.asked:
                raise
            raise KeyboardInterrupt().with_traceback(cancelled.__traceback__) from None
        finally:
            if not task.done():  # something else in the loop was interrupted
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task], timeout=1))
            if task.done() and not task.cancelled():
                task.exception()  # else the loop would log it as never retrieved
            self.task = None

    # Waiting for the host

    def wait(self, wire) -> None:
        """Returns when a message has come; lets background tasks run meanwhile. Raises whatever `wire` does."""
        loop = self.loop
        if loop.is_closed() or not (loop._ready or loop._scheduled or asyncio.all_tasks(loop)):
            return
        ready = bool(wire.inbox or wire.waiting)

        def readable() -> None:
            nonlocal ready
            ready = True
            loop.stop()

        if ready:
            loop.call_soon(loop.stop)  # one turn, so that a busy host does not starve the tasks
            self._turn()
            return
        loop.add_reader(wire.fd, readable)
        try:
            while not (ready or wire.inbox):  # a turn that ended badly looks ahead
                self._turn()
        finally:
            loop.remove_reader(wire.fd)

    def end(self) -> None:
        """Cancels the tasks that are left and closes the loop, as `asyncio.run` does."""
        loop = self.loop
        if loop.is_closed():
            return
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        for task in tasks:
            if not task.cancelled() and task.exception() is not None:
                told = {
                    "message": "in a background task that was cancelled",
                    "exception": task.exception(),
                    "task": task,
                }
                loop.call_exception_handler(told)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _turn(self) -> None:
        try:
            self.loop.run_forever()
        except BaseException as error:  # `sys.exit()` in a task, or an interrupt
            lines = part("errors").lines_of(error, running().cells.history.sources)
            print("In a background task:", *lines, sep="\n", file=sys.stderr)
            if running().wire.foresees("withdraw"):
                running().interrupts.hold_for_next()

    # Interrupts: called by the signal handler with the frame it interrupted.

    def interrupt(self, frame) -> bool:
        """Stops the awaiting cell by cancelling its task. False: it is running code that must be interrupted itself."""
        task = self.task
        if task is None or task.done():
            return False
        if _in_user_code(frame) and (asyncio.current_task(self.loop) is task or self.asked):
            return False
        self.asked = True
        self.loop.call_soon_threadsafe(task.cancel)
        return True

    def interrupt_idle(self, frame) -> None:
        """Between cells an interrupt is ignored, unless a background task keeps the next cell from starting: a message
        waits, and still does a while later, in the same step of the same task."""
        before, self.suspect = self.suspect, None
        if not (self.loop.is_running() and _in_user_code(frame) and _message_waits()):
            return
        step = _step(frame)
        if step is before:
            raise KeyboardInterrupt
        self.suspect = step
        _thread.start_new_thread(self._look_again, (running().interrupts,))

    def _look_again(self, interrupts) -> None:
        time.sleep(PATIENCE)
        with interrupts.sending:  # no turn begins meanwhile
            if self.suspect is not None and not interrupts.running:
                _signal.pthread_kill(interrupts.main_thread, _signal.SIGINT)


def _step(frame):
    """What the loop has called: the outermost frame of the callback that is running."""
    while frame.f_back is not None and frame.f_code is not events.Handle._run.__code__:
        frame = frame.f_back
    return frame


def _in_user_code(frame) -> bool:
    """Whether a callback of the loop has come to code that is not asyncio's. An exception in the loop's own code, which
    also runs on behalf of a task, could lose the step that the task waits for."""
    found = False
    while frame is not None and frame.f_code is not events.Handle._run.__code__:
        if frame.f_globals is globals():
            return False  # the loop itself
        found = found or not frame.f_code.co_filename.startswith(ASYNCIO)
        frame = frame.f_back
    return found  # Python 3.9 ends the chain at a coroutine that an exception was thrown into


def _message_waits() -> bool:
    import select

    return bool(select.select([running().wire.fd], [], [], 0)[0])
