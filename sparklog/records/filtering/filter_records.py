"""Removal of records from a *records* batch. Kept records are copied; a new base timestamp changes their
heads.

A record holds its offset and timestamp relative to its batch's base offset and base timestamp. If neither
changes, filtering copies the bytes of the kept records. A delete horizon changes the base timestamp, and so
the timestamp delta of every record and, because the delta is a varlong, the record's length:

    length varint | attributes i8 | timestamp delta varlong | offset delta, key, value, headers

So numpy rewrites the first three fields, the *head*, for all records at once, a column of bytes at a time,
and Arrow joins heads and tails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.model.errors import CorruptBatch
from sparklog.records.codecs import compress
from sparklog.records.decoding import Batch, check_offset_deltas, per_row, record_boundaries
from sparklog.records.envelope import Bytes
from sparklog.records.filtering.run import Run, rebuilt_envelope
from sparklog.records.kafka.encode import append_varint
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.spans import (
    FEW_RECORDS,
    Octets,
    Spans,
    boundaries,
    gather,
    spans_of,
    varints,
)
from sparklog.records.kafka.walk import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, check_count, varint
from sparklog.records.row_columns import Int64s


@dataclass(frozen=True, slots=True)
class _Measured:
    """Positions and decoded fields of records, one element per record."""

    starts: Int64s
    ends: Int64s
    keys: Any
    offset_deltas: Int64s
    timestamp_deltas_ms: Int64s
    is_tombstone: Any


class RecordsRun(Run):
    """One batch of Kafka records, or several consecutive uncompressed ones."""

    __slots__ = ("_ends", "_payload", "_starts", "_timestamp_deltas_ms")

    def __init__(self, payload: bytes, batches: Sequence[Batch], rows: _Measured) -> None:
        headers = [header for _, header in batches]
        counts = np.array([header.record_count for header in headers], np.int64)
        check_offset_deltas(rows.offset_deltas, headers, counts)
        base_offsets = per_row([header.base_offset for header in headers], counts)
        super().__init__(batches, rows.keys, base_offsets + rows.offset_deltas, rows.is_tombstone, counts)
        self._payload = payload
        self._starts = rows.starts
        self._ends = rows.ends
        self._timestamp_deltas_ms = rows.timestamp_deltas_ms

    @classmethod
    def decode(cls, batch: Bytes, origin: Batch) -> "RecordsRun":
        payload = records_of(batch, origin[1])
        count = origin[1].record_count
        check_count(payload, count)
        pieces: list[_Measured] = []
        position, left = 0, count
        while left:
            try:
                begins, position = boundaries(payload, position, len(payload), left)
            except IndexError:
                raise CorruptBatch(f"{left} of {count} records are missing") from None
            left -= len(begins)
            pieces.append(_measured(payload, begins, spans_of(payload, begins), position))
        if position != len(payload):
            raise CorruptBatch(f"{len(payload) - position} bytes are left after {count} records")
        return cls(payload, [origin], _together(pieces))

    @classmethod
    def decode_jointly(cls, run: bytes, start: int, batches: Sequence[Batch]) -> "RecordsRun":
        """``run`` holds ``batches``, whose positions are those of the log's chunk; it begins at ``start``."""
        begins: list[int] = []
        lasts: list[int] = []
        for position, header in batches:
            begins += record_boundaries(run, position - start, header)
            lasts.append(len(begins) - 1)
        rows = _measured(run, begins, spans_of(run, begins), len(run))
        rows.ends[lasts] = [position - start + header.size_bytes for position, header in batches]
        return cls(run, batches, rows)

    def rebuild(self, nth: int, rows: Int64s, delete_horizon_ms: int | None = None) -> bytes:
        header = self.batches[nth][1]
        deltas_ms = self._timestamp_deltas_ms[rows]
        starts, ends = self._starts[rows], self._ends[rows]
        timestamps_ms = np.int64(header.base_timestamp_ms) + deltas_ms
        if delete_horizon_ms is None:
            records = _pieces(self._payload, starts, ends)
        else:
            records = _with_new_heads(self._payload, starts, ends, timestamps_ms - delete_horizon_ms)
        payload = compress(header.compression, records)
        return rebuilt_envelope(header, payload, timestamps_ms, delete_horizon_ms)


