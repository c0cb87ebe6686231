"""The rows that a read gives, in Spark's types and in Arrow's.

``key, value, topic, partition, offset, timestamp, timestampType`` and, with ``includeHeaders``, ``headers``:
those of Spark's Kafka connector, all nullable. Spark compares the Arrow schema for equality, so the columns
are built in its types exactly; the constant ones are repeated by Arrow, no row is touched by Python.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition
from sparklog.records.bridge import numbers, repeated_text
from sparklog.records.columns import HEADERS_TYPE, TIMESTAMP_TYPE

_ARROW_FIELDS: Final = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP_TYPE),
    pa.field("timestampType", pa.int32()),
)
ARROW_SCHEMA: Final = pa.schema(_ARROW_FIELDS)
ARROW_SCHEMA_WITH_HEADERS: Final = pa.schema([*_ARROW_FIELDS, pa.field("headers", HEADERS_TYPE)])

ROWS_MAX: Final = 50_000
BYTES_MAX: Final = 16 * 1024 * 1024
"""Small batches of the log are put together up to this size: each costs Spark a fixed effort."""


def headers_type() -> Any:
    """Spark's type of the headers column, for reads and writes."""
    return ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def row_type(include_headers: bool) -> Any:
    """Spark's type of a row."""
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    return StructType([*fields, StructField("headers", headers_type())] if include_headers else fields)


def refuse_other_schema(schema: Any, include_headers: bool) -> None:
    """The rows of a topic have one type; a schema of the user's is refused, as by the Kafka connector."""
    expected = row_type(include_headers)
    if schema != expected:
        raise ConfigError(
            f"sparklog reads have a fixed schema, so .schema(...) is not allowed: leave it out and select or "
            f"cast columns instead. Given: {schema.simpleString()}. Fixed: {expected.simpleString()}"
        )


def with_place(
    rows: pa.RecordBatch, topic_partition: TopicPartition, include_headers: bool
) -> pa.RecordBatch:
    """Rows in ``records.columns.ROW_SCHEMA`` as rows for Spark."""
    count = rows.num_rows
    columns = [
        rows.column("key"),
        rows.column("value"),
        repeated_text(topic_partition.topic, count),
        numbers(np.full(count, topic_partition.partition, np.int32)),
        rows.column("offset"),
        rows.column("timestamp"),
        rows.column("timestamp_type"),
    ]
    if not include_headers:
        return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)
    return pa.RecordBatch.from_arrays([*columns, rows.column("headers")], schema=ARROW_SCHEMA_WITH_HEADERS)


def put_together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, none of them larger than the larger of a given one and the limits."""
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
