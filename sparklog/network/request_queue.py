"""The one bounded queue between the processors, which read requests, and the handlers, which work on them.

Its bound is the broker's back-pressure. When it is full no request is dropped and no thread blocks: the
processor keeps the request, stops reading from its connections (their senders' windows then fill up), goes on
writing replies, and is woken when the handlers have caught up.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from sparklog.network.exchange import Exchange

_ROOM_SHARE: Final = 4
"""Refused processors are woken when a quarter of the queue is free, not for each single place."""


class RequestQueue:
    """At most ``requests_max`` exchanges; any number of threads on both sides."""

    def __init__(self, requests_max: int) -> None:
        if requests_max < 1:
            raise ValueError(
                f"a request queue of {requests_max} places can hold nothing; it needs at least 1"
            )
        self._requests_max = requests_max
        self._wake_at = requests_max - max(1, requests_max // _ROOM_SHARE)
        self._queue: SimpleQueue[Exchange | None] = SimpleQueue()
        self._guard = threading.Lock()  # taken to put, and to get only while somebody was refused
        self._refused: dict[int, Callable[[], None]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return self._queue.qsize()

    def offer(self, exchange: Exchange, offerer: int, wake: Callable[[], None]) -> bool:
        """Put ``exchange`` in if there is room; otherwise ``wake`` is called once when there is."""
        with self._guard:
            if self._is_closed:
                return False
            if self._queue.qsize() >= self._requests_max:
                self._refused[offerer] = wake
                # A handler that took a request before the entry above was added would not wake the offerer.
                if self._queue.qsize() > self._wake_at:
                    return False
                del self._refused[offerer]
            self._queue.put(exchange)
            return True

    def take(self) -> Exchange | None:
        """The oldest exchange, waited for; None ends one handler."""
        exchange = self._queue.get()
        if self._refused and self._queue.qsize() <= self._wake_at:
            self._wake_refused()
        return exchange

    def close(self, handlers: int) -> None:
        """Take nothing more, forget what waits, and let ``handlers`` takers end."""
        with self._guard:
            self._is_closed = True
            try:
                while True:
                    self._queue.get_nowait()
            except Empty:
                pass
            for _ in range(handlers):
                self._queue.put(None)

    def _wake_refused(self) -> None:
        with self._guard:
            refused, self._refused = self._refused, {}
        for wake in refused.values():
            wake()
