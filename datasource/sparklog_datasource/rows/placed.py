"""The rows of a read, in Arrow's types.

Spark compares the Arrow schema for equality, so the columns have its types exactly. Arrow repeats the
constant columns, so that Python touches no row.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparklog.model.ids import TopicPartition
from sparklog.records.bridge import numbers, repeated_text
from sparklog.records.row_columns import HEADERS_TYPE, TIMESTAMP_TYPE
from sparklog_datasource.rows.form import HEADERS, ColumnForm, RowForm, row_type
from sparklog_datasource.rows.text import as_form
from sparklog_datasource.rows.typed_form import TypedForm, typed_with_place

ROWS_MAX: Final = 50_000
BYTES_MAX: Final = 16 * 1024 * 1024
"""Small batches of the log are put together up to this size, because each costs Spark a fixed effort."""


@cache
def arrow_schema(form: RowForm) -> pa.Schema:
    """Spark's own mapping of ``rows.form.row_type``."""
    types = {
        "key": _payload_type(form.key),
        "value": _payload_type(form.value),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": TIMESTAMP_TYPE,
        "timestampType": pa.int32(),
        HEADERS: HEADERS_TYPE,
    }
    return pa.schema([pa.field(name, types[name]) for name in row_type(form).names])


def with_place(
    rows: pa.RecordBatch, topic_partition: TopicPartition, form: RowForm | TypedForm
) -> pa.RecordBatch:
    """Rows in ``records.row_columns.ROW_SCHEMA``, or typed rows, for Spark; NotText as ``as_form``."""
    if isinstance(form, TypedForm):
        return typed_with_place(rows, topic_partition, form)
    schema = arrow_schema(form)
    columns = [_column(rows, name, topic_partition, form) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(rows: pa.RecordBatch, name: str, topic_partition: TopicPartition, form: RowForm) -> Any:
    match name:
        case "key":
            return as_form(rows, name, form.key, topic_partition)
        case "value":
            return as_form(rows, name, form.value, topic_partition)
        case "topic":
            return repeated_text(topic_partition.topic, rows.num_rows)
        case "partition":
            return numbers(np.full(rows.num_rows, topic_partition.partition, np.int32))
        case "timestampType":
            return rows.column("timestamp_type")
    return rows.column(name)


def put_together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, each within the limits, or a given one."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > ROWS_MAX or size + batch.nbytes > BYTES_MAX):
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _payload_type(form: ColumnForm) -> pa.DataType:
    return pa.binary() if form is ColumnForm.BINARY else pa.string()
