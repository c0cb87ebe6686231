"""The purgatory of one partition: produces that wait for a high watermark, fetches that wait for bytes,
deletions of records that wait for all replicas' log starts.

A request may wait on several partitions; the shell gives it one token per partition and joins the answers.
The shell also keeps the deadlines, and forgets the tokens of a request that timed out. A token is returned at
most once, and only while it waits, so that an answer and a time-out can race without harm.
"""

import heapq
from dataclasses import dataclass, field

from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.ids import BrokerId

FORGOTTEN_MAX = 64


@dataclass(slots=True)
class ProduceWaits:
    """Produces, each satisfied by a high watermark of at least its ``required_offset`` (exclusive end).

    One that ``outlasts`` goes on waiting in the next leader epoch, if the same replica leads in it.
    """

    _heap: list[tuple[int, int]] = field(default_factory=list)
    _waiting: set[int] = field(default_factory=set)
    _outlasting: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, token: int, required_offset: int, *, outlasts: bool = False) -> None:
        heapq.heappush(self._heap, (required_offset, token))
        self._waiting.add(token)
        if outlasts:
            self._outlasting.add(token)

    def forget(self, token: int) -> None:
        self._waiting.discard(token)
        self._outlasting.discard(token)
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
                self.forget(token)
                taken.append(token)
        return taken

    def take_outlasting(self, end_offset: int) -> list[tuple[int, int]]:
        """Remove and return the tokens that outlast the epoch, and whose records a log that ends at
        ``end_offset`` has: offset and token, in order of offset.
        """
        taken = [
            (offset, token)
            for offset, token in sorted(self._heap)
            if token in self._outlasting and offset <= end_offset
        ]
        for _, token in taken:
            self.forget(token)
        return taken

    def take_all(self) -> list[int]:
        taken = [token for _, token in sorted(self._heap) if token in self._waiting]
        self._heap.clear()
        self._waiting.clear()
        self._outlasting.clear()
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
    """Fetches that found too few bytes: each waits until what it may see ends beyond its offset."""

    _waiting: dict[Visibility, dict[int, int]] = field(
        default_factory=lambda: {visibility: {} for visibility in Visibility}
    )

    def __len__(self) -> int:
        return sum(len(waits) for waits in self._waiting.values())

    def add(self, token: int, fetch_offset: int, visibility: Visibility) -> None:
        self._waiting[visibility][token] = fetch_offset

    def forget(self, token: int) -> None:
        for waits in self._waiting.values():
            waits.pop(token, None)

    def take_for_log_end(self, marks: Watermarks) -> list[int]:
        """The followers that can read more since the log grew."""
        return _take_below(self._waiting[Visibility.LOG_END], marks.log_end_offset)

    def take_for_high_watermark(self, marks: Watermarks) -> list[int]:
        """The consumers that can read more since the high watermark rose, and with it the last stable
        offset, which does not rise otherwise.
        """
        taken = _take_below(self._waiting[Visibility.HIGH_WATERMARK], marks.high_watermark)
        if self._waiting[Visibility.LAST_STABLE_OFFSET]:
            taken += _take_below(self._waiting[Visibility.LAST_STABLE_OFFSET], marks.last_stable_offset)
        return taken

    def take_all(self) -> list[int]:
        taken = [token for waits in self._waiting.values() for token in waits]
        for waits in self._waiting.values():
            waits.clear()
        return taken


def _take_below(waits: dict[int, int], offset: int) -> list[int]:
    taken = [token for token, fetch_offset in waits.items() if fetch_offset < offset]
    for token in taken:
        del waits[token]
    return taken
