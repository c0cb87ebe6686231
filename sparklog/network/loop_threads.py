"""Drives loops (``model.loops``) by threads: each loop has one, and the thread waits where the loop asks."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from sparklog.model.errors import SparklogError
from sparklog.model.loops import Await, Call, CallBroker, CallController, Loop, Pause, Question, Signal, go_on

logger: Final = logging.getLogger(__name__)

ANEW_MS: Final = 1_000
"""Pause before a failed loop starts again."""

Ask = Callable[[Call], Any]
"""Makes a call and waits for its response; raises OSError or SparklogError if there is none."""


def no_calls(call: Call) -> Any:
    """``Ask`` for loops without calls."""
    raise AssertionError(f"this loop has no way to make a call: {call}")


class LoopThreads:
    """``model.loops.Loops``. Threads are daemons, so that none keeps a process that wants to end."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._threads: list[_LoopThread] = []
        self._is_closed = False

    def start(self, name: str, begin: Callable[[], Loop]) -> None:
        thread = _LoopThread(name, begin, self._ask)
        with self._lock:
            if self._is_closed:
                return
            self._threads = [*(other for other in self._threads if other.is_alive()), thread]
            thread.start()

    def close(self, join_seconds: float | None = None) -> None:
        """End all waits, and wait for the threads, each at most ``join_seconds`` long (None: until it has
        ended).

        A call under way is not ended: close its connection first. Then no further loop is started.
        """
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
        for thread in threads:
            thread.stop()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(join_seconds)


class LoopDriver:
    """Drives loops on the thread that calls ``drive``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._woken = threading.Event()
        self.is_stopping = False

    def stop(self) -> None:
        """End the loop that is driven, after the call that it may have under way. For any thread."""
        self.is_stopping = True
        self._woken.set()

    def drive(self, loop: Loop) -> None:
        """From the first question of ``loop`` to its end or ``stop``."""
        try:
            question = go_on(loop)
            while question is not None and not self.is_stopping:
                try:
                    outcome = self._outcome(question)
                except (OSError, SparklogError) as error:
                    question = go_on(loop, error=error)
                else:
                    question = go_on(loop, outcome)
        finally:
            loop.close()  # also if a call ended in a bug's exception, which the loop is not sent

    def wait(self, signal: Signal, timeout_ms: int | None) -> bool:
        """Whether the signal was given in time; ``stop`` ends the wait, too."""
        signal.wake = self._woken.set
        deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1_000
        while not (is_given := signal.take()) and not self.is_stopping:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self._woken.wait(left)
            self._woken.clear()
        return is_given

    def _outcome(self, question: Question) -> Any:
        match question:
            case Pause(delay_ms):
                return self.wait(Signal(), delay_ms)
            case Await(signal, timeout_ms):
                return self.wait(signal, timeout_ms)
            case CallBroker() | CallController():
                return self._ask(question)


class _LoopThread(threading.Thread):
    """One loop, started again after every failure."""

    def __init__(self, name: str, begin: Callable[[], Loop], ask: Ask) -> None:
        super().__init__(name=name, daemon=True)
        self._begin = begin
        self._driver = LoopDriver(ask)

    def stop(self) -> None:
        self._driver.stop()

    def run(self) -> None:
        driver = self._driver
        while not driver.is_stopping:
            try:
                driver.drive(self._begin())
                return
            except Exception:
                logger.exception("%s failed and begins anew", self.name)
                driver.wait(Signal(), ANEW_MS)
