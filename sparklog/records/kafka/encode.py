"""Writing Kafka v2 records: a few in plain Python, many by aiokafka's compiled builder (3 million/s a core).

Only the builder's records are kept; the envelope is our own, because the builder supports neither leader
epoch nor log-append time. The builder treats a first timestamp of -1 as "none yet", so it gets timestamp
deltas to the first record instead of timestamps.

The builder is imported on first use, because it imports all of aiokafka, asyncio and ssl, which costs a tenth
of a second of CPU. Brokers, and tasks that write few records, never import it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sparklog.records.bridge import value_lengths
from sparklog.records.codecs import compress
from sparklog.records.envelope import (
    ENVELOPE_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    Bytes,
    Compression,
    build_envelope,
)
from sparklog.records.row_columns import Int64s, RowColumns

Headers = list[tuple[str, bytes | None]]

Row = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset delta, timestamp delta, key, value, headers."""

FEW_RECORDS: Final = 16
"""Up to this many records plain Python is used, because the builder's import would cost more."""

_BATCH_BYTES_MAX: Final = 2**31 - 1
_NO_HEADERS: Final[Headers] = []


@dataclass(frozen=True, slots=True)
class Record:
    """One record to write; ``timestamp_ms`` None means the time at which its batch is built."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


def build_records_batch(
    records: Sequence[Record],
    *,
    now_ms: int,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """A batch of single records with base offset 0, for producers without columns."""
    if not records:
        raise ValueError("there are no records to make a batch of; Kafka has no empty batches: send nothing")
    timestamps_ms = np.array(
        [now_ms if record.timestamp_ms is None else record.timestamp_ms for record in records], np.int64
    )
    payload = encode(
        np.arange(len(records)),
        timestamps_ms,
        (record.key for record in records),
        (record.value for record in records),
        (list(record.headers) for record in records),
    )
    return records_batch(
        payload,
        timestamps_ms,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )


def batch_of_rows(
    rows: RowColumns,
    *,
    now_ms: int,
    compression: Compression,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
) -> bytes:
    """A batch of rows with base offset 0."""
    timestamps_ms = np.full(rows.row_count, now_ms) if rows.timestamps_ms is None else rows.timestamps_ms
    payload = encode(
        np.arange(rows.row_count),
        timestamps_ms,
        [None] * rows.row_count if rows.key is None else rows.key.to_pylist(),
        rows.value.to_pylist(),
        header_lists(rows.headers, rows.row_count),
    )
    return records_batch(
        payload,
        timestamps_ms,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )


def records_batch(
    payload: Bytes,
    timestamps_ms: Int64s,
    *,
    compression: Compression,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
) -> bytes:
    """The batch of encoded records; they are compressed only if that makes them smaller."""
    attributes = TRANSACTIONAL_BIT if is_transactional else 0
    if compression is not Compression.NONE:
        compressed = compress(compression, payload)
        if len(compressed) < len(payload):
            payload = compressed
            attributes |= compression
    return build_envelope(
        payload,
        attributes=attributes,
        record_count=len(timestamps_ms),
        last_offset_delta=len(timestamps_ms) - 1,
        base_timestamp_ms=int(timestamps_ms[0]),
        max_timestamp_ms=int(timestamps_ms.max()),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def encode(
    offset_deltas: Int64s,
    timestamps_ms: Int64s,
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    headers: Iterable[Headers],
) -> memoryview:
    """The records' bytes without an envelope; their timestamps are relative to the first."""
    deltas_ms = (timestamps_ms - timestamps_ms[:1]).tolist()
    rows = zip(offset_deltas.tolist(), deltas_ms, keys, values, headers, strict=True)
    return _encode_few(rows) if len(offset_deltas) <= FEW_RECORDS else _encode_many(rows)


def _encode_many(rows: Iterable[Row]) -> memoryview:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(MAGIC, 0, 0, -1, -1, -1, _BATCH_BYTES_MAX)
    append = builder.append
    for row in rows:
        if append(*row) is None:
            raise _too_large()
    return memoryview(builder.build())[ENVELOPE_BYTES:]


def _encode_few(rows: Iterable[Row]) -> memoryview:
    """``_encode_many`` record by record, in plain Python; ``kafka.walk`` describes the layout."""
    payload = bytearray()
    for row in rows:
        append_record(payload, *row)
        if len(payload) > _BATCH_BYTES_MAX - ENVELOPE_BYTES:
            raise _too_large()
    return memoryview(payload)


def append_record(
    payload: bytearray,
    offset_delta: int,
    delta_ms: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Headers = _NO_HEADERS,
) -> None:
    """Append one record to ``payload``."""
    record = bytearray(1)  # attributes
    append_varint(record, delta_ms)
    append_varint(record, offset_delta)
    _append_bytes(record, key)
    _append_bytes(record, value)
    append_varint(record, len(headers))
    for name, text in headers:
        _append_bytes(record, name.encode())
        _append_bytes(record, text)
    append_varint(payload, len(record))
    payload += record


def append_varint(buffer: bytearray, number: int) -> None:
    """Append a zigzag number, low bits first."""
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    while raw > 0x7F:
        buffer.append(raw & 0x7F | 0x80)
        raw >>= 7
    buffer.append(raw)


def _append_bytes(buffer: bytearray, value: Bytes | None) -> None:
    if value is None:
        buffer.append(1)  # a length of -1
    else:
        append_varint(buffer, len(value))
        buffer += value


def _too_large() -> ValueError:
    return ValueError(f"more than {_BATCH_BYTES_MAX} bytes of records for one batch; write smaller batches")


def header_lists(headers: Any | None, row_count: int) -> list[Headers]:
    """The headers of every row, from an array of HEADERS_TYPE, or None if no row has headers."""
    if headers is None:
        return [_NO_HEADERS] * row_count
    items = headers.flatten()
    pairs = list(zip(items.field("key").to_pylist(), items.field("value").to_pylist(), strict=True))
    lists: list[Headers] = []
    position = 0
    for count in value_lengths(headers).tolist():
        lists.append(pairs[position : position + count])
        position += count
    return lists
