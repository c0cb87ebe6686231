"""The typed topic that a write goes to: found or created, with the frame's columns fitted to its own.

Of a batch the driver finds it before any task runs, of a stream each task does. A topic is created only where
option ``createTopic=typed`` says so; its columns are then those of the frame, all nullable, because frames
have ``not null`` by accident. If two writers create one topic, the later one's columns must fit.

With ``mergeSchema=true`` a topic gets the frame's new columns, and its narrower ones are widened. That is a
change of the topic, which stays if the write fails.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata, metadata_of
from sparklog.client.topic_schemas import (
    Overtaken,
    alter_schema,
    describe_schemas,
    schema_with_version,
)
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError, SchemaError, SparklogError
from sparklog.model.ids import NO_TOPIC_ID, TopicId
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.merging import merge_changes
from sparklog.model.schema.near_names import first_names
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import without_inner_not_null
from sparklog.model.schema.schema_settings import schema_settings
from sparklog.model.schema.spark_json import parse_spark_json
from sparklog.model.time import MonotonicMs
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.options.option_names import CREATE_TOPIC, MERGE_SCHEMA
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.writing.planned_version import version_of_run
from sparklog_datasource.writing.topics import existing_topic
from sparklog_datasource.writing.write_options import NewTypedTopic, WriteOptions
from sparklog_datasource.writing.write_schema import check_schema

VOID: Final = "void"
_documents: dict[tuple[TopicId, int], bytes] = {}
"""Kept by this process for the next micro-batch: a version of a topic's columns never changes."""


@dataclass(frozen=True, slots=True)
class TypedTarget:
    """The topic's document, the version that is written, and the frame's schema as Spark's JSON; small, for
    it travels to tasks.
    """

    document: bytes
    version: int
    spark_schema: str

    @property
    def written(self) -> WrittenRows:
        """SchemaError if the frame's columns do not fit."""
        return _fitted(self.document, self.version, self.spark_schema)


@lru_cache(maxsize=16)
def _fitted(document: bytes, version: int, spark_schema: str) -> WrittenRows:
    columns, void = frame_columns(spark_schema)
    return WrittenRows.fitting(TopicColumns(SchemaDocument.decode(document)).at(version), columns, void)


def frame_columns(spark_schema: str) -> tuple[Columns, tuple[str, ...]]:
    """A frame's columns, and the names of those of type void. SchemaError for a type that no topic has."""
    schema: dict[str, Any] = json.loads(spark_schema)
    fields: list[dict[str, Any]] = schema["fields"]
    void = tuple(field["name"] for field in fields if field["type"] == VOID)
    kept = [field for field in fields if field["type"] != VOID]
    return parse_spark_json(json.dumps({"type": "struct", "fields": kept})), void


def find_target(
    options: WriteOptions, topic: str, schema: Any, run: str | None = None
) -> tuple[TypedTarget | None, TopicMetadata | None]:
    """The target of a write to ``topic``, None if it is untyped; and an untyped topic's metadata.

    ``run``: of the streaming query that writes, which keeps its version of the topic's columns.

    ConfigError, SchemaError or KafkaError for what cannot be written to it. A question that may create an
    untyped topic is asked only for a frame that could be written to one.
    """
    cluster = cluster_client(options.connection)
    problem = _untyped_problem(schema)
    if options.new_topic is None and problem is None:
        known = existing_topic(cluster, topic, options)
        if known.schema_version:
            return _fitting(cluster, topic, known, schema, options, run), None
        _refuse_merging(topic, options)
        return None, known
    found = _topic_now(cluster, topic)
    if found is None and options.new_topic is not None:
        _create(cluster, topic, schema.json(), options.new_topic)
        found = _topic_now(cluster, topic)
    elif found is None and "value" not in schema.names:
        raise ConfigError(
            f"cannot write to topic {topic!r}: there is none, and none is made for a frame without column "
            f"'value'. Create it, or set option {CREATE_TOPIC}=typed, which makes a topic with the frame's "
            f"columns ({first_names(schema.names, 5) or 'none'})"
        )
    elif found is not None and not found.schema_version and options.new_topic is not None:
        raise ConfigError(
            f"option {CREATE_TOPIC}=typed: topic {topic!r} is there already, and it is untyped for ever; "
            "write to another topic, or leave the option out and write a column 'value'"
        )
    elif problem is not None and (found is None or not found.schema_version):
        raise problem
    return _fitting(cluster, topic, found, schema, options, run), None


def _refuse_merging(topic: str, options: WriteOptions) -> None:
    if options.merges_schema:
        raise ConfigError(
            f"option {MERGE_SCHEMA}=true: topic {topic!r} is untyped, and has no columns to merge; leave "
            "the option out"
        )


