"""Sparse indexes beside a segment: where a search for an offset or a timestamp begins.

Both are Kafka's formats, big-endian, without header, sorted:

    .index       8 bytes   relative last offset u32, position u32
    .timeindex  12 bytes   timestamp i64 (ms), relative offset u32

Offsets are relative to the segment's base offset. An offset entry holds a batch's last offset and the batch's
position. A time entry holds the greatest timestamp so far and the last offset of its batch. An entry is added
once the log has grown by ``index.interval.bytes`` since the last entry. Sealing a segment adds a time entry,
so that the last entry holds the segment's greatest timestamp.

The files are disposable. In memory the entries are arrays that ``bisect`` searches. The files are written
when a segment is sealed or its log is closed, and are rebuilt from the batches when missing or wrong.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

import numpy as np

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">u4")])
RELATIVE_MAX: Final = 2**31 - 1
"""Kafka reads relative offsets and positions as signed."""

_LOW: Final = 0xFFFF_FFFF
_SWAP: Final = sys.byteorder == "little"

assert TIME_ENTRY.itemsize == TIME_ENTRY_BYTES
assert array("Q").itemsize == OFFSET_ENTRY_BYTES
assert array("q").itemsize == 8
assert array("I").itemsize == 4


def _grows(values: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> bool:
    return bool(np.all(values[1:] > values[:-1]))


class OffsetIndex:
    """Entries as 64-bit numbers, the relative offset in the upper half: sorted by offset and by position."""

    __slots__ = ("base_offset", "entries")

    def __init__(self, base_offset: int, entries: "array[int] | None" = None) -> None:
        self.base_offset = base_offset
        self.entries = array("Q") if entries is None else entries

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, last_offset: int, position: int) -> None:
        self.entries.append((last_offset - self.base_offset) << 32 | position)

    def find(self, offset: int) -> tuple[int, int] | None:
        """``(last offset, position)`` of the last indexed batch that ends at or before ``offset``."""
        relative = min(max(offset - self.base_offset, -1), _LOW)
        found = bisect_right(self.entries, relative << 32 | _LOW) if relative >= 0 else 0
        if not found:
            return None
        entry = self.entries[found - 1]
        return self.base_offset + (entry >> 32), entry & _LOW

    def position_up_to(self, position: int) -> int:
        """Start of the last indexed batch that starts at or before ``position``; 0 without such a batch."""
        found = bisect_right(self.entries, position, key=_position_of)
        return self.entries[found - 1] & _LOW if found else 0

    def last_position(self) -> int:
        """Start of the last indexed batch; 0 if the index is empty."""
        return self.entries[-1] & _LOW if self.entries else 0

    def truncate(self, position: int) -> None:
        """Remove entries of batches that start at ``position`` or after."""
        del self.entries[bisect_left(self.entries, position, key=_position_of) :]

    def to_bytes(self) -> bytes:
        return _big_endian(self.entries)

    @classmethod
    def parse(cls, base_offset: int, data: bytes, log_bytes: int) -> "OffsetIndex | None":
        """The index in ``data``; None if it does not fit a segment of ``log_bytes`` bytes."""
        if len(data) % OFFSET_ENTRY_BYTES:
            return None
        entries: array[int] = array("Q")
        entries.frombytes(data)
        if _SWAP:
            entries.byteswap()
        if len(entries):
            numbers = np.frombuffer(data, dtype=[("offset", ">u4"), ("position", ">u4")])
            if not (_grows(numbers["offset"]) and _grows(numbers["position"])):
                return None
            if numbers["position"][-1] >= log_bytes:
                return None
        return cls(base_offset, entries)


class TimeIndex:
    """Greatest timestamps so far, each with the last offset of its batch."""

    __slots__ = ("base_offset", "offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("I")

    def __len__(self) -> int:
        return len(self.timestamps)

    def add(self, timestamp_ms: int, offset: int) -> None:
        """Add a timestamp; ignored unless it is greater than the last entry's."""
        last = self.timestamps[-1] if self.timestamps else -1
        if timestamp_ms > last:
            self.timestamps.append(timestamp_ms)
            self.offsets.append(offset - self.base_offset)

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset up to which all records are earlier than ``timestamp_ms``; at least base offset - 1."""
        found = bisect_left(self.timestamps, timestamp_ms)
        return self.base_offset + self.offsets[found - 1] if found else self.base_offset - 1

    def last(self) -> tuple[int, int] | None:
        """``(timestamp, offset)`` of the last entry, whose timestamp is the greatest; None if empty."""
        if not self.timestamps:
            return None
        return self.timestamps[-1], self.base_offset + self.offsets[-1]

    def truncate(self, end_offset: int) -> None:
        """Remove entries of batches that end at ``end_offset`` or after."""
        kept = bisect_left(self.offsets, end_offset - self.base_offset)
        del self.timestamps[kept:]
        del self.offsets[kept:]

    def to_bytes(self) -> bytes:
        entries = np.empty(len(self), dtype=TIME_ENTRY)
        entries["timestamp"] = self.timestamps
        entries["offset"] = self.offsets
        return entries.tobytes()

    @classmethod
    def parse(cls, base_offset: int, data: bytes, end_offset: int | None) -> "TimeIndex | None":
        """The index in ``data``; None if it does not fit a segment that ends at ``end_offset``."""
        if len(data) % TIME_ENTRY_BYTES:
            return None
        numbers = np.frombuffer(data, dtype=TIME_ENTRY)
        index = cls(base_offset)
        if len(numbers):
            if not (_grows(numbers["timestamp"]) and _grows(numbers["offset"])):
                return None
            if numbers["timestamp"][0] < 0:
                return None
            if end_offset is not None and base_offset + int(numbers["offset"][-1]) >= end_offset:
                return None
        index.timestamps.frombytes(numbers["timestamp"].astype(np.int64).tobytes())
        index.offsets.frombytes(numbers["offset"].astype(np.uint32).tobytes())
        return index


def last_time_entry(base_offset: int, tail: bytes) -> tuple[int, int] | None:
    """``(timestamp, offset)`` in ``tail``, the last 12 bytes of a time index; None if it is shorter."""
    if len(tail) != TIME_ENTRY_BYTES:
        return None
    timestamp = int.from_bytes(tail[:8], "big", signed=True)
    return timestamp, base_offset + int.from_bytes(tail[8:], "big")


def _position_of(entry: int) -> int:
    return entry & _LOW


def _big_endian(entries: "array[int]") -> bytes:
    if not _SWAP:
        return entries.tobytes()
    swapped = entries[:]
    swapped.byteswap()
    return swapped.tobytes()
