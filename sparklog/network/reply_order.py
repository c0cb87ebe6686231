"""The requests of one connection whose replies are not written yet, in the order of their arrival.

Usually that is one request: the next one begins when its reply is written. A request that only waits may let
the next one begin, if that is of a kind that may (a produce), so that several are under way. Their replies
may be ready in any order; each is written when all earlier ones are.

    [produce 7: ready] [produce 6: waits] [produce 5: ready]  ->  5 is written; 7 waits for 6

It takes no lock: its channel's guard protects it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from sparklog.network.exchange import Exchange

BeginsBeside = Callable[[memoryview], bool]
"""Whether the request in this frame may begin while earlier ones of its connection are not answered."""


def never_beside(_: memoryview) -> bool:
    """For servers that work on one request of a connection at a time."""
    return False


REQUESTS_MAX: Final = 10
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Beyond either of them the next request waits. (A Kafka client has five requests in flight by default.)"""


class ReplyOrder:
    __slots__ = ("_begins_beside", "_bytes", "_unsent", "is_newest_settled")

    def __init__(self, begins_beside: BeginsBeside) -> None:
        self._begins_beside = begins_beside
        self._unsent: deque[Exchange] = deque()
        self._bytes = 0
        self.is_newest_settled = True
        """Whether the next request may begin beside those that are under way, as far as these have room."""

    def __len__(self) -> int:
        return len(self._unsent)

    @property
    def unsent(self) -> tuple[Exchange, ...]:
        return tuple(self._unsent)

    @property
    def newest(self) -> Exchange | None:
        return self._unsent[-1] if self._unsent else None

    @property
    def has_room(self) -> bool:
        return len(self._unsent) < REQUESTS_MAX and self._bytes < REQUEST_BYTES_MAX

    def add(self, exchange: Exchange) -> None:
        """``exchange`` has arrived; the next request waits until ``is_newest_settled``."""
        self._unsent.append(exchange)
        self._bytes += exchange.frame_bytes
        self.is_newest_settled = False

    def ready(self) -> Exchange | None:
        """The oldest request, if its reply can be written."""
        if self._unsent and self._unsent[0].reply_parts is not None:
            return self._unsent[0]
        return None

    def remove(self, exchange: Exchange) -> None:
        """The reply of ``exchange``, the oldest, is written."""
        assert self._unsent[0] is exchange, "replies are written in the order of their requests"
        self._unsent.popleft()
        self._bytes -= exchange.frame_bytes
        if not self._unsent:
            self.is_newest_settled = True

    def may_begin(self, exchange: Exchange) -> bool:
        """Whether ``exchange``, the newest, may be worked on."""
        is_oldest = not self._unsent or self._unsent[0] is exchange
        return is_oldest or self._begins_beside(exchange.frame)

    def clear(self) -> tuple[Exchange, ...]:
        """Forget all of them, because the connection has ended."""
        unsent = self.unsent
        self._unsent.clear()
        self._bytes = 0
        return unsent
