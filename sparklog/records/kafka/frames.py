"""Many records of Kafka's format from columns, without an object for each.

A record is a few numbers of variable length, the key, the length of the value, the value, and the number of
headers, here 0 (``kafka.walk`` describes it). The numbers of all records are written together, the first
bytes of all, then the second, into columns of their own. Arrow joins these with the columns of keys and
values, and the buffer of what it joined is the payload.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.records.bridge import binaries, nulls_of, value_lengths
from sparklog.records.row_columns import Int64s

_BITS: Final = 7
_MORE: Final = 0x80
_BYTES_MAX: Final = 10
_NULL_LENGTH: Final = -1

Uint64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Frames:
    """Records one after the other. ``ends`` has where each ends in ``payload``."""

    payload: memoryview
    ends: Int64s


def frames_of(offset_deltas: Int64s, timestamp_deltas_ms: Int64s, keys: Any | None, values: Any) -> Frames:
    """Records without headers, at least one, of binary columns; ``keys`` None: no record has one.

    ArrowInvalid if they have more than 2 GiB together.
    """
    count = len(values)
    value_bytes = _lengths(values)
    key_bytes = np.full(count, _NULL_LENGTH) if keys is None else _lengths(keys)
    attributes = header_counts = np.zeros(count, np.uint64)
    first = [attributes, _zigzag(timestamp_deltas_ms), _zigzag(offset_deltas), _zigzag(key_bytes)]
    second = [_zigzag(value_bytes)]
    sizes = np.maximum(key_bytes, 0) + np.maximum(value_bytes, 0)
    for number in (*first, *second, header_counts):
        sizes += _sizes(number)
    pieces = [_varints([_zigzag(sizes), *first]), _varints(second), _filled(values)]
    if keys is not None:
        pieces.insert(1, _filled(keys))
    records = pc.binary_join_element_wise(*pieces, *binaries([b"\x00", b""]))
    _, offsets, payload = records.buffers()
    ends = np.frombuffer(offsets, np.int32, count, 4).astype(np.int64)
    return Frames(memoryview(payload)[: int(ends[-1])], ends)


def _lengths(column: Any) -> Int64s:
    lengths = value_lengths(column)
    return np.where(nulls_of(column), _NULL_LENGTH, lengths) if column.null_count else lengths


def _filled(column: Any) -> Any:
    return pc.fill_null(column, binaries([b""])[0]) if column.null_count else column


def _zigzag(numbers: Int64s) -> Uint64s:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _sizes(numbers: Uint64s) -> Int64s:
    """How many bytes each number takes."""
    sizes = np.ones(len(numbers), np.int64)
    for nth in range(1, _BYTES_MAX):
        are_longer = numbers >= np.uint64(1 << _BITS * nth)
        if not are_longer.any():
            break
        sizes += are_longer
    return sizes


def _varints(columns: Sequence[Uint64s]) -> pa.Array:
    """A binary column: the numbers of each row, low bits first."""
    sizes = [_sizes(numbers) for numbers in columns]
    row_ends = np.cumsum(np.sum(sizes, axis=0))
    offsets = np.zeros(len(row_ends) + 1, np.int32)
    offsets[1:] = row_ends
    written = np.zeros(int(row_ends[-1]) if len(row_ends) else 0, np.uint8)
    positions = offsets[:-1].astype(np.int64)
    for numbers, own in zip(columns, sizes, strict=True):
        for nth in range(int(own.max(initial=0))):
            which = own > nth
            bits = (numbers[which] >> np.uint64(_BITS * nth)) & np.uint64(_MORE - 1)
            written[positions[which] + nth] = bits | np.where(own[which] > nth + 1, _MORE, 0).astype(
                np.uint64
            )
        positions += own
    return pa.Array.from_buffers(
        pa.binary(), len(row_ends), [None, pa.py_buffer(offsets), pa.py_buffer(written)]
    )
