"""A topic's columns as settings: what CreateTopics takes, and DescribeConfigs shows as read-only."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument

SCHEMA: Final = "sparklog.schema"
KEY: Final = "sparklog.key"
TIMESTAMP: Final = "sparklog.timestamp"

SCHEMA_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        SCHEMA: "The columns of the topic, in Spark's DDL. Given when the topic is created.",
        KEY: "The column that is the key of each record. Given when the topic is created.",
        TIMESTAMP: "The column that is the time of each record. Given when the topic is created.",
    }
)
"""The settings' names, each with its documentation."""


def schema_settings(ddl: str, key: str = "", timestamp: str = "") -> dict[str, str]:
    """The settings of a topic with these columns; without those that are empty."""
    given = {SCHEMA: ddl, KEY: key, TIMESTAMP: timestamp}
    return {name: value for name, value in given.items() if value}


def settings_of(document: SchemaDocument) -> dict[str, str]:
    """The settings of the newest version."""
    return schema_settings(
        ddl_text(document.at(document.version)),
        document.name_of(document.key),
        document.name_of(document.timestamp),
    )
