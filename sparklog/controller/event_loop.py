"""A thread that runs the controller's events one after the other, each to its end.

All state of the controller belongs to this thread, so it needs no lock. Watches, session events, requests,
answers of brokers and timers are submitted as short callables.
"""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

logger: Final = logging.getLogger(__name__)

Event = Callable[[], None]


class EventLoop:
    """``submit`` may be called by any thread; after ``stop`` it drops what it is given."""

    def __init__(self, name: str, on_failure: Callable[[Exception], None]) -> None:
        """``on_failure`` is called on the loop's thread with what an event raised."""
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._on_failure = on_failure
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, event: Event) -> None:
        if not self._is_stopped.is_set():
            self._events.put(event)

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return self._events.qsize()

    def stop(self, last: Event, timeout_ms: int) -> bool:
        """Run ``last`` after what waits, and end. False if the thread is still busy after ``timeout_ms``."""
        if not self._is_stopped.is_set():
            self._events.put(last)
            self._is_stopped.set()
            self._events.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_ms / 1_000)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
            except Exception as error:
                logger.exception("an event of %s failed", self._thread.name)
                self._on_failure(error)
