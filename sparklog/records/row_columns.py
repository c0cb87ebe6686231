"""Rows of an untyped topic as Arrow columns, for readers and for writers.

Readers get ``ROW_SCHEMA`` for every kind of payload. Its types are those of Spark (``binary``,
``timestamp[us, UTC]``, no large types), because Spark requires an equal schema. A record without headers has
a null, never an empty list; a null key or value differs from an empty one. Batches hold milliseconds, but the
schema has microseconds, Spark's only unit.

Writers pass columns as Spark provides them: ``normalise`` finds the columns by name, ignores others, and
casts their types to those of batches, without a copy where Arrow can reinterpret the data.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.records.bridge import nulls_of, numbers, values_of
from sparklog.records.envelope import NO_TIMESTAMP

Int64s = npt.NDArray[np.int64]

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")

ROW_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", TIMESTAMP_TYPE),
        pa.field("headers", HEADERS_TYPE),
        pa.field("offset", pa.int64()),
        pa.field("timestamp_type", pa.int32()),
    ]
)

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

_TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1_000
_UNITS_PER_MS: Final = {"us": 1_000, "ns": 1_000_000}


def row_batch(
    *,
    key: pa.Array,
    value: pa.Array,
    timestamps_ms: Int64s,
    headers: pa.Array,
    offsets: Int64s,
    timestamp_types: npt.NDArray[np.int32],
) -> pa.RecordBatch:
    """Columns as a record batch in ROW_SCHEMA. Clamps timestamps to the range of 64-bit microseconds."""
    timestamps_us = np.clip(timestamps_ms, -_TIMESTAMP_MS_MAX, _TIMESTAMP_MS_MAX) * 1_000
    columns = [
        key,
        value,
        numbers(timestamps_us).view(TIMESTAMP_TYPE),
        headers,
        numbers(offsets),
        numbers(timestamp_types),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ROW_SCHEMA)


def least_of(timestamps_ms: Int64s) -> int | None:
    """The least timestamp; None if each is -1, which means that a record has none."""
    given = timestamps_ms[timestamps_ms != NO_TIMESTAMP]
    return int(given.min()) if len(given) else None


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Rows to write. ``key`` or ``headers`` None: no row has any; ``timestamps_ms`` None: all ``now_ms``."""

    row_count: int
    key: pa.Array | None
    value: pa.Array
    timestamps_ms: Int64s | None
    headers: pa.Array | None


def normalise(columns: pa.RecordBatch | pa.Table, now_ms: int) -> RowColumns:
    """A writer's columns as the columns of a batch; ValueError for columns that a batch cannot hold."""
    batch = _one_batch(columns)
    if batch.num_rows == 0:
        raise ValueError("there are no rows to make a batch of; Kafka has no empty batches: send nothing")
    value = _binary(batch, "value")
    if value is None:
        raise ValueError(f"column 'value' is missing; the columns are {batch.schema.names}")
    key = _binary(batch, "key")
    return RowColumns(
        row_count=batch.num_rows,
        key=None if key is None or key.null_count == len(key) else key,
        value=value,
        timestamps_ms=_timestamps_ms(batch, now_ms),
        headers=_headers(batch),
    )


def _one_batch(columns: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    if isinstance(columns, pa.RecordBatch):
        return columns
    batches = columns.to_batches()
    if len(batches) > 1:
        batches = columns.combine_chunks().to_batches()
    if len(batches) > 1:
        raise ValueError(f"{columns.nbytes} bytes are too many for one batch; write smaller ones")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=columns.schema)


def _column(batch: pa.RecordBatch, name: str) -> Any | None:
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def _binary(batch: pa.RecordBatch, name: str) -> Any | None:
    column = _column(batch, name)
    if column is None or column.type == pa.binary():
        return column
    try:
        return column.cast(pa.binary())
    except pa.ArrowException as error:
        raise ValueError(
            f"column {name!r} of type {column.type} cannot be written as binary: {error}"
        ) from None


def _timestamps_ms(batch: pa.RecordBatch, now_ms: int) -> Int64s | None:
    column = _column(batch, "timestamp")
    if column is None or column.null_count == len(column):
        return None
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
        raise ValueError(f"column 'timestamp' has type {kind}; it must be a timestamp, or int64 milliseconds")
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    integers = column.view(pa.int64())
    missing = nulls_of(integers) if integers.null_count else None
    values: Int64s = values_of(integers)
    if unit == "s":
        values = values * 1_000
    elif unit in _UNITS_PER_MS:
        values = values // _UNITS_PER_MS[unit]
    return values if missing is None else np.where(missing, now_ms, values)


def _headers(batch: pa.RecordBatch) -> Any | None:
    column = _column(batch, "headers")
    if column is None or column.null_count == len(column):
        return None
    try:
        headers = column if column.type == HEADERS_TYPE else column.cast(HEADERS_TYPE)
    except pa.ArrowException as error:
        raise ValueError(f"column 'headers' of type {column.type} is not {HEADERS_TYPE}: {error}") from None
    items = headers.flatten()
    if items.null_count or items.field("key").null_count:
        raise ValueError("column 'headers' has a null header or a header with a null key; Kafka has neither")
    return headers
