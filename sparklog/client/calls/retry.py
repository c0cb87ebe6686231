"""Deadlines of retries, pauses between them, the error at the end, and a word to the user long before it.

Every wait of a client is bounded by a ``Deadline``. After an obstacle the caller pauses. Once the time is up
the pause raises an error with the last obstacle and the brokers that were tried.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sparklog.client.errors import ClientClosed
from sparklog.model.time import Clock

BACKOFF_MS: Final = 50
BACKOFF_MAX_MS: Final = 1_000
REPORTED_AFTER_S: Final = 3.0
"""How long no broker answers until the user reads that a client goes on trying."""

Tell = Callable[[str], None]
"""Takes a line for the user."""


class Deadline:
    """A moment on the monotonic clock."""

    __slots__ = ("_clock", "_end_ms", "timeout_ms")

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._end_ms = clock.monotonic_ms() + timeout_ms
        self.timeout_ms = timeout_ms

    @property
    def remaining_ms(self) -> int:
        """Never negative."""
        return max(0, self._end_ms - self._clock.monotonic_ms())

    @property
    def is_over(self) -> bool:
        return self.remaining_ms == 0


class Backoff:
    """Pauses that double up to a second. ``closed`` ends a pause at once, and the client with it."""

    __slots__ = ("_closed", "_deadline", "_next_ms")

    def __init__(self, deadline: Deadline, closed: threading.Event, *, first_ms: int = BACKOFF_MS) -> None:
        self._deadline = deadline
        self._closed = closed
        self._next_ms = first_ms

    def pause(self, give_up: Callable[[], Exception]) -> None:
        """Wait a little; raise what ``give_up`` makes if the deadline has passed."""
        if not self.waited():
            raise give_up()

    def waited(self) -> bool:
        """Wait a little; False, at once, if the deadline has passed."""
        remaining_ms = self._deadline.remaining_ms
        if remaining_ms == 0:
            return False
        if self._closed.wait(min(self._next_ms, remaining_ms) / 1_000):
            raise ClientClosed("the client was closed while it was waiting to try again")
        self._next_ms = min(self._next_ms * 2, BACKOFF_MAX_MS)
        return True


@contextmanager
def reported_if_long(tell: Tell | None, words: Callable[[], str]) -> Iterator[None]:
    """Call ``tell`` once, on another thread, if the block takes longer than ``REPORTED_AFTER_S``."""
    if tell is None:
        yield
        return
    timer = threading.Timer(REPORTED_AFTER_S, lambda: tell(words()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
