"""Threads of a broker that wait in the middle of a call: for the controller, or for a remote store.

Everything else in the simulation goes on by events. What hands out producer ids stands still until it is
answered, and so does a copy to a store, while its broker serves others. So such work has a real thread, and
the schedule decides when that runs: an event hands over to the thread and stands still until that waits or
has done. Two never run at once, so nothing depends on how the machine schedules threads.

Work that asks ZooKeeper, or writes to a slow disk, stands still with its whole broker, as events do.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from simulation.machines.tasks import SimulatedLink
from simulation.schedule import Process, ProcessDied
from sparklog.broker.life.body import CONTROLLER_CALLS_MAX

Wake = Callable[[Any], None]


class _WorkThread:
    """One piece of work."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.is_done = False
        self._work = work
        self._turn, self._back = threading.Lock(), threading.Lock()
        """Held by whoever waits for the other."""
        self._is_ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="blocking-work", daemon=True)

    def start(self) -> None:
        self._turn.acquire()
        self._back.acquire()
        self._thread.start()
        self._wait_for_it()

    def go_on(self) -> None:
        """Let it run until it waits or has done; what it raises is raised here."""
        self._turn.release()
        self._wait_for_it()

    def end(self) -> None:
        """Its process is gone: it does nothing any more that reaches the world."""
        if not self.is_done:
            self._is_ended = True
            self.go_on()

    def stand_still(self) -> None:
        """Called by the work."""
        if self._is_ended:
            raise ProcessDied
        self._back.release()
        self._turn.acquire()
        if self._is_ended:
            raise ProcessDied

    def _wait_for_it(self) -> None:
        self._back.acquire()
        if self.is_done:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except ProcessDied:
            pass
        except BaseException as error:  # noqa: BLE001 (whoever let it run is told)
            self._error = error
        self.is_done = True
        self._back.release()


class WorkThreads:
    """``model.ports.Executor``: threads of one broker for one purpose, as to ask its controller."""

    def __init__(self, process: Process, threads_max: int = CONTROLLER_CALLS_MAX) -> None:
        self.process = process
        self._threads_max = threads_max
        self._running: list[_WorkThread] = []
        self._queue: deque[Callable[[], None]] = deque()
        self._now: _WorkThread | None = None

    def submit(self, work: Callable[[], None]) -> None:
        self._queue.append(work)
        self.process.soon(self._begin)

    def wait(self, ask: Callable[[Wake], None]) -> Any:
        """For the thread that runs: stand still until the argument of ``ask`` is called, in a later event of
        this process; returns what that was given first."""
        thread, answers = self._now, list[Any]()
        assert thread is not None, "nobody but a thread may wait"

        def wake(answer: Any) -> None:
            answers.append(answer)
            if len(answers) == 1 and not thread.is_done:
                self._let(thread, thread.go_on)

        ask(wake)
        thread.stand_still()
        return answers[0]

    def end(self) -> None:
        """The process is gone. A thread that waits with all of its process ends by that."""
        self._queue.clear()
        running, self._running = self._running, []
        for thread in running:
            if thread is not self._now:
                self._end(thread)

    def _end(self, thread: _WorkThread) -> None:
        # A dead process may stand still in the middle of a change, which its threads then find half done.
        unheard = contextlib.nullcontext() if self.process.is_alive else contextlib.suppress(Exception)
        before, self._now = self._now, thread
        try:
            with unheard:
                thread.end()
        finally:
            self._now = before

    def _begin(self) -> None:
        if self._queue and len(self._running) < self._threads_max:
            thread = _WorkThread(self._queue.popleft())
            self._running.append(thread)
            self._let(thread, thread.start)

    def _let(self, thread: _WorkThread, run: Callable[[], None]) -> None:
        assert self._now is None, "threads run one after the other"
        self._now = thread
        try:
            run()
        finally:
            self._now = None
            if thread.is_done and thread in self._running:
                self._running.remove(thread)
                self.process.soon(self._begin)


class WorkThreadLock:
    """A lock that threads wait for, in the order in which they came."""

    def __init__(self, threads: WorkThreads) -> None:
        self._threads = threads
        self._is_held = False
        self._waiting: deque[Wake] = deque()

    def __enter__(self) -> None:
        if self._is_held:
            self._threads.wait(self._waiting.append)  # who leaves hands it on
        self._is_held = True

    def __exit__(self, *unused: object) -> None:
        if self._waiting:
            wake = self._waiting.popleft()
            self._threads.process.soon(lambda: wake(None))
        else:
            self._is_held = False


class ControllerCalls:
    """``broker.ports.ToController`` for threads."""

    def __init__(self, threads: WorkThreads, link: SimulatedLink) -> None:
        self._threads: Final = threads
        self._link: Final = link

    def call(self, message: Any, *, timeout_ms: int, lane: str = "") -> Any:
        def ask(wake: Wake) -> None:
            self._link.call(message, timeout_ms=timeout_ms, on_response=wake, on_failure=wake)

        answer = self._threads.wait(ask)
        if isinstance(answer, OSError):
            raise answer
        return answer

    call_when_reachable = call
    """The first controller that cannot be reached ends the call, so that clients have to try again."""