def _measured(payload: bytes, begins: list[int], spans: Spans, end: int) -> _Measured:
    starts = np.array(begins, np.int64)
    return _Measured(
        starts=starts,
        ends=np.append(starts[1:], end),
        keys=gather(payload, spans.key_starts, spans.key_lengths),
        offset_deltas=spans.offset_deltas,
        timestamp_deltas_ms=spans.timestamp_deltas_ms,
        is_tombstone=spans.value_lengths < 0,
    )


def _together(pieces: Sequence[_Measured]) -> _Measured:
    if len(pieces) == 1:
        return pieces[0]
    return _Measured(
        starts=np.concatenate([piece.starts for piece in pieces]),
        ends=np.concatenate([piece.ends for piece in pieces]),
        keys=pa.concat_arrays([piece.keys for piece in pieces]),
        offset_deltas=np.concatenate([piece.offset_deltas for piece in pieces]),
        timestamp_deltas_ms=np.concatenate([piece.timestamp_deltas_ms for piece in pieces]),
        is_tombstone=np.concatenate([piece.is_tombstone for piece in pieces]),
    )


def _joined(pieces: Any) -> memoryview:
    """The bytes of all elements of a binary array, joined."""
    _, offsets, data = pieces.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(pieces) + 1, pieces.offset * 4)
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]


def _pieces(payload: bytes, starts: Int64s, ends: Int64s) -> Bytes:
    """The records' bytes, joined and unchanged."""
    if len(starts) < FEW_RECORDS:
        bounds = zip(starts.tolist(), ends.tolist(), strict=True)
        return b"".join([payload[start:end] for start, end in bounds])
    return _joined(gather(payload, starts, ends - starts))


def _with_new_heads(payload: bytes, starts: Int64s, ends: Int64s, deltas_ms: Int64s) -> Bytes:
    """The records' bytes with these timestamp deltas, joined."""
    if len(starts) < FEW_RECORDS:
        return _few_with_new_heads(payload, starts.tolist(), ends.tolist(), deltas_ms.tolist())
    octets = np.frombuffer(payload, np.uint8)
    _, after_length = varints(octets, starts)
    _, tail_starts = varints(octets, after_length + 1, VARLONG_BYTES_MAX)
    tail_lengths = ends - tail_starts
    delta_bytes, delta_used = _encoded(deltas_ms, VARLONG_BYTES_MAX)
    length_bytes, length_used = _encoded(1 + delta_used.sum(axis=1) + tail_lengths, VARINT_BYTES_MAX)
    attributes = octets[after_length][:, None]
    heads = np.concatenate((length_bytes, attributes, delta_bytes), axis=1)
    used = np.concatenate((length_used, np.ones_like(attributes, np.bool_), delta_used), axis=1)
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(used.sum(axis=1), out=offsets[1:])
    head_array = pa.Array.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(heads[used].tobytes())]
    )
    tails = gather(payload, tail_starts, tail_lengths)
    return _joined(pc.binary_join_element_wise(head_array, tails, b""))


def _few_with_new_heads(
    payload: bytes, starts: list[int], ends: list[int], deltas_ms: list[int]
) -> bytearray:
    """The same one by one."""
    records = bytearray()
    for start, end, delta_ms in zip(starts, ends, deltas_ms, strict=True):
        _, after_length = varint(payload, start)
        _, tail_start = varint(payload, after_length + 1, VARLONG_BYTES_MAX)
        head = bytearray((payload[after_length],))
        append_varint(head, delta_ms)
        append_varint(records, len(head) + end - tail_start)
        records += head
        records += payload[tail_start:end]
    return records


def _encoded(numbers: Int64s, bytes_max: int) -> tuple[Octets, Any]:
    """Zigzag varints, one a row, in a table of ``bytes_max`` columns, and which of its bytes count."""
    numbers = numbers.astype(np.int64)
    raw = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    shifts = np.arange(bytes_max, dtype=np.uint64) * np.uint64(7)
    groups = raw[:, None] >> shifts
    used = groups > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    return ((groups & np.uint64(0x7F)) | (more.astype(np.uint64) << np.uint64(7))).astype(np.uint8), used
