"""Kafka's message schemas as data: what kio's generated classes say about each API and version.

kio has one module per API, version and direction, generated from Kafka's own message definitions. They are
imported when a version is first used, never all at once: a broker meets perhaps forty of the two hundred.
"""

import dataclasses
import importlib
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from sparklog.wire.extensions import Direction
from sparklog.wire.versions import KNOWN_VERSIONS


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of one version. Either ``kafka_type`` or ``entity`` is set."""

    name: str
    kafka_type: str | None
    entity: "Schema | None"
    is_array: bool
    nullable: bool
    tag: int | None


@dataclass(frozen=True, slots=True)
class Schema:
    """One entity of one version: its fields in the order in which they are written."""

    name: str
    flexible: bool
    fields: tuple[SchemaField, ...]


def load_schema(api_key: int, version: int, direction: Direction) -> Schema:
    """The schema of a whole request or response; the version must be a known one."""
    api = KNOWN_VERSIONS[api_key]
    module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{direction}")
    return _schema_of(getattr(module, api.name + direction.capitalize()))


def _schema_of(entity: Any) -> Schema:
    fields = tuple(_schema_field(field) for field in dataclasses.fields(entity))
    return Schema(entity.__name__, bool(entity.__flexible__), fields)


def _schema_field(field: "dataclasses.Field[Any]") -> SchemaField:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner = get_args(inner)[0]
    kafka_type = field.metadata.get("kafka_type")
    entity = _schema_of(inner) if kafka_type is None else None
    name = field.name
    if kafka_type is not None and kafka_type.startswith(("timedelta_", "datetime_")):
        name += "_ms"
    return SchemaField(name, kafka_type, entity, is_array, nullable, field.metadata.get("tag"))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The type beside None in ``X | None``, and whether there was a None."""
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return inner, True
