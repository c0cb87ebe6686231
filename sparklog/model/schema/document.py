"""The document of a topic's schema: all versions of its columns, as JSON.

Each column is there once, with its names and types by version, so that a change adds a few bytes. An id is
never used again: ``next_id`` only rises.

    {"format": 1, "version": 3, "next_id": 5, "key": 1, "timestamp": null, "columns": [
      {"id": 1, "name": "id", "type": "bigint", "nullable_since": null},
      {"id": 2, "name": [[1, "mag"], [3, "magnitude"]], "type": [[1, "float"], [2, "double"]]},
      {"id": 3, "name": "s", "type": {"struct": [
        {"id": 4, "name": "a", "type": {"array": "int"}, "since": 2}]}}]}

A name or type that changed is a list of the versions that began with a value, and that value. What is absent:
``since``, the version that added the field (1); ``dropped``, the first version without it (none);
``nullable_since`` (1; null for NOT NULL to this day); ``comment`` (empty).

A broker reads the same document for each partition of a topic, at its start a hundred times or more. Each is
decoded once for as long as somebody uses it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.spark_json import scalar_of

FORMAT: Final = 1
DIGEST_BYTES: Final = 16

T = TypeVar("T")

ByVersion = tuple[tuple[int, T], ...]
"""Values, each with the version that began with it, in order."""


@dataclass(frozen=True, slots=True)
class ScalarHistory:
    types: ByVersion[Scalar]


@dataclass(frozen=True, slots=True)
class ArrayHistory:
    element: "TypeHistory"


@dataclass(frozen=True, slots=True)
class MapHistory:
    key: "TypeHistory"
    value: "TypeHistory"


@dataclass(frozen=True, slots=True)
class StructHistory:
    fields: "tuple[FieldHistory, ...]"


TypeHistory = ScalarHistory | ArrayHistory | MapHistory | StructHistory


@dataclass(frozen=True, slots=True)
class FieldHistory:
    """A column, or a field of a struct, in all versions."""

    id: int
    names: ByVersion[str]
    type: TypeHistory
    since: int = 1
    dropped: int | None = None
    """The first version without the field."""
    nullable_since: int | None = 1
    """The first version in which the column may be null."""
    comment: str = ""

    def is_in(self, version: int) -> bool:
        return self.since <= version and (self.dropped is None or version < self.dropped)

    def at(self, version: int) -> Field:
        return Field(
            name=_valid_at(self.names, version),
            type=type_at(self.type, version),
            nullable=self.nullable_since is not None and self.nullable_since <= version,
            comment=self.comment,
            id=self.id,
        )


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SchemaDocument:
    """``version`` is the newest; ``key`` and ``timestamp`` are ids of columns, which ``name_of`` names."""

    version: int
    next_id: int
    key: int | None
    timestamp: int | None
    columns: tuple[FieldHistory, ...]

    def at(self, version: int) -> Columns:
        """The columns of a version from 1 to the newest."""
        return _fields_at(self.columns, version)

    @property
    def column_ids(self) -> frozenset[int]:
        """The ids of the columns of all versions, also those that were dropped."""
        return frozenset(history.id for history in self.columns)

    def name_of(self, column: int | None) -> str:
        """The newest name of a column by its id; empty for none."""
        found = [history for history in self.columns if history.id == column]
        return _valid_at(found[0].names, self.version) if found else ""

    def renamed(self, version: int) -> dict[str, str]:
        """Names that columns of ``version`` had before, each with the column's name in it; those that are
        taken in it again are left out.
        """
        kept = [column for column in self.columns if column.is_in(version)]
        present = {column.id: _valid_at(column.names, version) for column in kept}
        return {
            earlier: present[column.id]
            for column in kept
            for since, earlier in column.names
            if since < version and earlier not in present.values()
        }

    def encode(self) -> bytes:
        document = {
            "format": FORMAT,
            "version": self.version,
            "next_id": self.next_id,
            "key": self.key,
            "timestamp": self.timestamp,
            "columns": [_field_json(column) for column in self.columns],
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "SchemaDocument":
        """Equal bytes are one object. SchemaError for what is no document, or is of a later format."""
        digest = blake2b(data, digest_size=DIGEST_BYTES).digest()
        used = _in_use.get(digest)
        if used is None:
            used = _in_use[digest] = cls._decoded(data)
        return used

    @classmethod
    def _decoded(cls, data: bytes) -> "SchemaDocument":
        try:
            document = json.loads(data)
            found = document["format"]
            if found != FORMAT:
                message = f"the schema is of format {found}, this release knows {FORMAT}; use a later release"
                raise SchemaError(message)
            return cls(
                document["version"],
                document["next_id"],
                document["key"],
                document["timestamp"],
                tuple(_field_history(column) for column in document["columns"]),
            )
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise SchemaError(f"the schema is damaged: {error!r}; it begins with {data[:60]!r}") from None


_in_use: Final["WeakValueDictionary[bytes, SchemaDocument]"] = WeakValueDictionary()
"""By the digest of its bytes."""


def type_history(
    data_type: DataType, version: int, field_history: Callable[[Field], FieldHistory]
) -> TypeHistory:
    """The history of a type from ``version`` on; ``field_history`` makes that of a struct's field."""
    match data_type:
        case Scalar():
            return ScalarHistory(((version, data_type),))
        case Array(element):
            return ArrayHistory(type_history(element, version, field_history))
        case Map(key, value):
            of_key = type_history(key, version, field_history)
            return MapHistory(of_key, type_history(value, version, field_history))
        case Struct(fields):
            return StructHistory(tuple(field_history(field) for field in fields))


