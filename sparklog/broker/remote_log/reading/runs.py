"""Runs of batches from a remote store, kept in memory for the next fetch.

A store answers in tens of milliseconds, with megabytes as fast as with kilobytes. So a read takes more than
its fetch wants, and a consumer that reads on finds the next batches here. The bound is
``remote.log.reader.cache.bytes``; the run that was used longest ago is dropped first.
"""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from sparklog.broker.partition.answers import HistoryRange, HistoryRead
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId

BATCH_BYTES: Final = 100
"""Memory of a batch's offset, position and epoch, roughly."""

Log = tuple[TopicId, int]
"""A topic's id and a partition's number."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive batches: every record from ``first_offset`` up to, not including, ``next_offset``.

    The nth batch has its last offset in ``last_offsets``, its end in ``data`` in ``ends``, and its leader
    epoch in ``leader_epochs``. ``aborted``: the aborted transactions with records among them.
    """

    first_offset: int
    data: bytes
    last_offsets: tuple[int, ...]
    ends: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    aborted: tuple[AbortedTransaction, ...] = ()

    @property
    def next_offset(self) -> int:
        return self.last_offsets[-1] + 1

    @property
    def memory_bytes(self) -> int:
        return len(self.data) + BATCH_BYTES * len(self.ends)

    def is_of(self, wanted: HistoryRange, offset: int) -> bool:
        """Whether the batch with ``offset`` is of the log as it is now, not of one that was lost in an
        unclean election.
        """
        # Logs with the same leader epoch at an offset have the same records up to there.
        nth = bisect_left(self.last_offsets, offset)
        entry = bisect_right(wanted.epochs, self.last_offsets[nth], key=lambda one: one.start_offset)
        return not entry or wanted.epochs[entry - 1].epoch == self.leader_epochs[nth]

    def cut(self, wanted: HistoryRange) -> HistoryRead:
        """The whole batches that ``wanted`` gets of this run, which has its fetch offset."""
        first = bisect_left(self.last_offsets, wanted.fetch_offset)
        start = self.ends[first - 1] if first else 0
        last = bisect_right(self.ends, start + wanted.max_bytes)
        if last == first and wanted.at_least_one_batch:  # or a large batch would stop its reader
            last += 1
        last = min(last, bisect_left(self.last_offsets, wanted.end_offset))
        while last > first and not self.is_of(wanted, self.last_offsets[last - 1]):
            last -= 1
        if last <= first:
            return HistoryRead(ErrorCode.none, next_offset=wanted.fetch_offset)
        data = memoryview(self.data)[start : self.ends[last - 1]]
        next_offset = self.last_offsets[last - 1] + 1
        aborted = tuple(
            transaction
            for transaction in self.aborted
            if wanted.leaves_out_aborted
            and transaction.first_offset < next_offset
            and transaction.last_offset >= wanted.fetch_offset
        )
        return HistoryRead(ErrorCode.none, (data,), len(data), next_offset, aborted)


class RunCache:
    """The runs of all logs; not thread-safe."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._runs: OrderedDict[tuple[Log, int], Run] = OrderedDict()
        self._starts: dict[Log, list[int]] = {}
        self.memory_bytes = 0

    def find(self, log: Log, offset: int) -> Run | None:
        """The run that has ``offset``."""
        starts = self._starts.get(log, [])
        nth = bisect_right(starts, offset) - 1
        if nth < 0:
            return None
        run = self._runs[log, starts[nth]]
        if offset >= run.next_offset:
            return None
        self._runs.move_to_end((log, starts[nth]))
        return run

    def add(self, log: Log, run: Run) -> None:
        """Keep ``run``, and drop runs until all have room. A run that is larger than all room is not kept."""
        if run.memory_bytes > self._bytes_max:
            return
        self._forget(log, run.first_offset)
        self._runs[log, run.first_offset] = run
        insort(self._starts.setdefault(log, []), run.first_offset)
        self.memory_bytes += run.memory_bytes
        while self.memory_bytes > self._bytes_max:
            (oldest_log, start) = next(iter(self._runs))
            self._forget(oldest_log, start)

    def forget(self, log: Log, run: Run) -> None:
        """Drop a run."""
        self._forget(log, run.first_offset)

    def _forget(self, log: Log, first_offset: int) -> None:
        run = self._runs.pop((log, first_offset), None)
        if run is None:
            return
        self.memory_bytes -= run.memory_bytes
        starts = self._starts[log]
        starts.remove(first_offset)
        if not starts:
            del self._starts[log]
