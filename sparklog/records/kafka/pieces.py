"""A check whether the pieces of a decompressed payload are Kafka records, with one piece in memory at a time.

A batch of a few kilobytes can decompress to a hundred megabytes, even to valid records. A leader appends the
compressed bytes and does not need the records, so it checks each piece after its decompression and drops it.
Records that end within a piece are measured together (``kafka.spans``). A record that continues in the next
piece is walked field by field, and its key, value and headers are skipped without being joined. The result is
that of checking the whole payload at once.

Failure: CorruptBatch, from the check or from the decompression that yields the pieces.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparklog.model.errors import CorruptBatch
from sparklog.records.kafka.spans import spans_of, whole_boundaries
from sparklog.records.kafka.walk import (
    HEADER_BYTES_MIN,
    HEADERS_PER_RECORD_MAX,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    varint,
)
from sparklog.records.row_columns import Int64s


class Measured(NamedTuple):
    """Fields of consecutive records, one number per record."""

    timestamp_deltas_ms: Int64s
    offset_deltas: Int64s
    key_lengths: Int64s
    """-1 for a record without a key."""


def measure(pieces: Iterator[bytes], count: int, last_offset_delta: int) -> Iterator[Measured]:
    """Measure the records in ``pieces``, some at a time.

    CorruptBatch unless exactly ``count`` records fill the pieces, with offset deltas that grow and do not
    exceed ``last_offset_delta``.
    """
    window = _Window(pieces)
    left, previous = count, -1
    try:
        while left:
            measured = _measure_some(window, left)
            check_growth(measured.offset_deltas, previous, last_offset_delta)
            previous = int(measured.offset_deltas[-1])
            left -= len(measured.offset_deltas)
            yield measured
    except IndexError:
        raise CorruptBatch(f"{left} of {count} records are missing") from None
    if window.has_more():
        raise CorruptBatch(f"bytes are left after {count} records")


def _measure_some(window: "_Window", count_max: int) -> Measured:
    """The records that end within the piece, or the one that continues in the next piece."""
    begins, next_position = whole_boundaries(window.octets, window.position, count_max)
    if not begins:
        return _walk_record(window)
    spans = spans_of(window.octets, begins)
    window.position = next_position
    return Measured(spans.timestamp_deltas_ms, spans.offset_deltas, spans.key_lengths)


def check_growth(offset_deltas: Int64s, previous: int, last_offset_delta: int) -> None:
    """CorruptBatch unless offset deltas grow from record to record, begin above ``previous`` (-1 at first),
    and do not exceed ``last_offset_delta``. Gaps are allowed, because compaction leaves them.
    """
    if not len(offset_deltas):
        return
    first, last = offset_deltas[0], offset_deltas[-1]
    if first <= previous or last > last_offset_delta or np.any(np.diff(offset_deltas) <= 0):
        raise CorruptBatch(
            f"offset deltas from {first} to {last} after {previous} do not grow within "
            f"0 to {last_offset_delta}"
        )


class _Window:
    """The current piece and a position in it. Reading beyond the last piece raises IndexError."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.octets = next(pieces, b"")
        self.position = 0
        self._pieces = pieces
        self._forgotten_bytes = 0

    @property
    def offset(self) -> int:
        """The position within the whole payload."""
        return self._forgotten_bytes + self.position

    def has_more(self) -> bool:
        return self.position < len(self.octets) or self._extend()

    def number(self, bytes_max: int = VARINT_BYTES_MAX) -> int:
        """The varint at the position."""
        while len(self.octets) - self.position < bytes_max and self._extend():
            """A piece may be shorter than a varint."""
        value, self.position = varint(self.octets, self.position, bytes_max)
        return value

    def skip(self, size_bytes: int) -> None:
        """Skip ``size_bytes``; a negative size means null and skips nothing."""
        self.position += max(size_bytes, 0)
        while self.position > len(self.octets):
            beyond_bytes = self.position - len(self.octets)
            self.position = len(self.octets)
            if not self._extend():
                raise IndexError
            self.position += beyond_bytes

    def _extend(self) -> bool:
        """Append the next piece to the rest of this one; False after the last piece."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._forgotten_bytes += self.position
        self.octets = self.octets[self.position :] + piece
        self.position = 0
        return True


def _walk_record(window: _Window) -> Measured:
    """Measure and skip one record; ``kafka.walk`` describes its layout."""
    length_bytes = window.number()
    start = window.offset
    if length_bytes < 0:
        raise CorruptBatch(f"the record at byte {start} has a negative length")
    window.skip(1)  # the attributes
    timestamp_delta_ms = window.number(VARLONG_BYTES_MAX)
    offset_delta = window.number()
    key_length = window.number()
    window.skip(key_length)
    window.skip(window.number())  # the value
    _walk_headers(window, start + length_bytes)
    if window.offset != start + length_bytes:
        raise CorruptBatch(
            f"the record at byte {start} has {window.offset - start} bytes, not {length_bytes} as it says"
        )
    return Measured(
        *(np.array([number], np.int64) for number in (timestamp_delta_ms, offset_delta, key_length))
    )


def _walk_headers(window: _Window, record_end: int) -> None:
    count = window.number()
    if count < 0 or count * HEADER_BYTES_MIN > max(record_end - window.offset, 0):
        raise CorruptBatch(f"{count} headers cannot be in {record_end - window.offset} bytes")
    if count > HEADERS_PER_RECORD_MAX:
        raise CorruptBatch(f"a record has {count} headers; at most {HEADERS_PER_RECORD_MAX} are read")
    for _ in range(count):
        key_bytes = window.number()
        if key_bytes < 0:
            raise CorruptBatch(f"the header at byte {window.offset} has no key")
        window.skip(key_bytes)
        window.skip(window.number())
