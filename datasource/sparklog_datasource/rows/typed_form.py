"""The columns of a read of typed topics: the topics' own, all nullable.

With ``includeMetadata`` follow ``_topic, _partition, _offset, _timestamp``. All topics of a read have equal
names and types. The plan has the documents of the topics that it found; a task asks for those of topics that
a pattern finds later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.data_types import Array, Columns, DataType, Map, Scalar, Struct, shape_of
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.records.arrow.arrow_types import TIMESTAMP, arrow_type
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.bridge import numbers, repeated_text
from sparklog.records.typed_decoding import OFFSET, TIMESTAMP_NAME, TypedReading

_SCALARS = {
    "boolean": spark.BooleanType,
    "tinyint": spark.ByteType,
    "smallint": spark.ShortType,
    "int": spark.IntegerType,
    "bigint": spark.LongType,
    "float": spark.FloatType,
    "double": spark.DoubleType,
    "string": spark.StringType,
    "binary": spark.BinaryType,
    "date": spark.DateType,
    "timestamp": spark.TimestampType,
    "timestamp_ntz": spark.TimestampNTZType,
}


@dataclass(frozen=True, slots=True)
class TypedForm:
    """``columns``: names and types alone. ``documents``: of the topics that were found, by their names."""

    columns: Columns
    includes_metadata: bool
    documents: tuple[tuple[str, bytes], ...]


def typed_row_type(form: TypedForm) -> Any:
    """Spark's type of a row."""
    fields = [spark.StructField(column.name, _spark_type(column.type)) for column in form.columns]
    if form.includes_metadata:
        fields += [
            spark.StructField("_topic", spark.StringType()),
            spark.StructField("_partition", spark.IntegerType()),
            spark.StructField(OFFSET, spark.LongType()),
            spark.StructField(TIMESTAMP_NAME, spark.TimestampType()),
        ]
    return spark.StructType(fields)


def _spark_type(data_type: DataType) -> Any:
    match data_type:
        case Scalar(name, precision, scale):
            return _SCALARS[name]() if name in _SCALARS else spark.DecimalType(precision, scale)
        case Array(element):
            return spark.ArrayType(_spark_type(element))
        case Map(key, value):
            return spark.MapType(_spark_type(key), _spark_type(value))
        case Struct(fields):
            return spark.StructType([spark.StructField(one.name, _spark_type(one.type)) for one in fields])


def reading_of(cluster: ClusterClient, form: TypedForm, topic: str) -> TypedReading:
    """How rows of this topic are read. SparklogError if it has other columns than the query."""
    document = dict(form.documents).get(topic)
    if document is None:
        described = describe_schemas(cluster, [topic]).get(topic)
        if described is None:
            raise SparklogError(f"topic {topic!r} has no columns, and the query reads typed topics; {_AGAIN}")
        document = described.encode()
    columns = _topic_columns(document)
    wanted = columns.newest.columns
    if shape_of(wanted) != form.columns:
        raise SparklogError(
            f"topic {topic!r} has the columns {ddl_text(shape_of(wanted))}, and the query "
            f"{ddl_text(form.columns)}; {_AGAIN}"
        )
    return TypedReading(columns, wanted)


_AGAIN = "load again, or read topics of other columns by themselves"


@lru_cache(maxsize=64)
def _topic_columns(document: bytes) -> TopicColumns:
    return TopicColumns(SchemaDocument.decode(document))


@lru_cache(maxsize=64)
def typed_arrow_schema(form: TypedForm) -> pa.Schema:
    """Spark's own mapping of ``typed_row_type``."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in form.columns]
    if form.includes_metadata:
        fields += [
            pa.field("_topic", pa.string()),
            pa.field("_partition", pa.int32()),
            pa.field(OFFSET, pa.int64()),
            pa.field(TIMESTAMP_NAME, TIMESTAMP),
        ]
    return pa.schema(fields)


def typed_with_place(
    rows: pa.RecordBatch, topic_partition: TopicPartition, form: TypedForm
) -> pa.RecordBatch:
    """Rows as a ``TypedReading`` yields them, as rows for Spark."""
    count = rows.num_rows
    columns: Sequence[Any] = rows.columns[: len(form.columns)]
    if form.includes_metadata:
        place = [
            repeated_text(topic_partition.topic, count),
            numbers(np.full(count, topic_partition.partition, np.int32)),
        ]
        columns = [*columns, *place, rows.column(OFFSET), rows.column(TIMESTAMP_NAME)]
    return pa.RecordBatch.from_arrays(list(columns), schema=typed_arrow_schema(form))
