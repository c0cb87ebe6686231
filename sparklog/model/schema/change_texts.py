"""What may be changed in the columns of a topic, as values and as texts.

    add x int COMMENT 'y'    drop s.x    rename a.element.x=y    widen m.value bigint    give up NOT NULL of x

``changed`` (``evolution``) says what each does, and what it refuses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import DataType, Field
from sparklog.model.schema.ddl_parser import parse_column
from sparklog.model.schema.ddl_text import field_text, type_text
from sparklog.model.schema.paths import Path, parse_path, path_text, quoted

TEXT_CHARACTERS_MAX: Final = 100_000
"""Longest text of one change."""
CHANGES_MAX: Final = 1_000
"""Most changes of one version."""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``parent``: the path of the struct that gets the field; empty for a column of the topic."""

    parent: Path
    field: Field


@dataclass(frozen=True, slots=True)
class DropColumn:
    path: Path


@dataclass(frozen=True, slots=True)
class RenameColumn:
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class WidenColumn:
    path: Path
    type: DataType


@dataclass(frozen=True, slots=True)
class DropNotNull:
    path: Path


SchemaChange = AddColumn | DropColumn | RenameColumn | WidenColumn | DropNotNull

ADD: Final = "add-column"
DROP: Final = "drop-column"
RENAME: Final = "rename-column"
WIDEN: Final = "widen-column"
DROP_NOT_NULL: Final = "drop-not-null"


def _add(text: str) -> SchemaChange:
    path, rest = parse_path(text)
    return AddColumn(path[:-1], _described(path, rest, "x int"))


def _drop(text: str) -> SchemaChange:
    return DropColumn(_whole_path(text))


def _rename(text: str) -> SchemaChange:
    path, rest = parse_path(text)
    separator, _, name = rest.lstrip().partition("=")
    if separator or "=" not in rest:
        raise SchemaError(f"{text[:100]!r}: write PATH=NAME, such as x=y or s.x=y")
    names, after = parse_path(name)
    if len(names) > 1 or after.strip():
        raise SchemaError(
            f"{text[:100]!r}: after = stands the new name alone, because a column stays where it is; a name "
            "that is no word stands in `backticks`"
        )
    return RenameColumn(path, names[0])


def _widen(text: str) -> SchemaChange:
    path, rest = parse_path(text)
    field = _described(path, rest, "x bigint")
    if not field.nullable or field.comment:
        raise SchemaError(f"column {path_text(path)}: NOT NULL and comments do not change; give a type alone")
    return WidenColumn(path, field.type)


def _drop_not_null(text: str) -> SchemaChange:
    return DropNotNull(_whole_path(text))


_PARSERS: Final[Mapping[str, Callable[[str], SchemaChange]]] = MappingProxyType(
    {ADD: _add, DROP: _drop, RENAME: _rename, WIDEN: _widen, DROP_NOT_NULL: _drop_not_null}
)
OPERATIONS: Final = tuple(_PARSERS)
"""The names of the changes, as on the command line; an operation's number on the wire is its place here."""


def parse_change(operation: str, text: str) -> SchemaChange:
    """The change ``operation`` of what ``text`` names: ``PATH TYPE``, ``PATH`` or ``PATH=NAME``.

    Raises SchemaError for text that is none, or an operation that there is not.
    """
    if operation not in _PARSERS:
        raise SchemaError(f"there is no change {operation!r}; there are {', '.join(OPERATIONS)}")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaError(
            f"{operation}: the text has {len(text):,} characters, at most {TEXT_CHARACTERS_MAX:,} are allowed"
        )
    return _PARSERS[operation](text)


def change_text(change: SchemaChange) -> tuple[str, str]:
    """The operation and text that ``parse_change`` reads."""
    match change:
        case AddColumn(parent, field):
            prefix = f"{path_text(parent)}." if parent else ""
            return ADD, prefix + field_text(field)
        case DropColumn(path):
            return DROP, path_text(path)
        case RenameColumn(path, name):
            return RENAME, f"{path_text(path)}={quoted(name)}"
        case WidenColumn(path, data_type):
            return WIDEN, f"{path_text(path)} {type_text(data_type)}"
        case DropNotNull(path):
            return DROP_NOT_NULL, path_text(path)


def _whole_path(text: str) -> Path:
    path, rest = parse_path(text)
    if rest.strip():
        raise SchemaError(f"{text[:100]!r}: {rest.strip()[:50]!r} follows the column; give the column alone")
    return path


def _described(path: Path, text: str, example: str) -> Field:
    if not text.strip():
        raise SchemaError(f"column {path_text(path)} lacks its type; write e.g. '{example}'")
    return parse_column(path_text(path), path[-1], text, depth=len(path))