def _valid_at(values: ByVersion[T], version: int) -> T:
    return [value for since, value in values if since <= version][-1]


def _fields_at(fields: tuple[FieldHistory, ...], version: int) -> Columns:
    return tuple(field.at(version) for field in fields if field.is_in(version))


def type_at(history: TypeHistory, version: int) -> DataType:
    """The type as of ``version``."""
    match history:
        case ScalarHistory(types):
            return _valid_at(types, version)
        case ArrayHistory(element):
            return Array(type_at(element, version))
        case MapHistory(key, value):
            return Map(type_at(key, version), type_at(value, version))
        case StructHistory(fields):
            return Struct(_fields_at(fields, version))


# -- JSON


def _field_json(field: FieldHistory) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": field.id,
        "name": _values_json(field.names, field.since, str),
        "type": _type_json(field.type, field.since),
    }
    if field.since != 1:
        found["since"] = field.since
    if field.dropped is not None:
        found["dropped"] = field.dropped
    if field.nullable_since != 1:
        found["nullable_since"] = field.nullable_since
    if field.comment:
        found["comment"] = field.comment
    return found


def _values_json(values: ByVersion[T], since: int, text: Callable[[T], str]) -> Any:
    if len(values) == 1 and values[0][0] == since:
        return text(values[0][1])
    return [[version, text(value)] for version, value in values]


def _type_json(history: TypeHistory, since: int) -> Any:
    match history:
        case ScalarHistory(types):
            return _values_json(types, since, str)
        case ArrayHistory(element):
            return {"array": _type_json(element, since)}
        case MapHistory(key, value):
            return {"map": [_type_json(key, since), _type_json(value, since)]}
        case StructHistory(fields):
            return {"struct": [_field_json(field) for field in fields]}


def _field_history(found: dict[str, Any]) -> FieldHistory:
    since = found.get("since", 1)
    return FieldHistory(
        id=found["id"],
        names=_values(found["name"], since, str),
        type=_history(found["type"], since),
        since=since,
        dropped=found.get("dropped"),
        nullable_since=found.get("nullable_since", 1),
        comment=found.get("comment", ""),
    )


def _values(found: Any, since: int, value: Callable[[str], T]) -> ByVersion[T]:
    if isinstance(found, str):
        return ((since, value(found)),)
    return tuple((version, value(text)) for version, text in found)


def _history(found: Any, since: int) -> TypeHistory:
    match found:
        case {"array": element}:
            return ArrayHistory(_history(element, since))
        case {"map": [key, value]}:
            return MapHistory(_history(key, since), _history(value, since))
        case {"struct": [*fields]}:
            return StructHistory(tuple(_field_history(field) for field in fields))
    return ScalarHistory(_values(found, since, lambda text: scalar_of("", text)))
