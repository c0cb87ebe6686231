"""The rows of a typed topic's batches as messages of an ``.arrow`` object.

The file has one version of the topic's columns, by their names of that version: a segment is copied up to the
first batch of another one. Before them are ``_offset`` and ``_timestamp``, the time of the row as a record.
Each column, and each field of a struct, has its id in the metadata of its field, because names change.
"""

from typing import Final

import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.column_bounds import NO_BOUNDS
from sparklog.records.arrow.columns import WIRE_TIMESTAMP
from sparklog.records.arrow.header import ArrowHeader
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import TypedRows, read_typed
from sparklog.records.envelope import BatchHeader
from sparklog.records.remote_segment.block_statistics import BlockStatistics
from sparklog.records.remote_segment.column_statistics import ColumnStatistics, OneColumn
from sparklog.records.remote_segment.null_columns import add_nulls
from sparklog.records.remote_segment.rows_message import FileColumn, GrowingBody, RowsMessage
from sparklog.records.row_columns import Int64s

ID_KEY: Final = "sparklog.id"
"""The metadata of a field: the id of the column, or of the field of a struct."""

OFFSET_FIELD: Final = pa.field("_offset", pa.int64())
TIMESTAMP_FIELD: Final = pa.field("_timestamp", WIRE_TIMESTAMP)


def file_schema(columns: Columns) -> pa.Schema:
    """The schema of the file."""
    return pa.schema([OFFSET_FIELD, TIMESTAMP_FIELD, *map(_with_id, columns)])


def _with_id(field: Field) -> pa.Field:
    return pa.field(field.name, _file_type(field.type), metadata={ID_KEY: str(field.id)})


def _file_type(data_type: DataType) -> pa.DataType:
    """``arrow_type``, with the ids of the fields of structs."""
    match data_type:
        case Scalar():
            return arrow_type(data_type)
        case Array(element):
            return pa.list_(pa.field("element", _file_type(element)))
        case Map(key, value):
            of_key = pa.field("key", _file_type(key), nullable=False)
            return pa.map_(of_key, pa.field("value", _file_type(value)))
        case Struct(fields):
            return pa.struct([_with_id(field) for field in fields])


def message_of_typed_batch(
    batch: memoryview, header: BatchHeader, topic: TopicColumns, version: int
) -> RowsMessage:
    """The rows of a whole batch of that version, whose body is not copied.

    CorruptBatch if anything in it is wrong, UnknownColumns for a version that ``topic`` lacks.
    """
    rows = read_typed(batch, header, topic)
    if rows.of.version != version:
        raise CorruptBatch(
            f"the batch at offset {header.base_offset} has version {rows.of.version} of the topic's columns, "
            f"in a file of version {version}"
        )
    body = GrowingBody.of(batch, header)
    offsets, timestamps_ms = header.base_offset + rows.offset_deltas, rows.timestamps_ms()
    added = [body.add_numbers(offsets), body.add_numbers(timestamps_ms)]
    return body.message(
        [*added, *_columns(body, rows.of.columns)],
        _statistics(rows, offsets, timestamps_ms),
        _of_columns(body.ours),
    )


def _columns(body: GrowingBody, columns: Columns) -> list[FileColumn]:
    """All columns of the version, in its order."""
    absent = [field for field in columns if field.id not in body.columns]
    nulls = add_nulls(body, [field.type for field in absent])
    found = {**body.columns, **{field.id: one for field, one in zip(absent, nulls, strict=True)}}
    return [found[field.id] for field in columns]


def _statistics(rows: TypedRows, offsets: Int64s, timestamps_ms: Int64s) -> BlockStatistics:
    key = rows.present.get(rows.of.key)
    return BlockStatistics(
        row_count=rows.row_count,
        first_offset=int(offsets[0]),
        last_offset=int(offsets[-1]),
        least_timestamp=int(timestamps_ms.min()),
        greatest_timestamp=int(timestamps_ms.max()),
        null_keys=rows.row_count if key is None else key.null_count,
        least_key=None,
        greatest_key=None,
    )


def _of_columns(ours: ArrowHeader) -> ColumnStatistics:
    return {
        entry.column_id: OneColumn(entry.null_count, *ours.bounds.get(entry.column_id, NO_BOUNDS))
        for entry in ours.columns
    }
