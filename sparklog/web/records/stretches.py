"""How far a look at a topic has come in each partition, and what to read next.

PURE. A look goes *forward* from a start to the end of each partition, or *backward* from its end to its
start. It is done in steps; a *cursor*, which the next step's URL names, says where each partition stands.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from sparklog.web.view_question import INT64_MAX, BadQuestion

PARTITIONS_MAX: Final = 10_000
Cursor = Mapping[int, int]
"""By partition: forward the next offset to read, backward the end of what is unread (exclusive)."""


class Placed(Protocol):
    """A record's place; ``timestamp_ms`` merges partitions."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...


R = TypeVar("R", bound=Placed)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets ``[begin, end)`` of a partition."""

    begin: int
    end: int


def cursor_text(cursor: Cursor) -> str:
    return ",".join(f"{partition}:{cursor[partition]}" for partition in sorted(cursor))


def cursor_of(text: str) -> dict[int, int]:
    """The cursor that ``cursor_text`` wrote; BadQuestion for any other text."""
    cursor: dict[int, int] = {}
    for pair in text.split(",", PARTITIONS_MAX):
        partition, _, offset = pair.partition(":")
        digits = partition + offset
        if not (partition and offset and digits.isascii() and digits.isdigit() and len(digits) <= 29):
            raise BadQuestion(f"at={text[:100]!r} is no place that an earlier answer named")
        if int(offset) > INT64_MAX or int(partition) >= 2**31:
            raise BadQuestion(f"at={text[:100]!r} is no place in a log")
        cursor[int(partition)] = int(offset)
    return cursor


def next_stretches(
    cursor: Cursor, bounds: Mapping[int, Stretch], *, is_backward: bool, span: int
) -> dict[int, Stretch]:
    """The next ``span`` offsets of each partition that has any left between its bounds."""
    found = {}
    for partition, place in cursor.items():
        bound = bounds.get(partition)
        if bound is None:
            continue
        place = max(bound.begin, min(place, bound.end))
        begin = max(bound.begin, place - span) if is_backward else place
        end = place if is_backward else min(bound.end, place + span)
        if begin < end:
            found[partition] = Stretch(begin, end)
    return found


def newest_first(records: Iterable[Sequence[R]]) -> Iterator[R]:
    """Records of several partitions, each in the order of its offsets, merged by time, the newest first."""
    return heapq.merge(*(reversed(one) for one in records), key=lambda record: -record.timestamp_ms)


def oldest_first(records: Iterable[Sequence[R]]) -> Iterator[R]:
    return heapq.merge(*records, key=lambda record: record.timestamp_ms)


def cursor_after(
    cursor: Cursor,
    read: Mapping[int, Stretch],
    taken: Sequence[R],
    found: Mapping[int, Sequence[R]],
    *,
    is_backward: bool,
) -> dict[int, int]:
    """Where each partition stands once ``taken`` are shown, of the records ``found`` in what was ``read``.

    A partition of which a found record is left stands right at its last one that was taken.
    """
    after = dict(cursor)
    last = {record.partition: record.offset for record in taken}
    counts: dict[int, int] = {}
    for record in taken:
        counts[record.partition] = counts.get(record.partition, 0) + 1
    for partition, stretch in read.items():
        if counts.get(partition, 0) == len(found.get(partition, ())):
            after[partition] = stretch.begin if is_backward else stretch.end
        elif partition in last:
            after[partition] = last[partition] if is_backward else last[partition] + 1
    return after


def offsets_left(cursor: Cursor, bounds: Mapping[int, Stretch], *, is_backward: bool) -> int:
    """How many offsets the look has not come to."""
    left = 0
    for partition, place in cursor.items():
        bound = bounds.get(partition, Stretch(0, 0))
        left += max(0, place - bound.begin) if is_backward else max(0, bound.end - place)
    return left
