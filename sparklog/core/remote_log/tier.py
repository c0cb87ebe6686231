"""What a partition has in its remote store, as its manifest says: segments without a gap, in order.

A tier only becomes another one by a copy that begins where it ends, or by a later start. What is below its
start is in no log any more, and its objects may be deleted once the manifest says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from ``base_offset`` up to, not including, ``end_offset``."""

    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A segment that no longer grows, on a disk or in a store. ``max_timestamp_ms``: of its records."""

    base_offset: int
    end_offset: int
    max_timestamp_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogReach:
    """Where a leader's log begins for readers and on its disk, and up to where it is stable.

    ``epochs_from``: the offset from which on it knows its leader epochs; None if it knows none.
    """

    start_offset: int
    local_start_offset: int
    last_stable_offset: int
    epochs_from: int | None


class Reach(Protocol):
    """Where a history in a store begins and ends; ``end_offset`` is None if it is empty."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Tier:
    """``start_offset`` may be within the first segment: records below it were deleted."""

    start_offset: int
    segments: tuple[SealedSegment, ...] = ()

    @property
    def end_offset(self) -> int | None:
        """The first offset that is not in the store; None if nothing is."""
        return self.segments[-1].end_offset if self.segments else None

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    def with_copied(self, segment: SealedSegment) -> "Tier":
        """The tier with one more segment. ValueError unless it begins where the tier ends, or where all that
        the tier has is deleted.
        """
        end = self.end_offset
        if end is not None and segment.base_offset != end and end > self.start_offset:
            raise ValueError(f"a copy from {segment.base_offset} on does not fit a tier that ends at {end}")
        if segment.end_offset <= segment.base_offset or (end is not None and segment.base_offset < end):
            raise ValueError(f"a copy of {segment.base_offset} to {segment.end_offset} behind {end}")
        return replace(self, segments=(*self.segments, segment))

    def from_offset(self, start_offset: int) -> "tuple[Tier, Sequence[SealedSegment]]":
        """The tier with a later start, and the segments that it thereby loses, wholly below that start."""
        start = max(self.start_offset, start_offset)
        lost = [segment for segment in self.segments if segment.end_offset <= start]
        return Tier(start, self.segments[len(lost) :]), lost
