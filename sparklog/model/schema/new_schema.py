"""The schema of a new topic: checked, and with an id for each column and each field of a struct."""

import difflib
from collections.abc import Iterator
from itertools import count
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import (
    NO_ID,
    Array,
    Columns,
    DataType,
    Field,
    Map,
    Scalar,
    Struct,
    all_fields,
    parts_of,
)
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.document import FieldHistory, SchemaDocument, TypeHistory, type_history
from sparklog.model.schema.notation import without_inner_not_null
from sparklog.model.schema.paths import joined, quoted
from sparklog.model.schema.schema_limits import CREATED_BYTES_MAX, FIELDS_MAX

RESERVED: Final = ("_topic", "_partition", "_offset", "_timestamp")
"""Names of the columns that a read may append."""
NAME_CHARACTERS_MAX: Final = 255
FIRST_VERSION: Final = 1


def new_schema(columns: Columns, key: str = "", timestamp: str = "") -> SchemaDocument:
    """The first version of a topic's schema. ``key`` and ``timestamp`` name columns, or are empty.

    NOT NULL counts for columns alone. Raises SchemaError with the reason why a topic cannot have it.
    """
    loose, _ = without_inner_not_null(columns)
    check_columns(loose)
    ids = count(NO_ID + 1)
    histories = tuple(_history(column, ids) for column in loose)
    document = SchemaDocument(
        version=FIRST_VERSION,
        next_id=next(ids),
        key=_key(loose, histories, key),
        timestamp=_timestamp(loose, histories, timestamp),
        columns=histories,
    )
    size = len(document.encode())
    if size > CREATED_BYTES_MAX:
        raise SchemaError(
            f"the schema takes {size:,} bytes, at most {CREATED_BYTES_MAX:,} are allowed for a new topic; "
            "use fewer columns, or shorter names and comments"
        )
    return document


def _history(field: Field, ids: Iterator[int]) -> FieldHistory:
    own_id = next(ids)
    return FieldHistory(
        id=own_id,
        names=((FIRST_VERSION, field.name),),
        type=_type_history(field.type, ids),
        nullable_since=FIRST_VERSION if field.nullable else None,
        comment=field.comment,
    )


def _type_history(data_type: DataType, ids: Iterator[int]) -> TypeHistory:
    return type_history(data_type, FIRST_VERSION, lambda field: _history(field, ids))


def check_columns(columns: Columns) -> None:
    """Raises SchemaError if a topic cannot have these columns together."""
    number = sum(1 for _ in all_fields(columns))
    if number > FIELDS_MAX:
        raise SchemaError(
            f"the schema has {number:,} columns and fields, at most {FIELDS_MAX:,} are allowed; use fewer"
        )
    _check_fields("", columns)
    for column in columns:
        if column.name.lower() in RESERVED:
            raise SchemaError(
                f"column {quoted(column.name)}: the name is reserved for what a read may append "
                f"({', '.join(RESERVED)}); choose another"
            )


def _check_fields(parent: str, fields: Columns) -> None:
    if not fields:
        where = f"column {parent}: the struct has no fields" if parent else "the schema has no columns"
        raise SchemaError(f"{where}; name at least one")
    seen: dict[str, str] = {}
    for field in fields:
        path = joined(parent, field.name)
        _check_texts(path, field)
        lower = field.name.lower()
        if lower in seen:
            raise SchemaError(
                f"column {path}: there is {quoted(seen[lower])} already; case makes no other name"
            )
        seen[lower] = field.name
        _check_type(path, field.type)


def _check_texts(path: str, field: Field) -> None:
    if not 0 < len(field.name) <= NAME_CHARACTERS_MAX:
        raise SchemaError(
            f"column {path[:100]}: the name has {len(field.name)} characters; use 1 to {NAME_CHARACTERS_MAX}"
        )
    try:
        f"{field.name}{field.comment}".encode()
    except UnicodeEncodeError:
        raise SchemaError(
            f"column {path!a}: name or comment has half a surrogate pair; use Unicode text"
        ) from None


def _check_type(path: str, data_type: DataType) -> None:
    if isinstance(data_type, Struct):
        _check_fields(path, data_type.fields)
        return
    if isinstance(data_type, Map) and _has_map(data_type.key):
        raise SchemaError(f"column {path}: the key of a map has no map in it; use an array of structs")
    for name, part in parts_of(data_type):
        _check_type(joined(path, name), part)


def _has_map(data_type: DataType) -> bool:
    return isinstance(data_type, Map) or any(_has_map(part) for _, part in parts_of(data_type))


def _key(columns: Columns, histories: tuple[FieldHistory, ...], name: str) -> int | None:
    if not name:
        return None
    number = _position(columns, name, "key")
    if not isinstance(columns[number].type, Scalar):
        kind = "an array" if isinstance(columns[number].type, Array) else "a map or struct"
        raise SchemaError(f"key column {quoted(name)} is {kind}; choose a column with a single value")
    return histories[number].id


def _timestamp(columns: Columns, histories: tuple[FieldHistory, ...], name: str) -> int | None:
    if not name:
        return None
    number = _position(columns, name, "timestamp")
    if columns[number].type != Scalar("timestamp"):
        of_type = type_text(columns[number].type)
        raise SchemaError(
            f"timestamp column {quoted(name)} is of type {of_type}; choose one of type timestamp"
        )
    return histories[number].id


def _position(columns: Columns, name: str, role: str) -> int:
    names = [column.name for column in columns]
    if name in names:
        return names.index(name)
    alike = [one for one in names if one.lower() == name.lower()]
    near = alike or difflib.get_close_matches(name, names, n=1)
    remedy = f"did you mean {quoted(near[0])}?" if near else "choose one of the schema's columns"
    raise SchemaError(f"{role} column {quoted(name)} is not in the schema; {remedy}")
