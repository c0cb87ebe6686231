"""One thread that runs short actions at their time: deadlines of parked requests, retries, checkpoints.

Nearly all deadlines are cancelled, since the awaited thing usually happens first. So cancelling must be
cheap (it only forgets the action, which frees what the action holds at once), and the heap is rebuilt
when more than half of it is forgotten entries.
"""

import heapq
import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final, Self

logger: Final = logging.getLogger(__name__)

_COMPACT_MIN: Final = 1_000
"""With fewer entries the cancelled ones are not removed."""


class Scheduled:
    """An action that waits for its time."""

    __slots__ = ("_action", "_timer")

    def __init__(self, timer: "ThreadTimer", action: Callable[[], None]) -> None:
        self._timer = timer
        self._action: Callable[[], None] | None = action

    @property
    def is_pending(self) -> bool:
        return self._action is not None

    def cancel(self) -> None:
        """Forget the action; when it is running already or has run, this changes nothing."""
        if self._action is not None:
            self._action = None
            self._timer._on_cancelled()

    def take(self) -> Callable[[], None] | None:
        action, self._action = self._action, None
        return action


class ThreadTimer:
    """The ``Timer`` port over one daemon thread and a heap.

    Actions run one after another on that thread, so each must be short. One that raises is logged with its
    traceback, and the others still run. After ``stop`` nothing runs any more, and ``after`` refuses.
    """

    def __init__(self, name: str = "timer") -> None:
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Scheduled]] = []
        self._order = count()  # equal deadlines run in the order they were set
        self._forgotten = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def after(self, delay_ms: int, action: Callable[[], None]) -> Scheduled:
        scheduled = Scheduled(self, action)
        entry = (time.monotonic() + delay_ms / 1_000, next(self._order), scheduled)
        with self._changed:
            if self._stopped:
                raise RuntimeError(f"timer {self._thread.name!r} is stopped; nothing can be scheduled on it")
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._changed.notify()
        return scheduled

    @property
    def waiting(self) -> int:
        """How many entries the heap holds, forgotten ones included."""
        return len(self._heap)

    def stop(self) -> None:
        """Forget everything, and wait until an action that is running has ended."""
        with self._changed:
            self._stopped = True
            self._heap.clear()
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _on_cancelled(self) -> None:
        with self._changed:
            self._forgotten += 1
            if len(self._heap) >= _COMPACT_MIN and self._forgotten * 2 > len(self._heap):
                self._heap = [entry for entry in self._heap if entry[2].is_pending]
                heapq.heapify(self._heap)
                self._forgotten = 0

    def _run(self) -> None:
        while (due := self._next_due()) is not None:
            action = due.take()
            if action is None:
                self._forgotten = max(0, self._forgotten - 1)
                continue
            try:
                action()
            except Exception:
                logger.exception("an action of timer %s failed", self._thread.name)

    def _next_due(self) -> Scheduled | None:
        """Wait for the next entry whose time has come; None once stopped."""
        with self._changed:
            while not self._stopped:
                while self._heap and not self._heap[0][2].is_pending:
                    # Here, where the thread is awake anyway: it must not wake for each that was cancelled.
                    heapq.heappop(self._heap)
                    self._forgotten = max(0, self._forgotten - 1)
                if not self._heap:
                    self._changed.wait()
                elif (wait_s := self._heap[0][0] - time.monotonic()) > 0:
                    self._changed.wait(min(wait_s, threading.TIMEOUT_MAX))
                else:
                    return heapq.heappop(self._heap)[2]
        return None
