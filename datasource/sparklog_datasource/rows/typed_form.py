"""The columns of a read of typed topics: the topics' own, all nullable, or those of them that a read names.

With ``includeMetadata`` follow ``_topic, _partition, _offset, _timestamp``, which may also be named. All
topics of a read have these columns with equal types.

Names become ids when a query is planned, and stay so while it lives, whatever the columns are called later.
The plan has the ids, and travels to the tasks. These ask for the topic's document, which says what batches of
each version have, once in the life of their process, and again when they meet a version that it lacks.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import describe_schemas, schema_with_version
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from sparklog.model.schema.data_types import Array, Columns, DataType, Map, Scalar, Struct, shape_of
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.predicates.tree import Condition
from sparklog.records.arrow.arrow_types import TIMESTAMP, arrow_type
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.bridge import numbers, repeated_text
from sparklog.records.typed_decoding import OFFSET, TIMESTAMP_NAME, TypedReading
from sparklog_datasource.rows.row_condition import condition_of

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
class PlannedTopic:
    """A topic as a query planned to read it. ``columns`` are those that are wanted, with the ids that they
    had in ``version``.
    """

    name: str
    id: TopicId
    """NO_TOPIC_ID if it was not known yet."""
    version: int
    columns: Columns
    where: Condition | None = None
    """Which rows are wanted; None for all."""


@dataclass(frozen=True, slots=True)
class TypedForm:
    """``columns``: those of the topics that are wanted, names and types alone. ``shown``: the names of all
    columns of a row, in their order. ``topics``: those that were found.
    """

    columns: Columns
    shown: tuple[str, ...]
    topics: tuple[PlannedTopic, ...] = ()
    are_all: bool = True
    """Whether the topics have no other columns."""
    where: str = ""
    """The condition on rows as it was written; empty for none."""

    @classmethod
    def whole(cls, columns: Columns, *, includes_metadata: bool = False) -> "TypedForm":
        """The form of rows with all of these columns."""
        return cls(columns, names_of(columns) + (PLACE if includes_metadata else ()))

    def of(self, names: Collection[str]) -> "TypedForm":
        """The form of a task that reads these topics alone."""
        return replace(self, topics=tuple(topic for topic in self.topics if topic.name in names))


def typed_row_type(form: TypedForm) -> Any:
    """Spark's type of a row."""
    types = {column.name: _spark_type(column.type) for column in form.columns} | {
        "_topic": spark.StringType(),
        "_partition": spark.IntegerType(),
        OFFSET: spark.LongType(),
        TIMESTAMP_NAME: spark.TimestampType(),
    }
    return spark.StructType([spark.StructField(name, types[name]) for name in form.shown])


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


PLACE: Final = ("_topic", "_partition", OFFSET, TIMESTAMP_NAME)
"""Columns that no topic has, and each row."""

_AGAIN: Final = "load again, or read topics of other columns by themselves"
_KNOWN_MAX: Final = 1_000
_known: dict[TopicId, TopicColumns] = {}
"""Kept by this process, for its next task: a version never changes."""


def names_of(columns: Columns) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def planned_topic(
    name: str,
    topic_id: TopicId,
    document: SchemaDocument,
    shown: Sequence[str] | None = None,
    where: str = "",
) -> PlannedTopic:
    """The topic as a query that is planned now reads it: all of its columns, or those of the names ``shown``
    that it has. ConfigError for a condition that its columns do not allow.
    """
    columns = document.at(document.version)
    condition = condition_of(where, columns, name)
    if shown is not None:
        found = {column.name: column for column in columns}
        columns = tuple(found[one] for one in shown if one in found)
    return PlannedTopic(name, topic_id, document.version, columns, condition)


def with_newcomers(cluster: ClusterClient, form: TypedForm, names: Iterable[str]) -> TypedForm:
    """The form with these topics planned, too. SparklogError for a topic of other columns than the query."""
    planned = {topic.name for topic in form.topics}
    added = tuple(_newcomer(cluster, form, name) for name in sorted(set(names) - planned))
    return replace(form, topics=form.topics + added) if added else form


def _newcomer(cluster: ClusterClient, form: TypedForm, name: str) -> PlannedTopic:
    document = describe_schemas(cluster, [name]).get(name)
    if document is None:
        raise SparklogError(f"topic {name!r} has no columns, and the query reads typed topics; {_AGAIN}")
    names = None if form.are_all else form.shown
    planned = planned_topic(name, _id_now(cluster, name), document, names, form.where)
    if shape_of(planned.columns) != form.columns:
        raise SparklogError(
            f"topic {name!r} has the columns {ddl_text(shape_of(planned.columns))}, and the query "
            f"{ddl_text(form.columns)}; {_AGAIN}"
        )
    return planned


def reading_of(cluster: ClusterClient, form: TypedForm, topic: str) -> TypedReading:
    """How rows of this topic are read: with the ids of the plan. SparklogError if it is another topic now, or
    one that was found later and has other columns than the query.
    """
    (planned,) = with_newcomers(cluster, form.of([topic]), [topic]).topics
    if NO_TOPIC_ID not in (planned.id, present := _id_now(cluster, topic)) and planned.id != present:
        raise SparklogError(
            f"topic {topic!r} was deleted and created again since the query was planned; load again"
        )
    known = _columns(cluster, topic, planned.version)
    with_times = TIMESTAMP_NAME in form.shown
    return TypedReading(
        known, planned.columns, partial(_columns, cluster, topic), with_times, planned.where, planned.version
    )


def _id_now(cluster: ClusterClient, topic: str) -> TopicId:
    found = cluster.latest_metadata.topics.get(topic)
    return NO_TOPIC_ID if found is None else found.topic_id


def _columns(cluster: ClusterClient, topic: str, version: int) -> TopicColumns:
    """The topic's columns with this version at least."""
    topic_id = _id_now(cluster, topic)
    known = _known.get(topic_id)
    if known is None or known.document.version < version:
        known = TopicColumns(schema_with_version(cluster, topic, version))
        if topic_id != NO_TOPIC_ID:
            if len(_known) >= _KNOWN_MAX:
                _known.clear()
            _known[topic_id] = known
    return known


@lru_cache(maxsize=64)
def typed_arrow_schema(form: TypedForm) -> pa.Schema:
    """Spark's own mapping of ``typed_row_type``."""
    types = {column.name: arrow_type(column.type) for column in form.columns} | {
        "_topic": pa.string(),
        "_partition": pa.int32(),
        OFFSET: pa.int64(),
        TIMESTAMP_NAME: TIMESTAMP,
    }
    return pa.schema([pa.field(name, types[name]) for name in form.shown])


def typed_with_place(
    rows: pa.RecordBatch, topic_partition: TopicPartition, form: TypedForm
) -> pa.RecordBatch:
    """Rows as a ``TypedReading`` yields them, as rows for Spark."""
    columns: list[Any] = []
    for name in form.shown:
        if name == "_topic":
            columns.append(repeated_text(topic_partition.topic, rows.num_rows))
        elif name == "_partition":
            columns.append(numbers(np.full(rows.num_rows, topic_partition.partition, np.int32)))
        else:
            columns.append(rows.column(name))
    return pa.RecordBatch.from_arrays(columns, schema=typed_arrow_schema(form))
