"""Writing Kafka v2 records, by aiokafka's compiled builder (over 3 million records/s a core).

Of what the builder makes only the records are kept; the envelope is written anew. The builder knows no leader
epoch and no log-append time, and takes a first timestamp of -1 for "none yet", so it is handed differences to
the first timestamp instead of timestamps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from sparklog.records.codecs import compress
from sparklog.records.columns import Int64s, RowColumns
from sparklog.records.envelope import (
    ENVELOPE_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    Bytes,
    Compression,
    build_envelope,
)

Headers = list[tuple[str, bytes | None]]

_BATCH_BYTES_MAX: Final = 2**31 - 1
_NO_HEADERS: Final[Headers] = []


@dataclass(frozen=True, slots=True)
class Record:
    """One record to be written; without a timestamp it gets the time at which its batch is built."""

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
    """A batch of single records with base offset 0, for producers that have no columns."""
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
    """A batch of columns, base offset 0."""
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
    """The envelope around encoded records, compressed if asked for and worth it."""
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
    """Records without an envelope; their timestamps are relative to the first."""
    builder = DefaultRecordBatchBuilder(MAGIC, 0, 0, -1, -1, -1, _BATCH_BYTES_MAX)
    append = builder.append
    deltas_ms = (timestamps_ms - timestamps_ms[:1]).tolist()
    for row in zip(offset_deltas.tolist(), deltas_ms, keys, values, headers, strict=True):
        if append(*row) is None:
            raise ValueError(
                f"records beyond {_BATCH_BYTES_MAX} bytes do not fit one batch; write smaller ones"
            )
    return memoryview(builder.build())[ENVELOPE_BYTES:]


def header_lists(headers: Any | None, row_count: int) -> list[Headers]:
    """Every row's headers as the builder wants them; an array of HEADERS_TYPE, or None for none at all."""
    if headers is None:
        return [_NO_HEADERS] * row_count
    items = headers.flatten()
    pairs = list(zip(items.field("key").to_pylist(), items.field("value").to_pylist(), strict=True))
    lists: list[Headers] = []
    position = 0
    for count in pc.list_value_length(headers).fill_null(0).to_pylist():
        lists.append(pairs[position : position + count])
        position += count
    return lists
