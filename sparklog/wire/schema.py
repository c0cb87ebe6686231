"""Kafka's message schemas as data: the fields of every message in every version that is known here.

They are in ``schemas.json``, which ``scripts/make_schemas.py`` makes from the schemas of the ``kio`` package
(decision 0001). A message, named as in ``"Fetch request"``, has an entry for each run of versions with one
layout: ``{"versions": [first, last], "flexible": ..., "fields": [...]}``, with the fields in the order in
which they are written. A field has a ``name``, either a ``type`` of Kafka's or an entity's ``fields``, and
where they apply ``tag``, ``"array": true`` and ``"nullable": true``.

``own_schemas.json`` has those of sparklog's own messages, which are written by hand, in the same form.

The files are read when the first message is coded.
"""

import json
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from sparklog.wire.extensions import Direction
from sparklog.wire.versions import KNOWN_VERSIONS

SCHEMAS: Final = "schemas.json"
OWN_SCHEMAS: Final = "own_schemas.json"


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

    flexible: bool
    fields: tuple[SchemaField, ...]


def load_schema(api_key: int, version: int, direction: Direction) -> Schema:
    """The schema of a whole request or response; KeyError for a version that the file does not have."""
    message = f"{KNOWN_VERSIONS[api_key].name} {direction}"
    for layout in _schemas()[message]:
        first, last = layout["versions"]
        if first <= version <= last:
            return _schema_of(layout["fields"], flexible=layout["flexible"])
    raise KeyError(f"{message} version {version}: run scripts/make_schemas.py")


@cache
def _schemas() -> dict[str, Any]:
    return _read(SCHEMAS) | _read(OWN_SCHEMAS)


def _read(name: str) -> dict[str, Any]:
    text = get_data(__package__, name)
    assert text is not None, f"{__package__} is not loaded from files"
    found: dict[str, Any] = json.loads(text)
    return found


def _schema_of(fields: list[dict[str, Any]], *, flexible: bool) -> Schema:
    return Schema(flexible, tuple(_schema_field(field, flexible=flexible) for field in fields))


def _schema_field(field: dict[str, Any], *, flexible: bool) -> SchemaField:
    entity = _schema_of(field["fields"], flexible=flexible) if "fields" in field else None
    return SchemaField(
        name=field["name"],
        kafka_type=field.get("type"),
        entity=entity,
        is_array=field.get("array", False),
        nullable=field.get("nullable", False),
        tag=field.get("tag"),
    )
