"""Where the latest batches of an active segment begin, so that a read near its end reads no envelopes.

Most reads are of what was just appended: followers fetch it, and consumers up to the high watermark. The
index is sparse, so each would read a page of the file and walk along its envelopes.

What is remembered is a run of consecutive batches that ends where the segment ends. Earlier batches end
before the first one's base offset, so an offset from there on is in the run or beyond it; for an earlier
offset the file has to be searched. Arrays, and not tuples, because a broker has thousands of active segments.

Failure: a run that does not fit the file would serve bytes that begin inside a batch. So it is forgotten by
every change of the segment but an append: a truncation, the seal, a recovery, a rebuilt index.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from sparklog.storage.segments.scan import Outline

REMEMBERED_MIN: Final = 64
"""How many are remembered at least, once so many were appended; at most twice as many."""


class LatestBatches:
    """The batches appended last to one segment, in the order of the file."""

    __slots__ = ("_base_offsets", "_last_offsets", "_positions", "end_position")

    def __init__(self) -> None:
        self._positions: array[int] = array("q")
        self._base_offsets: array[int] = array("q")
        self._last_offsets: array[int] = array("q")
        """All three have one entry for each batch, and each grows strictly."""
        self.end_position = 0
        """Where the last batch ends; each other one ends where the next begins."""

    def __len__(self) -> int:
        return len(self._positions)

    def note(self, position: int, size_bytes: int, base_offset: int, last_offset: int) -> None:
        """A batch was appended, at the end of the last one noted."""
        if len(self._positions) == 2 * REMEMBERED_MIN:
            for column in self._positions, self._base_offsets, self._last_offsets:
                del column[:REMEMBERED_MIN]
        self._positions.append(position)
        self._base_offsets.append(base_offset)
        self._last_offsets.append(last_offset)
        self.end_position = position + size_bytes

    def find(self, offset: int) -> Outline | None:
        """The batch that holds ``offset``, or the next batch; None if only a search of the file can tell."""
        if not self._base_offsets or not self._base_offsets[0] <= offset <= self._last_offsets[-1]:
            return None
        return self._outline(bisect_left(self._last_offsets, offset))

    def end_of_read(self, start_position: int, limit: int, offset_max: int) -> tuple[int, int] | None:
        """Position and base offset of the first batch from ``start_position`` on that ends beyond position
        ``limit``, or has ``offset_max`` or a later offset; None if that is no batch of the run, or unknown.
        """
        if not self._positions or start_position < self._positions[0]:
            return None
        by_offset = bisect_left(self._last_offsets, offset_max)
        by_size = len(self) if limit >= self.end_position else bisect_right(self._positions, limit) - 1
        found = max(min(by_offset, by_size), bisect_left(self._positions, start_position))
        return (self._positions[found], self._base_offsets[found]) if found < len(self) else None

    def _outline(self, index: int) -> Outline:
        is_last = index + 1 == len(self)
        return Outline(
            self._positions[index],
            self.end_position if is_last else self._positions[index + 1],
            self._base_offsets[index],
            self._last_offsets[index],
        )
