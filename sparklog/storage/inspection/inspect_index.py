"""Entries of index files, unchecked and read in chunks; the caller judges them.

    .index       8 bytes   relative last offset u32, position u32
    .timeindex  12 bytes   timestamp i64, relative offset u32
    .txnindex   34 bytes   version i16, producer id i64, first offset i64, last offset i64,
                           last stable offset i64: one entry per aborted transaction (Kafka's format)

Kafka preallocates offset and time indexes, so zeros after the last entry mean nothing.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.segments.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from sparklog.storage.segments.transaction_index import ABORTED_ENTRY as ABORTED

OFFSET_ENTRY: Final = struct.Struct(">II")
TIME_ENTRY: Final = struct.Struct(">qI")
ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
assert OFFSET_ENTRY.size == OFFSET_ENTRY_BYTES
assert TIME_ENTRY.size == TIME_ENTRY_BYTES
assert ABORTED_ENTRY.size == ABORTED.itemsize

_CHUNK_ENTRIES: Final = 8_192


class OffsetEntry(NamedTuple):
    """A batch's last offset and position."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """The greatest timestamp so far, and the last offset of its batch."""

    timestamp_ms: int
    offset: int


class AbortedTransaction(NamedTuple):
    """An aborted transaction, whose records read-committed readers skip."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def offset_entries(
    file: InspectedFile, base_offset: int, *, skip_zeros: bool = True
) -> Iterator[OffsetEntry]:
    """The entries; ``skip_zeros`` leaves out the zeros after the last entry."""
    for number, (relative, position) in enumerate(_entries(file, OFFSET_ENTRY)):
        if skip_zeros and relative == 0 and number and _is_zero_from(file, number * OFFSET_ENTRY.size):
            return
        yield OffsetEntry(base_offset + relative, position)


def time_entries(file: InspectedFile, base_offset: int, *, skip_zeros: bool = True) -> Iterator[TimeEntry]:
    """The entries; ``skip_zeros`` leaves out the zeros after the last entry."""
    for number, (timestamp_ms, relative) in enumerate(_entries(file, TIME_ENTRY)):
        if skip_zeros and relative == 0 and number and _is_zero_from(file, number * TIME_ENTRY.size):
            return
        yield TimeEntry(timestamp_ms, base_offset + relative)


def aborted_transactions(file: InspectedFile) -> Iterator[AbortedTransaction]:
    return (AbortedTransaction(*entry) for entry in _entries(file, ABORTED_ENTRY))


def position_before(file: InspectedFile, base_offset: int, offset: int) -> int:
    """The position at which the offset index starts a search for ``offset``; 0 without an entry before it."""
    relative = offset - base_offset
    count = file.size() // OFFSET_ENTRY.size

    def order(number: int) -> tuple[bool, int]:
        found = OFFSET_ENTRY.unpack(file.read_fully(OFFSET_ENTRY.size, number * OFFSET_ENTRY.size))
        return (number > 0 and found == (0, 0), found[0])

    nth = bisect_right(range(count), (False, relative), key=order)
    if not nth:
        return 0
    position: int = OFFSET_ENTRY.unpack(file.read_fully(OFFSET_ENTRY.size, (nth - 1) * OFFSET_ENTRY.size))[1]
    return position


def _entries(file: InspectedFile, form: struct.Struct) -> Iterator[tuple[Any, ...]]:
    """Every whole entry. The caller detects further bytes by the file's size."""
    left, position = file.size() // form.size, 0
    while left:
        count = min(left, _CHUNK_ENTRIES)
        yield from form.iter_unpack(file.read_fully(count * form.size, position))
        left -= count
        position += count * form.size


def _is_zero_from(file: InspectedFile, position: int) -> bool:
    end = file.size()
    while position < end:
        piece = file.read_fully(min(_CHUNK_ENTRIES, end - position), position)
        if any(piece):
            return False
        position += len(piece)
    return True
