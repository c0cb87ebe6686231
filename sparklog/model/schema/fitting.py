"""How the columns of a writer fit those of a typed topic.

Columns, and fields of structs, fit by their exact names. Types are equal or widen. What a writer lacks is
null, where null is allowed. Everything else is refused, with the names.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import DECIMAL, Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.paths import joined, quoted

INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
"""Names of integers, each wider than those before it."""
_WIDER: Final = {"float": ("double",), "date": ("timestamp_ntz",)} | {
    name: INTEGERS[nth + 1 :] for nth, name in enumerate(INTEGERS)
}
_NAMES_SHOWN_MAX: Final = 10
_NONE_RENAMED: Final[Mapping[str, str]] = MappingProxyType({})


def fit(
    given: Columns,
    topic: Columns,
    void: Sequence[str] = (),
    renamed: Mapping[str, str] = _NONE_RENAMED,
) -> Columns:
    """``given``, which a writer has, with the ids that its columns and fields have in ``topic``.

    ``void`` names the writer's columns of nulls alone; ``renamed`` has earlier names of the topic's columns,
    each with the present one. Raises SchemaError for columns that do not fit.
    """
    names = [*(column.name for column in given), *void]
    twice = [quoted(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise SchemaError(f"{_columns(twice)} there more than once; rename the others")
    theirs = {column.name: column for column in topic}
    _refuse_others("", names, theirs, renamed)
    missing = [
        quoted(column.name)
        for column in topic
        if not column.nullable and column.name not in {one.name for one in given}
    ]
    if missing:
        raise SchemaError(f"{_columns(missing)} NOT NULL in the topic, and not among those that are written")
    return tuple(_fitted("", column, theirs[column.name]) for column in given)


def _fitted(parent: str, given: Field, theirs: Field) -> Field:
    path = joined(parent, given.name)
    return Field(given.name, _fit_type(path, given.type, theirs.type), given.nullable, id=theirs.id)


def _fit_type(path: str, given: DataType, theirs: DataType) -> DataType:
    match given, theirs:
        case (Scalar(), Scalar()) if given == theirs or widens(given, theirs):
            return given
        case (Array(element), Array(of_topic)):
            return Array(_fit_type(joined(path, "element"), element, of_topic))
        case (Map(key, value), Map(topic_key, topic_value)):
            of_key = _fit_type(joined(path, "key"), key, topic_key)
            return Map(of_key, _fit_type(joined(path, "value"), value, topic_value))
        case (Struct(fields), Struct(topic_fields)):
            by_name = {field.name: field for field in topic_fields}
            _refuse_others(path, [field.name for field in fields], by_name)
            return Struct(tuple(_fitted(path, field, by_name[field.name]) for field in fields))
    raise SchemaError(
        f"column {path} is {type_text(given)} and {type_text(theirs)} in the topic: types are equal or "
        "widen; cast it"
    )


def widens(given: Scalar, theirs: Scalar) -> bool:
    """Whether every value of ``given`` is one of ``theirs``, which is another type."""
    if given.name == theirs.name == DECIMAL:
        before, after = given.precision - given.scale, given.scale
        return before <= theirs.precision - theirs.scale and after <= theirs.scale
    return theirs.name in _WIDER.get(given.name, ())


def _refuse_others(
    parent: str, names: Sequence[str], theirs: Collection[str], renamed: Mapping[str, str] = _NONE_RENAMED
) -> None:
    others = [_other(parent, name, theirs, renamed) for name in names if name not in theirs]
    if others:
        more = len(others) - _NAMES_SHOWN_MAX
        shown = [*others[:_NAMES_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]
        raise SchemaError(
            f"{_columns(shown)} not among the topic's, and names must be equal, also in case: rename or drop "
            f"{'it' if len(others) == 1 else 'them'}"
        )


def _other(parent: str, name: str, theirs: Collection[str], renamed: Mapping[str, str]) -> str:
    if name in renamed:
        return f"{joined(parent, name)} (renamed to {joined(parent, renamed[name])})"
    lower = {one.lower(): one for one in theirs}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    path = joined(parent, name)
    return f"{path} (near {joined(parent, lower[near[0]])})" if near else path


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
