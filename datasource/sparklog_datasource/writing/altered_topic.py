"""Typed topics whose columns are changed from Python."""

from collections.abc import Mapping, Sequence

from sparklog.client.topic_schemas import alter_schema, describe_schemas
from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import parse_change
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.writing.new_typed_topic import connection_of


def alter_typed_topic(name: str, changes: Sequence[str], options: Mapping[str, str]) -> int:
    """As ``pyspark_sparklog.alter_topic``."""
    parsed = [parse_change(*_parts(change)) for change in changes]
    cluster = cluster_client(connection_of(options))
    known = describe_schemas(cluster, [name]).get(name)
    if known is None:
        raise SchemaError(f"topic {name!r} has no columns; a topic is typed from its creation, or never")
    return alter_schema(cluster, name, known, parsed).version


def _parts(change: str) -> tuple[str, str]:
    operation, _, text = change.strip().removeprefix("--").partition(" ")
    return operation, text
