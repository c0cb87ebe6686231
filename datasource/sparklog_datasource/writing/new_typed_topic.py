"""Typed topics that are created from Spark's schemas."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from sparklog.client.admin import Admin, NewTopic
from sparklog.model.errors import ConfigError, SchemaError
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema, without_inner_not_null
from sparklog.model.schema.schema_settings import schema_settings
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.options.option_parsing import ConnectionOptions, Options

logger: Final = logging.getLogger(__name__)


def create_typed_topic(
    name: str,
    schema: Any,
    options: Mapping[str, str],
    key: str,
    timestamp: str,
    partitions: int,
    replication_factor: int,
    configs: Mapping[str, str],
) -> None:
    """As ``pyspark_sparklog.create_topic``. SchemaError for columns that no topic can have."""
    connection = connection_of(options)
    text = schema if isinstance(schema, str) else _spark_json(schema)
    columns, dropped = without_inner_not_null(parse_schema(text))
    new_schema(columns, key, timestamp)
    if dropped:
        logger.warning("NOT NULL of %s is dropped: it holds for columns, not within them", ", ".join(dropped))
    topic = NewTopic(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs={**configs, **schema_settings(ddl_text(columns), key, timestamp)},
    )
    Admin(cluster_client(connection)).create_topics([topic])


def connection_of(options: Mapping[str, str]) -> ConnectionOptions:
    """The cluster that the options name. ConfigError for what are no options."""
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"options={options!r} are no options: give a dictionary, such as "
            "{'bootstrap.servers': '127.0.0.1:9092'}"
        )
    return Options(options, (), "topic").connection(retry_option="max.block.ms")


def _spark_json(schema: Any) -> str:
    """The JSON of a Spark schema; SchemaError for something else, such as a DataFrame."""
    if callable(getattr(schema, "json", None)):
        return str(schema.json())
    kind = type(schema).__name__
    hint = "give its schema, df.schema" if hasattr(schema, "schema") else "give DDL, or df.schema"
    raise SchemaError(f"schema: a {kind} is no schema; {hint}")
