"""The rows of an untyped topic's batches as messages of an ``.arrow`` object.

To an arrow batch's body (``rows_message``) are added the offsets, the timestamps where all rows have the same
one, and zeros for columns that are absent. Rows of *records* batches are written anew, compressed with zstd,
as their own bytes are in ``.rest``.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.records.arrow.arrow_message import serialise
from sparklog.records.arrow.arrow_payload import read_rows
from sparklog.records.arrow.columns import (
    HEADERS_COLUMN,
    KEY_COLUMN,
    TIMESTAMP_COLUMN,
    UNTYPED,
    VALUE_COLUMN,
    WIRE_TIMESTAMP,
)
from sparklog.records.arrow.layout import Node, parse_layout
from sparklog.records.bridge import numbers, values_of
from sparklog.records.envelope import BatchHeader, Compression
from sparklog.records.remote_segment.block_statistics import KEY_BYTES_MAX, BlockStatistics
from sparklog.records.remote_segment.rows_message import EMPTY, FileColumn, GrowingBody, RowsMessage
from sparklog.records.row_columns import Int64s

OFFSET_COLUMN: Final = 0
FILE_COLUMNS: Final = (OFFSET_COLUMN, TIMESTAMP_COLUMN, KEY_COLUMN, VALUE_COLUMN, HEADERS_COLUMN)
FILE_SCHEMA: Final = pa.schema([pa.field("offset", pa.int64()), *UNTYPED.of_columns(FILE_COLUMNS[1:])])


def message_of_arrow_batch(batch: memoryview, header: BatchHeader) -> RowsMessage:
    """The rows of a whole arrow batch, whose body is not copied; CorruptBatch if anything in it is wrong."""
    rows = read_rows(batch, header)
    body = GrowingBody.of(batch, header)
    columns = dict(body.columns)
    offsets = header.base_offset + rows.offset_deltas
    columns[OFFSET_COLUMN] = body.add_numbers(offsets)
    if header.is_log_append_time or TIMESTAMP_COLUMN not in columns:
        columns[TIMESTAMP_COLUMN] = body.add_numbers(rows.timestamps_ms)
    _add_absent(columns, body)
    return body.message(
        [columns[number] for number in FILE_COLUMNS], _statistics_of(offsets, rows.timestamps_ms, rows.key)
    )


def _add_absent(columns: dict[int, FileColumn], body: GrowingBody) -> None:
    """Columns of nulls for key and headers where the batch has none, all upon the same zeros."""
    missing = [number for number in (KEY_COLUMN, HEADERS_COLUMN) if number not in columns]
    if not missing:
        return
    count = body.layout.row_count
    zeros = body.add(bytes(4 * (count + 1)))
    nulls = Node(count, count)
    if KEY_COLUMN in missing:
        columns[KEY_COLUMN] = FileColumn([nulls], [zeros, zeros, EMPTY])
    if HEADERS_COLUMN in missing:
        inner = [EMPTY, zeros, EMPTY]
        columns[HEADERS_COLUMN] = FileColumn(
            [nulls, *[Node(0, 0)] * 3], [zeros, zeros, EMPTY, *inner, *inner]
        )


def message_of_rows(rows: Sequence[pa.RecordBatch]) -> RowsMessage:
    """Rows of *records* batches, in ROW_SCHEMA, as one message."""
    table = pa.Table.from_batches(rows).combine_chunks()
    (batch,) = table.to_batches()
    timestamps_ms: Int64s = values_of(batch.column("timestamp")) // 1_000
    offsets: Int64s = values_of(batch.column("offset"))
    columns: list[Any] = [
        numbers(offsets),
        numbers(timestamps_ms).view(WIRE_TIMESTAMP),
        batch.column("key"),
        batch.column("value"),
        batch.column("headers"),
    ]
    message = serialise(pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA), Compression.ZSTD)
    layout = parse_layout(message)
    return RowsMessage(
        bytes(message[: layout.metadata_length]),
        [message[layout.metadata_length : layout.size_bytes]],
        _statistics_of(offsets, timestamps_ms, batch.column("key")),
        None,
    )


def _statistics_of(offsets: Int64s, timestamps_ms: Int64s, key: Any | None) -> BlockStatistics:
    bounds = (None, None) if key is None else _key_bounds(key)
    return BlockStatistics(
        row_count=len(offsets),
        first_offset=int(offsets[0]),
        last_offset=int(offsets[-1]),
        least_timestamp=int(timestamps_ms.min()),
        greatest_timestamp=int(timestamps_ms.max()),
        null_keys=len(offsets) if key is None else key.null_count,
        least_key=bounds[0],
        greatest_key=bounds[1],
    )


def _key_bounds(key: Any) -> tuple[str | None, str | None]:
    least_and_greatest = pc.min_max(key)
    least, greatest = (least_and_greatest[name].as_py() for name in ("min", "max"))
    if least is None:
        return None, None
    return least[:KEY_BYTES_MAX].hex(), None if len(greatest) > KEY_BYTES_MAX else greatest.hex()
