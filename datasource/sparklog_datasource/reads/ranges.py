"""Offset ranges, and their division into Spark partitions.

PURE. By default each range is one Spark partition. ``maxRecordsPerPartition`` splits every range into pieces
of at most that many offsets. ``minPartitions`` then splits the large ranges, in proportion to their sizes,
into about that many pieces in all. A range whose rounded share is one stays whole, and the others divide the
rest of its share. Empty ranges are dropped.

A micro-batch without these two options has few tasks if it is small (``tasks_of_ranges``).
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sparklog.model.ids import TopicPartition

SMALL_OFFSETS_MAX: Final = 1_000
"""A micro-batch of so many offsets, in all its partitions together, is small. Measured with 100 and 1,000
rows of 100 bytes in four partitions, on two cores: one task took 0.26 to 0.57 of the time that four took.
All offsets count, those of markers too. Bytes do not count, because they are unknown before the log is read.
"""

RANGES_PER_TASK_MAX: Final = 50
"""Most ranges of a task of a small micro-batch. Each range takes a round trip at least, one after the other,
so hundreds of partitions with a record each take longer in one task than in several.
"""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``[start_offset, end_offset)`` of a partition."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset


def split_ranges(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """The ranges of the tasks; together they hold exactly the offsets of the given ranges."""
    split = [offset_range for offset_range in ranges if offset_range.size > 0]
    if records_max is not None:
        split = [
            piece for whole in split for piece in split_evenly(whole, math.ceil(whole.size / records_max))
        ]
    if partitions_min is None or len(split) >= partitions_min:
        return split
    return _split_in_proportion(split, partitions_min)


def tasks_of_ranges(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """The ranges of each task of a micro-batch, in their order.

    A small micro-batch has few tasks, of about equally many ranges; a larger one has a task for each range.
    """
    is_small = sum(offset_range.size for offset_range in ranges) <= SMALL_OFFSETS_MAX
    tasks_count = math.ceil(len(ranges) / RANGES_PER_TASK_MAX) if is_small else len(ranges)
    edges = [len(ranges) * i // tasks_count for i in range(tasks_count + 1)] if ranges else []
    return [list(ranges[start:end]) for start, end in itertools.pairwise(edges)]


def _split_in_proportion(ranges: Sequence[OffsetRange], partitions_min: int) -> list[OffsetRange]:
    total = sum(offset_range.size for offset_range in ranges)
    is_small = [_share(offset_range.size, total, partitions_min) == 1 for offset_range in ranges]
    large_total = sum(large.size for large, small in zip(ranges, is_small, strict=True) if not small)
    for_large = max(partitions_min - sum(is_small), 1)
    pieces: list[OffsetRange] = []
    for offset_range, small in zip(ranges, is_small, strict=True):
        count = 1 if small else _share(offset_range.size, large_total, for_large)
        pieces.extend(split_evenly(offset_range, count))
    return pieces


def _share(size: int, total: int, pieces_count: int) -> int:
    """A share of ``pieces_count`` in proportion, rounded half up, at least one."""
    return max(math.floor(size / total * pieces_count + 0.5), 1)


def split_evenly(offset_range: OffsetRange, pieces_count: int) -> Iterator[OffsetRange]:
    """Nearly equal pieces; the last has the remainder."""
    start = offset_range.start_offset
    for i in range(pieces_count):
        end = start + (offset_range.end_offset - start) // (pieces_count - i)
        if end > start:
            yield replace(offset_range, start_offset=start, end_offset=end)
        start = end
