"""Looking things up in the segments of one log: batches by offset, by time, and aborted transactions.

Indexes and envelopes select the batch in which a timestamp is. Only the search inside that batch looks into
a payload, once per query, for offsets and times alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.time import Clock
from sparklog.model.write_ids import is_of_a_write, write_and_member
from sparklog.records.envelope import BatchHeader
from sparklog.records.payload import payload_of
from sparklog.storage.segments.log_read import LogRead, Reading
from sparklog.storage.segments.open_segments import OpenSegments
from sparklog.storage.segments.segment import NO_TIMESTAMP, Segment
from sparklog.storage.segments.snapshots import Snapshots, aborted_in
from sparklog.storage.segments.transaction_index import AbortedEntries

MARKER_SEARCH_BATCHES_MAX: Final = 10_000
"""Envelopes that a search for markers, or past one, looks at: some ten milliseconds under the partition's
lock.
"""


class SegmentSearch:
    """Searches in ``segments``, a list that its log changes in place. The partition's lock guards every
    call.
    """

    def __init__(self, segments: Sequence[Segment], snapshots: Snapshots, clock: Clock) -> None:
        self.open = OpenSegments()
        self._segments = segments
        self._snapshots = snapshots
        self._clock = clock

    def index_of(self, offset: int) -> int:
        """Index of the segment in whose range ``offset`` lies."""
        return max(0, bisect_right(self._segments, offset, key=_base_of) - 1)

    def read(
        self, fetch_offset: int, max_bytes: int, max_offset: int, *, at_least_one_batch: bool
    ) -> LogRead:
        """See ``Log.read``; ``fetch_offset`` is within the log."""
        reading = Reading(fetch_offset, max_bytes, max_offset, at_least_one_batch)
        for index in range(self.index_of(fetch_offset), len(self._segments)):
            goes_on = reading.take(self._segments[index])
            self._keep(self._segments[index])
            if not goes_on:
                break
        return reading.result()

    def header_at(self, offset: int) -> BatchHeader | None:
        """The envelope of the batch that holds ``offset``, or of the next batch; None at the end."""
        for index in range(self.index_of(offset), len(self._segments)):
            segment = self._segments[index]
            found = next(segment.headers_from(offset), None)
            if found is not None:
                self._keep(segment)
                return found[1]
        return None

    def offset_for_timestamp(self, timestamp_ms: int, log_start_offset: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record at or after ``timestamp_ms``; None without one.

        Ends of transactions are no records: an end has the time of its write, which may be years after the
        times that the records give themselves. An end is the answer, as it is in Kafka, where many batches
        follow it without such a record: the search holds the partition's lock.
        """
        return self._first_from(timestamp_ms, log_start_offset, with_ends=False)

    def max_timestamp(self, log_start_offset: int) -> tuple[int, int] | None:
        """Offset and timestamp of the latest record or end of a transaction; None without a timestamp."""
        greatest = max(segment.greatest_timestamp()[0] for segment in self._segments)
        if greatest <= NO_TIMESTAMP:
            return None
        return self._first_from(greatest, log_start_offset, with_ends=True)

    def _first_from(
        self, timestamp_ms: int, log_start_offset: int, *, with_ends: bool
    ) -> tuple[int, int] | None:
        first_end: tuple[int, int] | None = None
        passed = 0
        for segment in self._segments[self.index_of(log_start_offset) :]:
            if segment.greatest_timestamp()[0] < timestamp_ms:
                continue
            self._keep(segment)
            for position, header in segment.headers_from_time(timestamp_ms):
                passed += first_end is not None
                if passed > MARKER_SEARCH_BATCHES_MAX:
                    return first_end
                if header.max_timestamp_ms < timestamp_ms or (header.is_control and first_end is not None):
                    continue
                batch = segment.file.pread(header.size_bytes, position)
                found = first_record_from(batch, header, timestamp_ms, log_start_offset)
                if found is None:
                    continue
                if with_ends or not header.is_control:
                    return found
                first_end = found
        return None

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with a record or marker in ``[start_offset, end_offset)``, and markers
        already written, in the order of the markers.
        """
        found: list[AbortedTransaction] = []
        for index in range(self.index_of(start_offset), len(self._segments)):
            segment = self._segments[index]
            entries = self.aborted_of(segment)
            if not entries:
                continue
            overlapping, is_complete = entries.find(start_offset, end_offset)
            self._keep(segment)
            found += overlapping
            if is_complete:
                break
        return found

    def writes_ended_since(self, offset: int) -> frozenset[int] | None:
        """See ``ReadableLog.writes_ended_since``; ``offset`` is within the log."""
        numbers: set[int] = set()
        seen = 0
        for index in range(self.index_of(offset), len(self._segments)):
            segment = self._segments[index]
            for _, header in segment.headers_from(offset):
                seen += 1
                if seen > MARKER_SEARCH_BATCHES_MAX:
                    return None
                if header.is_control and is_of_a_write(header.producer_id):
                    numbers.add(write_and_member(header.producer_id)[0])
            self._keep(segment)
        return frozenset(numbers)

    def aborted_of(self, segment: Segment) -> AbortedEntries:
        """The segment's index of aborted transactions, rebuilt from the batches if its file is damaged."""
        entries = segment.aborted.entries()
        if entries is None:
            entries = aborted_in(segment, self._snapshots, self._segments, self._clock.wall_ms())
            segment.aborted.replace(entries)
        return entries

    def _keep(self, segment: Segment) -> None:
        self.open.keep(segment, self._segments[-1])


def _base_of(segment: Segment) -> int:
    return segment.base_offset


def first_record_from(
    batch: bytes, header: BatchHeader, timestamp_ms: int, offset_min: int
) -> tuple[int, int] | None:
    """Offset and timestamp (ms) of the first record with at least ``offset_min`` and ``timestamp_ms``."""
    offsets, times_ms = payload_of(header).times(batch, header)
    matches = np.flatnonzero((times_ms >= timestamp_ms) & (offsets >= offset_min))
    if not len(matches):
        return None
    first = matches[0]
    return int(offsets[first]), int(times_ms[first])