def _untyped_problem(schema: Any) -> ConfigError | None:
    """Why the frame cannot be written to an untyped topic."""
    try:
        check_schema(schema, has_topic_option=True)
    except ConfigError as error:
        return error
    return None


def _fitting(
    cluster: ClusterClient,
    topic: str,
    found: TopicMetadata | None,
    schema: Any,
    options: WriteOptions,
    run: str | None,
) -> TypedTarget:
    """The target in the version that the frame fits now; of a run that has begun, in the run's version."""
    frame: str = schema.json()

    def plan() -> TypedTarget:
        return _planned(cluster, topic, _document(cluster, topic, found), frame, options)

    try:
        if run is None:
            return plan()
        known = NO_TOPIC_ID if found is None else found.topic_id
        version = version_of_run(
            cluster,
            run,
            topic if known == NO_TOPIC_ID else str(known),
            lambda: plan().version,
            is_exactly_once=options.exactly_once is not None,
        )
        document = _document(cluster, topic, found)
        if SchemaDocument.decode(document).version < version:  # it was kept before the change
            document = schema_with_version(cluster, topic, version).encode()
        target = TypedTarget(document, version, frame)
        _ = target.written
    except SchemaError as error:
        raise SchemaError(f"cannot write to topic {topic!r}: {error}") from None
    return target


def _planned(
    cluster: ClusterClient, topic: str, document: bytes, frame: str, options: WriteOptions
) -> TypedTarget:
    """The frame in the newest version, after the changes that were asked for."""
    if options.merges_schema:
        document = _merged(cluster, topic, document, frame)
    target = TypedTarget(document, SchemaDocument.decode(document).version, frame)
    try:
        _ = target.written
    except SchemaError:
        newest = describe_schemas(cluster, [topic]).get(topic)
        if newest is None or newest.version <= target.version:
            raise
        target = TypedTarget(newest.encode(), newest.version, frame)  # the document was of before a change
        _ = target.written
    return target


def _merged(cluster: ClusterClient, topic: str, document: bytes, frame: str) -> bytes:
    """The document after the changes that make room for the frame, if it needs any."""
    columns, _ = frame_columns(frame)
    known = SchemaDocument.decode(document)
    while changes := merge_changes(columns, known.at(known.version)):
        try:
            return alter_schema(cluster, topic, known, changes).encode()
        except Overtaken as overtaken:  # by another writer, mostly one with the same columns
            known = schema_with_version(cluster, topic, overtaken.version)
    return known.encode()


def _topic_now(cluster: ClusterClient, topic: str) -> TopicMetadata | None:
    """The topic, as a broker knows it now; the question creates none. None if the controller knows none."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    response: MetadataResponse = cluster.call_any(request, lambda _: ErrorCode.none)
    found = metadata_of(response, MonotonicMs(0)).topics[topic]
    if found.error_code is ErrorCode.none:
        return found
    if found.error_code not in UNKNOWN_TOPIC:
        raise KafkaError(found.error_code, f"cannot write to topic {topic!r}")
    try:  # a new topic is known to the controller first, and a broker that lags asks it
        described = describe_schemas(cluster, [topic]).get(topic)
    except KafkaError as error:
        if error.code in UNKNOWN_TOPIC:
            return None
        raise
    return replace(found, schema_version=0 if described is None else described.version)


def _document(cluster: ClusterClient, topic: str, found: TopicMetadata | None) -> bytes:
    """The topic's columns; those of a new topic are asked for."""
    key = None if found is None else (found.topic_id, found.schema_version)
    if key is not None and found is not None and found.error_code is ErrorCode.none and key in _documents:
        return _documents[key]
    described = describe_schemas(cluster, [topic]).get(topic)
    if described is None:
        raise SparklogError(f"cannot write to topic {topic!r}: it was typed a moment ago; try again")
    document = described.encode()
    if key is not None and key[1] == described.version:
        _documents[key] = document
    return document


def _create(cluster: ClusterClient, topic: str, spark_schema: str, wanted: NewTypedTopic) -> None:
    columns, void = frame_columns(spark_schema)
    if void:
        raise SchemaError(
            f"cannot create topic {topic!r}: column {void[0]} is void, nulls of no type; cast or drop it"
        )
    loose, _ = without_inner_not_null(columns)
    nullable = tuple(replace(column, nullable=True) for column in loose)
    try:
        new_schema(nullable, wanted.key, wanted.timestamp)
    except SchemaError as error:
        raise SchemaError(f"cannot create topic {topic!r}: {error}") from None
    settings: Mapping[str, str] = schema_settings(ddl_text(nullable), wanted.key, wanted.timestamp)
    new_topic = NewTopic(
        name=topic,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        configs=settings,
    )
    try:
        Admin(cluster).create_topics([new_topic])
    except KafkaError as error:
        if error.code is not ErrorCode.topic_already_exists:
            raise
