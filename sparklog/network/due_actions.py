"""What a thread is to do at a later time: the ends of throttles, late replies, logins that take too long."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count

from sparklog.model.time import MonotonicMs


class DueActions:
    """For the one thread whose actions they are, but for ``postpone``, which any thread may call."""

    def __init__(self) -> None:
        self._waiting: list[tuple[MonotonicMs, int, Callable[[], None]]] = []
        self._postponed: deque[tuple[int, Callable[[], None]]] = deque()
        self._order = count()

    def postpone(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Due ``delay_ms`` after the next ``take``, for which the thread must be woken."""
        self._postponed.append((delay_ms, action))

    def at(self, due_ms: MonotonicMs, action: Callable[[], None]) -> None:
        heapq.heappush(self._waiting, (due_ms, next(self._order), action))

    @property
    def next_ms(self) -> MonotonicMs | None:
        """When the first of them is due."""
        return self._waiting[0][0] if self._waiting else None

    def take(self, now_ms: MonotonicMs) -> Iterator[Callable[[], None]]:
        """Those that are due, in their order."""
        while self._postponed:
            delay_ms, action = self._postponed.popleft()
            self.at(MonotonicMs(now_ms + delay_ms), action)
        while self._waiting and self._waiting[0][0] <= now_ms:
            yield heapq.heappop(self._waiting)[2]
