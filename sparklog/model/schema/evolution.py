"""The next version of a topic's columns: what may change, and what is refused.

Safe for every reader and writer, also those that run: a column is added at the end and may be null, dropped,
renamed, or gives up NOT NULL. Safe for readers that start later: a type is widened. Ids are never used again,
so a name that comes back names a new column, and values of the old one do not come back with it.

What is refused: another type, NOT NULL, another order, the last column or field, the key or timestamp column
dropped, the key widened but among integers (its text decides the partition), and any change within the key of
a map (it decides what is equal).
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import (
    CHANGES_MAX,
    AddColumn,
    DropColumn,
    DropNotNull,
    RenameColumn,
    SchemaChange,
    WidenColumn,
)
from sparklog.model.schema.data_types import Field, Scalar
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.document import (
    ArrayHistory,
    ByVersion,
    FieldHistory,
    MapHistory,
    ScalarHistory,
    SchemaDocument,
    StructHistory,
    T,
    TypeHistory,
    type_at,
    type_history,
)
from sparklog.model.schema.fitting import INTEGERS, widens
from sparklog.model.schema.new_schema import check_columns
from sparklog.model.schema.paths import Path, joined, path_text, quoted
from sparklog.model.schema.schema_limits import DOCUMENT_BYTES_MAX

VERSION_MAX: Final = 2**31 - 1


def changed(document: SchemaDocument, changes: Iterable[SchemaChange]) -> SchemaDocument:
    """The document with one more version, in which all ``changes`` are made, one after the other.

    Raises SchemaError for the first that is refused, with the reason; nothing is changed then.
    """
    made = list(changes)
    if not 0 < len(made) <= CHANGES_MAX:
        raise SchemaError(f"{len(made)} changes: one version has 1 to {CHANGES_MAX:,}")
    if document.version >= VERSION_MAX:
        raise SchemaError(f"version {document.version} is the last that there can be; create another topic")
    evolution = _Evolution(document)
    for change in made:
        evolution.make(change)
    return evolution.outcome()


class _Evolution:
    """A version in the making. A column that it added, and dropped again, stays in the document."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._version = document.version + 1
        self._next_id = document.next_id
        self._root: TypeHistory = StructHistory(document.columns)

    def make(self, change: SchemaChange) -> None:
        match change:
            case AddColumn(parent, field):
                self._edit(parent, lambda history, path: self._added(history, path, field))
            case DropColumn(path):
                self._edit_field(path, self._dropped)
            case RenameColumn(path, name):
                self._edit_field(path, lambda field, _, at: self._renamed(field, at, name))
            case WidenColumn(path, data_type):
                is_key = len(path) == 1 and self._is(path, self._document.key)
                self._edit(path, lambda history, at: self._widened(history, at, data_type, is_key=is_key))
            case DropNotNull(path):
                self._edit_field(path, lambda field, _, at: self._nullable(field, at))

    def outcome(self) -> SchemaDocument:
        """Raises SchemaError if the columns cannot be together, or the document is full."""
        assert isinstance(self._root, StructHistory)
        document = replace(
            self._document, version=self._version, next_id=self._next_id, columns=self._root.fields
        )
        check_columns(document.at(self._version))
        size = len(document.encode())
        if size > DOCUMENT_BYTES_MAX:
            raise SchemaError(
                f"the schema with all its versions would take {size:,} bytes, at most {DOCUMENT_BYTES_MAX:,} "
                "are allowed: it is full; write to a new topic with the columns that are still needed"
            )
        return document

    # -- where a change is made

    def _edit(self, path: Path, edit: "_EditType") -> None:
        self._root = self._edited(self._root, path, "", edit)

    def _edit_field(self, path: Path, edit: "_EditField") -> None:
        """Change the field at ``path``, of a struct or of the topic."""

        def within(history: TypeHistory, parent: str) -> TypeHistory:
            if not isinstance(history, StructHistory):
                raise SchemaError(
                    f"{path_text(path)} is no column and no field of a struct: it can only be widened"
                )
            found = self._field(history, path[-1], parent)
            return _with(history, found, edit(found, history, joined(parent, path[-1])))

        _refuse_key(self._type_at(path[:-1]), path[-1], path_text(path))
        self._edit(path[:-1], within)

    def _edited(self, history: TypeHistory, inner: Path, parent: str, edit: "_EditType") -> TypeHistory:
        if not inner:
            return edit(history, parent)
        path, rest = joined(parent, inner[0]), inner[1:]
        _refuse_key(history, inner[0], path)
        match history:
            case StructHistory():
                found = self._field(history, inner[0], parent)
                return _with(history, found, replace(found, type=self._edited(found.type, rest, path, edit)))
            case ArrayHistory(element) if inner[0] == "element":
                return ArrayHistory(self._edited(element, rest, path, edit))
            case MapHistory(key, value) if inner[0] == "value":
                return MapHistory(key, self._edited(value, rest, path, edit))
        raise _nothing_there(history, path)

    def _type_at(self, path: Path) -> TypeHistory:
        found: list[TypeHistory] = []

        def note(history: TypeHistory, _: str) -> TypeHistory:
            found.append(history)
            return history

        self._edited(self._root, path, "", note)
        return found[0]

    def _field(self, struct: StructHistory, name: str, parent: str) -> FieldHistory:
        fields = {self._name(field): field for field in self._present(struct)}
        if name in fields:
            return fields[name]
        lower = {one.lower(): one for one in fields}
        near = difflib.get_close_matches(name.lower(), lower, n=1)
        remedy = f"did you mean {joined(parent, lower[near[0]])}?" if near else "look at its schema"
        raise SchemaError(f"the topic has no column {joined(parent, name)}; {remedy}")

    def _present(self, struct: StructHistory) -> list[FieldHistory]:
        return [field for field in struct.fields if field.is_in(self._version)]

    def _name(self, field: FieldHistory) -> str:
        return field.names[-1][1]

    def _is(self, path: Path, column: int | None) -> bool:
        assert isinstance(self._root, StructHistory)
        return any(one.id == column and self._name(one) == path[0] for one in self._present(self._root))

    # -- what a change does

    def _added(self, history: TypeHistory, parent: str, field: Field) -> TypeHistory:
        path = joined(parent, field.name)
        if not isinstance(history, StructHistory):
            raise SchemaError(f"column {path} cannot be added: {parent} is no struct")
        if not field.nullable:
            raise SchemaError(
                f"column {path} cannot be added as NOT NULL: it is null in the rows that there are; leave "
                "NOT NULL out"
            )
        taken = {self._name(one).lower(): self._name(one) for one in self._present(history)}
        if field.name.lower() in taken:
            raise SchemaError(
                f"column {path}: there is {quoted(taken[field.name.lower()])} already; case is no difference"
            )
        return StructHistory((*history.fields, self._new(field)))

    def _new(self, field: Field) -> FieldHistory:
        own_id, self._next_id = self._next_id, self._next_id + 1
        return FieldHistory(
            id=own_id,
            names=((self._version, field.name),),
            type=type_history(field.type, self._version, self._new),
            since=self._version,
            comment=field.comment,
        )

    def _dropped(self, field: FieldHistory, struct: StructHistory, path: str) -> FieldHistory:
        for role, column in (("key", self._document.key), ("timestamp", self._document.timestamp)):
            if field.id == column:
                raise SchemaError(f"column {path} cannot be dropped: it is the topic's {role} column")
        if len(self._present(struct)) == 1:
            what = "field of its struct" if "." in path else "column"
            raise SchemaError(f"column {path} cannot be dropped: it is the last {what}; add another before")
        return replace(field, dropped=self._version)

    def _renamed(self, field: FieldHistory, path: str, name: str) -> FieldHistory:
        if name == self._name(field):
            raise SchemaError(f"column {path} has that name already")
        return replace(field, names=self._since_now(field.names, name))

    def _widened(self, history: TypeHistory, path: str, data_type: object, *, is_key: bool) -> TypeHistory:
        if not isinstance(history, ScalarHistory) or not isinstance(data_type, Scalar):
            raise SchemaError(
                f"column {path} is {type_text(type_at(history, self._version))}: types that have a single "
                "value are widened, and within others a field, a.element or m.value"
            )
        now = history.types[-1][1]
        if now == data_type:
            raise SchemaError(f"column {path} is {now} already; leave this change out")
        if not all(widens(earlier, data_type) for _, earlier in history.types):
            raise SchemaError(
                f"column {path} is {now}, and cannot be {data_type}: integers widen upwards, float to "
                "double, decimals to no fewer digits before and after the point, date to timestamp_ntz; add "
                "another column instead"
            )
        if is_key and not (now.name in INTEGERS and data_type.name in INTEGERS):
            raise SchemaError(
                f"column {path} is {now}, and cannot be {data_type}, because it is the key: rows of an equal "
                "key would go to another partition"
            )
        return ScalarHistory(self._since_now(history.types, data_type))

    def _nullable(self, field: FieldHistory, path: str) -> FieldHistory:
        if field.nullable_since is not None:
            raise SchemaError(f"column {path} may be null already")
        return replace(field, nullable_since=self._version)

    def _since_now(self, values: ByVersion[T], value: T) -> ByVersion[T]:
        """``values`` and the one that begins with this version."""
        return (*(one for one in values if one[0] < self._version), (self._version, value))


_EditType = Callable[[TypeHistory, str], TypeHistory]
"""Changes a type; the text is its path."""
_EditField = Callable[[FieldHistory, StructHistory, str], FieldHistory]
"""Changes a field of that struct; the text is its path."""


def _with(struct: StructHistory, old: FieldHistory, new: FieldHistory) -> StructHistory:
    return StructHistory(tuple(new if field is old else field for field in struct.fields))


def _refuse_key(parent: TypeHistory, name: str, path: str) -> None:
    if isinstance(parent, MapHistory) and name == "key":
        raise SchemaError(f"{path}: the key of a map does not change; add another column")


def _nothing_there(history: TypeHistory, path: str) -> SchemaError:
    match history:
        case ArrayHistory():
            words = "an array has element"
        case MapHistory():
            words = "a map has key and value"
        case _:
            words = "a column with a single value has nothing in it"
    return SchemaError(f"the topic has no column {path}: {words}")
