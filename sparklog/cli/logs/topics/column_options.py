"""Columns on the command line: the options that give a new topic columns, and columns as they are shown."""

import argparse
from pathlib import Path
from typing import Any, Final

from sparklog.cli.command import UsageError
from sparklog.cli.progress import say
from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import SchemaError, SparklogError
from sparklog.model.schema.ddl_text import ddl_text, type_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema, without_inner_not_null
from sparklog.model.schema.schema_settings import KEY, SCHEMA, SCHEMA_SETTINGS, schema_settings, settings_of

EXAMPLE: Final = "id bigint NOT NULL, mag double"


def add_column_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a typed topic."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--schema",
        metavar="DDL|@FILE",
        help=f"columns of a typed topic in Spark's DDL, such as '{EXAMPLE}'; a FILE has that, or a Spark "
        "schema's JSON",
    )
    source.add_argument("--like", metavar="TOPIC", help="columns, key and timestamp of that topic")
    parser.add_argument("--key", metavar="COLUMN", help="the column that is the key of each record")
    parser.add_argument("--timestamp", metavar="COLUMN", help="the column that is the time of each record")


def check_columns(arguments: argparse.Namespace) -> None:
    """Raises UsageError for columns that no topic can have, before the cluster is asked."""
    as_settings = [name for name in dict(arguments.config) if name in SCHEMA_SETTINGS]
    if as_settings:
        option = {SCHEMA: "--schema", KEY: "--key"}.get(as_settings[0], "--timestamp")
        raise UsageError(f"--config {as_settings[0]}: use {option} instead")
    if arguments.schema is None and arguments.like is None:
        if arguments.key or arguments.timestamp:
            raise UsageError("--key and --timestamp name columns: give --schema or --like too")
        return
    if arguments.schema is not None:
        given = _given(arguments.schema)
        try:
            columns, dropped = without_inner_not_null(parse_schema(given))
            new_schema(columns, arguments.key or "", arguments.timestamp or "")
        except SchemaError as error:
            raise UsageError(f"--schema: {error}") from None
        if dropped:
            say(f"note: NOT NULL of {', '.join(dropped)} is dropped: it holds for columns, not within them")
        arguments.schema = ddl_text(columns)


def _given(schema: str) -> str:
    if not schema.startswith("@"):
        return schema
    try:
        return Path(schema[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--schema {schema}: {error.strerror}; give a file of DDL, or of a Spark schema's JSON"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"--schema {schema} is no text in UTF-8: byte {error.start} cannot be read"
        ) from None


def column_settings(cluster: ClusterClient, arguments: argparse.Namespace) -> dict[str, str]:
    """The settings that give the new topic its columns; none for an untyped topic."""
    named = {"key": arguments.key or "", "timestamp": arguments.timestamp or ""}
    if arguments.like is None:
        return schema_settings(arguments.schema or "", **named)
    like = settings_of(schema_of(cluster, arguments.like))
    return {**like, **schema_settings(like[SCHEMA], **named)}


def schema_of(cluster: ClusterClient, topic: str) -> SchemaDocument:
    """The topic's columns; SparklogError if it has none."""
    found = describe_schemas(cluster, [topic]).get(topic)
    if found is None:
        raise SparklogError(f"topic {topic!r} has no columns; a topic is typed from its creation, or never")
    return found


def show_columns(schema: SchemaDocument) -> None:
    """Print the newest version."""
    print(f"schema: {ddl_text(schema.at(schema.version))}")
    print(f"version: {schema.version}")
    for role, column in (("key", schema.key), ("timestamp", schema.timestamp)):
        print(f"{role}: {schema.name_of(column) or 'none'}")


def columns_as_json(schema: SchemaDocument | None) -> dict[str, Any] | None:
    """The newest version, types in Spark's words; null for an untyped topic."""
    if schema is None:
        return None
    return {
        "version": schema.version,
        "key": schema.name_of(schema.key) or None,
        "timestamp": schema.name_of(schema.timestamp) or None,
        "columns": [
            {
                "id": column.id,
                "name": column.name,
                "type": type_text(column.type),
                "nullable": column.nullable,
                "comment": column.comment or None,
            }
            for column in schema.at(schema.version)
        ],
    }
