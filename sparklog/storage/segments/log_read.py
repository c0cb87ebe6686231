"""One read of a log, from segment to segment, as a list of file slices.

A read finds its first and last batch with the indexes and a few envelopes, and does not read the batches in
between. So its cost depends neither on the number of records nor on the number of bytes returned.
"""

from dataclasses import dataclass

from sparklog.model.parts import FileSlice, Part
from sparklog.storage.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class LogRead:
    """Whole batches: the first holds the fetch offset, the last ends before ``next_offset``.

    ``segment_base`` and ``position``: where the first batch begins; both are -1 without batches.
    """

    parts: list[Part]
    size_bytes: int
    next_offset: int
    segment_base: int = -1
    position: int = -1


class Reading:
    """The state of one read, which takes file slices from one segment after the other."""

    __slots__ = (
        "_at_least_one",
        "_bytes_left",
        "_first",
        "_max_offset",
        "_next_offset",
        "_parts",
        "_size_bytes",
    )

    def __init__(self, fetch_offset: int, max_bytes: int, max_offset: int, at_least_one: bool) -> None:
        self._next_offset = fetch_offset
        self._bytes_left = max_bytes
        self._max_offset = max_offset
        self._at_least_one = at_least_one
        self._first = (-1, -1)
        self._parts: list[Part] = []
        self._size_bytes = 0

    def take(self, segment: Segment) -> bool:
        """Add the batches of ``segment`` within the limits; whether to continue with the next segment."""
        if self._next_offset >= self._max_offset:
            return False
        start = segment.locate(self._next_offset)
        if start is None:
            return True
        if start.last_offset >= self._max_offset:
            return False
        end_position, end_offset = segment.end_of_read(start, self._bytes_left, self._max_offset)
        if end_position == start.position:
            if self._parts or not self._at_least_one:
                return False
            end_position, end_offset = start.end_position, start.last_offset + 1
        if not self._parts:
            self._first = (segment.base_offset, start.position)
        length = end_position - start.position
        self._parts.append(FileSlice(segment.file, start.position, length))
        self._size_bytes += length
        self._bytes_left -= length
        self._next_offset = end_offset
        return end_position == segment.size_bytes and self._bytes_left > 0

    def result(self) -> LogRead:
        return LogRead(self._parts, self._size_bytes, self._next_offset, *self._first)
