"""Whether a read is of typed topics, and of which columns: asked at ``load()``, and as a query starts.

``load()`` asks for metadata, and for the columns of typed topics. A topic that is not there yet has the
columns of untyped topics, as with Spark's Kafka connector, and so has a cluster that does not answer soon:
the query reports what is wrong with it. A query asks again as it starts, and must find the same columns; then
it keeps their ids for as long as it lives.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.metadata.cluster_metadata import TopicMetadata, metadata_of
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import TopicId
from sparklog.model.schema.data_types import shape_of
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.rows.column_choice import (
    COLUMNS,
    refuse_other_types,
    refuse_repeated,
    refuse_unknown,
)
from sparklog_datasource.rows.form import RowForm, row_type, untyped_columns
from sparklog_datasource.rows.row_condition import WHERE
from sparklog_datasource.rows.typed_form import (
    PLACE,
    TypedForm,
    names_of,
    planned_topic,
    typed_row_type,
)

LOAD_PATIENCE_MS: Final = 3_000
"""How long ``load()`` tries to reach a broker."""


def form_at_load(options: ReadOptions) -> RowForm | TypedForm:
    """The form of the rows, as far as the cluster tells; ConfigError for options that do not go with it."""
    names = options.columns
    try:
        return _form(options, LOAD_PATIENCE_MS, names)
    except (ClusterUnavailable, OSError):
        if options.where or (names is not None and not set(names) <= set(untyped_columns())):
            raise
        return replace(_untyped_form(options), columns=names)


def with_form(options: ReadOptions, schema: Any) -> ReadOptions:
    """The options of a query that starts, with the form of its rows. ConfigError unless it has the columns in
    ``schema``, which may be some of them, in any order.

    Of the columns of untyped topics nothing is asked: a typed topic refuses such a read.
    """
    names = tuple(schema.names)
    is_named = options.includes_metadata or options.columns is not None or bool(options.where)
    if not is_named and schema == row_type(_untyped_form(options)):
        return options
    if options.columns not in (None, names):
        raise ConfigError(
            f"option {COLUMNS} and the schema of the read name different columns: leave one of them out"
        )
    if not names:
        raise ConfigError("the schema of the read has no columns: name one; offsets suffice for a count")
    refuse_repeated(names)
    form = _form(options, options.connection.retry_timeout_ms, names)
    refuse_other_types(schema, spark_row_type(form))
    return replace(options, form=form)


def spark_row_type(form: RowForm | TypedForm) -> Any:
    """Spark's type of a row."""
    return typed_row_type(form) if isinstance(form, TypedForm) else row_type(form)


def _untyped_form(options: ReadOptions) -> RowForm:
    assert isinstance(options.form, RowForm), "the form by the options alone"
    return options.form


def _form(options: ReadOptions, timeout_ms: int, names: tuple[str, ...] | None) -> RowForm | TypedForm:
    """``names`` are the columns that are wanted; None for all."""
    cluster = cluster_client(options.connection)
    topics = _subscribed(cluster, options, timeout_ms)
    documents = _documents(cluster, topics)
    ids = {name: topic.topic_id for name, topic in topics.items()}
    untyped = [name for name in topics if name not in documents]
    own = _untyped_form(options)
    if not documents:
        if options.includes_metadata:
            raise ConfigError(
                "option includeMetadata is for typed topics, and "
                f"{', '.join(untyped[:3]) or 'no topic'} is none: leave it out, its rows have these columns"
            )
        is_known = bool(untyped) and topics[untyped[0]].error_code not in UNKNOWN_TOPIC
        whose = f"untyped topic {untyped[0]!r}" if is_known else "a topic that is not there yet"
        if options.where:
            raise ConfigError(
                f"option {WHERE} is for typed topics, and this read is of {whose}: filter the frame"
            )
        if names is not None:
            refuse_unknown(names, untyped_columns(), whose)
        return replace(own, columns=names)
    if untyped:
        raise ConfigError(
            f"topic {next(iter(documents))!r} is typed and topic {untyped[0]!r} is not: read each by itself"
        )
    if own != RowForm():
        raise ConfigError(
            "options includeHeaders, keyFormat and valueFormat are for untyped topics: rows of typed topics "
            "have their columns, and no headers; leave them out"
        )
    return _typed(documents, ids, names, options)


def _typed(
    documents: dict[str, SchemaDocument],
    ids: dict[str, TopicId],
    names: tuple[str, ...] | None,
    options: ReadOptions,
) -> TypedForm:
    if names is not None:
        for topic, document in documents.items():
            there = names_of(document.at(document.version))
            refuse_unknown(names, (*there, *PLACE), f"topic {topic!r}")
    where = options.where
    planned = tuple(planned_topic(name, ids[name], one, names, where) for name, one in documents.items())
    first, *others = planned
    columns = shape_of(first.columns)
    for other in others:
        found = shape_of(other.columns)
        if found != columns:
            raise ConfigError(
                f"topics {first.name!r} and {other.name!r} have different columns: {ddl_text(columns)} and "
                f"{ddl_text(found)}; read them by themselves"
            )
    if names is None:
        whole = TypedForm.whole(columns, includes_metadata=options.includes_metadata)
        return replace(whole, topics=planned, where=where)
    are_all = all(len(one.at(one.version)) == len(columns) for one in documents.values())
    return TypedForm(columns, names, planned, are_all, where)


def _subscribed(cluster: ClusterClient, options: ReadOptions, timeout_ms: int) -> dict[str, TopicMetadata]:
    """The topics of the read that there are; one that a broker does not know yet has an error code."""
    subscription = options.subscription
    names = subscription.named_topics
    wanted = None if subscription.pattern is not None else [MetadataRequestTopic(name=name) for name in names]
    response: MetadataResponse = cluster.call_any(
        MetadataRequest(topics=wanted, allow_auto_topic_creation=False),
        lambda _: ErrorCode.none,
        timeout_ms=timeout_ms,
    )
    found = metadata_of(response, MonotonicMs(0)).topics
    return {name: topic for name, topic in sorted(found.items()) if subscription.takes(topic)}


def _documents(cluster: ClusterClient, topics: dict[str, TopicMetadata]) -> dict[str, SchemaDocument]:
    """The columns of those that are typed. A topic that is unknown here is asked for by itself: the broker
    asks the controller, which knows a topic first.
    """
    typed = [name for name, topic in topics.items() if topic.schema_version]
    documents = describe_schemas(cluster, typed) if typed else {}
    for name in _unknown(topics.values()):
        try:
            documents |= describe_schemas(cluster, [name])
        except KafkaError as error:
            if error.code not in UNKNOWN_TOPIC:
                raise
    return {name: documents[name] for name in topics if name in documents}


def _unknown(topics: Iterable[TopicMetadata]) -> list[str]:
    return [topic.name for topic in topics if topic.error_code in UNKNOWN_TOPIC]
