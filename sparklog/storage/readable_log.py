"""The side of a log that is read: its segments, batches by offset and by time, aborted transactions.

Only the parts that ``read`` returns are thread-safe: they stay readable after the log has changed, and even
after their segment was removed.
"""

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.ids import Offset
from sparklog.model.time import Clock
from sparklog.records.envelope import BatchHeader
from sparklog.storage.recovery.log_recovery import Corruption, Recovered
from sparklog.storage.segments.log_read import LogRead
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.segment_search import SegmentSearch


class ReadableLog:
    """The segments of one log, and where they begin and end. The partition's lock guards every call.

    ``log_start_offset <= local_start_offset <= log_end_offset``: the first is what a reader may ask for, the
    second is the first offset on this disk. What is between them is in the remote store.
    """

    def __init__(self, recovered: Recovered, clock: Clock) -> None:
        self.corruption: Corruption | None = recovered.corruption
        self.local_start_offset = Offset(recovered.segments[0].base_offset)
        self.log_start_offset = self.local_start_offset
        self.log_end_offset = Offset(recovered.end_offset)
        self._segments: list[Segment] = recovered.segments
        self._search = SegmentSearch(self._segments, recovered.snapshots, clock)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def active_segment_base(self) -> int:
        return self._segments[-1].base_offset

    @property
    def first_segment_base(self) -> int:
        return self._segments[0].base_offset

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; the last one is active."""
        return tuple(self._segments)

    @property
    def segment_bases(self) -> list[int]:
        return [segment.base_offset for segment in self._segments]

    def read(
        self, fetch_offset: int, max_bytes: int, max_offset: int, *, at_least_one_batch: bool
    ) -> LogRead | None:
        """Whole batches from the batch that holds ``fetch_offset``; all end before ``max_offset``, exclusive.

        None when ``fetch_offset`` is not between the local start and the end. With ``at_least_one_batch`` the
        first batch may exceed ``max_bytes``. CorruptBatch when the bytes at a batch's position are no batch.
        """
        if not self.local_start_offset <= fetch_offset <= self.log_end_offset:
            return None
        if self.corruption is not None and fetch_offset < self.corruption.offset:
            max_offset = min(max_offset, self.corruption.offset)
        max_offset = min(max_offset, self.log_end_offset)
        if fetch_offset >= max_offset:  # most reads, because a follower's fetch asks for all its partitions
            return LogRead([], 0, fetch_offset)
        return self._search.read(fetch_offset, max_bytes, max_offset, at_least_one_batch=at_least_one_batch)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap ``[start_offset, end_offset)``, by their markers."""
        return self._search.aborted_transactions(start_offset, end_offset)

    def writes_ended_since(self, offset: int) -> frozenset[int] | None:
        """The numbers of the atomic writes that have a marker at or above ``offset``, committed or aborted.

        None if ``offset`` is outside of what is on this disk, or so far from the end that the search would
        hold up the partition.
        """
        if not self.local_start_offset <= offset <= self.log_end_offset:
            return None
        return self._search.writes_ended_since(offset)

    def settle_aborted(self) -> None:
        """Rebuild the indexes of aborted transactions of sealed segments whose files are damaged."""
        for segment in self._segments[:-1]:
            self._search.aborted_of(segment)
            segment.aborted.cool()

    def header_at(self, offset: int) -> BatchHeader | None:
        """The envelope of the batch that holds ``offset``, or of the next batch; None at the end."""
        return self._search.header_at(offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first local record at or after ``timestamp_ms``; None without one."""
        return self._search.offset_for_timestamp(timestamp_ms, self.local_start_offset)

    def max_timestamp(self) -> tuple[int, int] | None:
        """Offset and timestamp of the latest local record; None if none has a timestamp."""
        return self._search.max_timestamp(self.local_start_offset)
