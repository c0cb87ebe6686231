"""The purgatory of one partition: produces that wait for a high watermark, fetches that wait for bytes,
deletions of records that wait for all replicas' log starts.

A request may wait on several partitions; the shell gives it one token per partition and joins the answers.
The shell also keeps the deadlines, and forgets the tokens of a request that timed out. A token is returned at
most once, and only while it waits, so that an answer and a time-out can race without harm.
"""

import heapq
from dataclasses import dataclass, field

from sparklog.model.ids import BrokerId

FORGOTTEN_MAX = 64


@dataclass(slots=True)
class ProduceWaits:
    """Produces, each satisfied by a high watermark of at least its ``required_offset`` (exclusive end)."""

    _heap: list[tuple[int, int]] = field(default_factory=list)
    _waiting: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, token: int, required_offset: int) -> None:
        heapq.heappush(self._heap, (required_offset, token))
        self._waiting.add(token)

    def forget(self, token: int) -> None:
        self._waiting.discard(token)
        if len(self._heap) > 2 * len(self._waiting) + FORGOTTEN_MAX:
            # While the high watermark does not move, retried writes must not grow the heap.
            self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
            heapq.heapify(self._heap)

    def take_satisfied(self, high_watermark: int) -> list[int]:
        """Remove and return the tokens whose offset is covered, in order of offset."""
        taken: list[int] = []
        while self._heap and self._heap[0][0] <= high_watermark:
            _, token = heapq.heappop(self._heap)
            if token in self._waiting:
                self._waiting.remove(token)
                taken.append(token)
        return taken

    def take_all(self) -> list[int]:
        taken = [token for _, token in sorted(self._heap) if token in self._waiting]
        self._heap.clear()
        self._waiting.clear()
        return taken


@dataclass(slots=True)
class DeletionWaits:
    """Deletions of records, each satisfied when no ``live`` replica has a lower log start."""

    waits: ProduceWaits = field(default_factory=ProduceWaits)
    live: frozenset[BrokerId] = frozenset()

    def __bool__(self) -> bool:
        return len(self.waits) > 0

    def add(self, token: int, offset: int) -> None:
        self.waits.add(token, offset)

    def forget(self, token: int) -> None:
        self.waits.forget(token)


@dataclass(slots=True)
class FetchWaits:
    """Fetches that found too few bytes: followers wait for the log's end, consumers for the watermark."""

    _followers: dict[int, int] = field(default_factory=dict)
    _consumers: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._followers) + len(self._consumers)

    def add(self, token: int, fetch_offset: int, *, is_follower: bool) -> None:
        (self._followers if is_follower else self._consumers)[token] = fetch_offset

    def forget(self, token: int) -> None:
        self._followers.pop(token, None)
        self._consumers.pop(token, None)

    def take_for_log_end(self, log_end_offset: int) -> list[int]:
        return _take_below(self._followers, log_end_offset)

    def take_for_high_watermark(self, high_watermark: int) -> list[int]:
        return _take_below(self._consumers, high_watermark)

    def take_all(self) -> list[int]:
        taken = [*self._followers, *self._consumers]
        self._followers.clear()
        self._consumers.clear()
        return taken


def _take_below(waits: dict[int, int], offset: int) -> list[int]:
    taken = [token for token, fetch_offset in waits.items() if fetch_offset < offset]
    for token in taken:
        del waits[token]
    return taken
