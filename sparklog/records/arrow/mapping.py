"""Columns of one version of a topic's schema, or of a writer, as those of another version.

Ids say which columns and fields are the same, whatever their names. What the source lacks is null, what the
target does not know is left out. Where types are equal no data are copied, also if names or Spark's flags of
nullability differ within them. A value that the target's type cannot hold is an error, never cut.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.paths import quoted
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.bridge import booleans, nulls_of


def mapped_columns(
    present: Mapping[int, Any], source: Columns, target: Columns, row_count: int
) -> list[pa.Array]:
    """The columns ``target`` in their order, from the arrays ``present``, by id, of the types in ``source``.

    SchemaError for a value that a type of ``target`` cannot hold.
    """
    types = {field.id: field for field in source}
    return [
        pa.nulls(row_count, arrow_type(field.type))
        if field.id not in present
        else _column(present[field.id], types[field.id], field)
        for field in target
    ]


def _column(column: Any, source: Field, target: Field) -> Any:
    try:
        return mapped(column, source.type, target.type)
    except _DoesNotFit as lost:
        within = "" if isinstance(target.type, Scalar) else f", within {type_text(target.type)}"
        raise SchemaError(
            f"column {quoted(target.name)} has the value {lost.value}, which {lost.type_name} cannot "
            f"hold{within}"
        ) from None


class _DoesNotFit(Exception):  # noqa: N818 (caught here, and reported with the column)
    """A value, as text, that a scalar type cannot hold."""

    def __init__(self, value: str, type_name: str) -> None:
        super().__init__(value, type_name)
        self.value = value
        self.type_name = type_name


def mapped(column: Any, source: DataType, target: DataType) -> Any:
    """An array of ``source``, in any of Arrow's forms of it, as one of ``arrow_type(target)``."""
    match source, target:
        case (Array(element), Array(of_target)):
            return _list(column, element, of_target, arrow_type(target))
        case (Map(), Map()):
            return _map(column, source, target)
        case (Struct(fields), Struct(of_target)):
            return _struct(column, fields, of_target, arrow_type(target))
    kind = arrow_type(target)
    try:
        return _scalar(column, kind)
    except pa.ArrowInvalid:
        raise _DoesNotFit(_first_that_does_not_fit(column, kind), type_text(target)) from None


def _first_that_does_not_fit(column: Any, kind: pa.DataType) -> str:
    """The value, as text: the rows are halved until there is one."""
    while len(column) > 1:
        first = column.slice(0, len(column) // 2)
        try:
            _scalar(first, kind)
            column = column.slice(len(first))
        except pa.ArrowInvalid:
            column = first
    return str(column[0])


def _scalar(column: Any, kind: pa.DataType) -> Any:
    own = column.type
    if own == kind:
        return column
    are_instants = pa.types.is_timestamp(own) and pa.types.is_timestamp(kind)
    if are_instants and own.unit == kind.unit:
        return column.view(kind)  # another zone of the same instants
    found = column.cast(kind)
    if _is_cut_in_silence(own, kind) and not found.cast(own).equals(column):
        back = pc.fill_null(pc.equal(found.cast(own), column), fill_value=True)
        is_lost = pc.invert(pc.or_(back, pc.is_nan(column))) if pa.types.is_floating(own) else pc.invert(back)
        if pc.any(is_lost).as_py():
            raise pa.ArrowInvalid(f"a value is no {kind}")
    return found


def _is_cut_in_silence(own: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow's cast takes what the narrower type cannot hold, and changes it."""
    if pa.types.is_floating(own) and pa.types.is_floating(kind):
        return bool(own.bit_width > kind.bit_width)
    return bool(pa.types.is_timestamp(own) and pa.types.is_date(kind))


def _list(column: Any, source: DataType, target: DataType, kind: pa.DataType) -> Any:
    if pa.types.is_large_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    values = column.values
    found = mapped(values, source, target)
    if found is values and column.type == kind:
        return column
    return pa.Array.from_buffers(
        kind, len(column), column.buffers()[:2], column.null_count, column.offset, [found]
    )


def _map(column: Any, source: Map, target: Map) -> Any:
    keys, items = column.keys, column.items
    of_key, of_value = mapped(keys, source.key, target.key), mapped(items, source.value, target.value)
    kind = arrow_type(target)
    if of_key is keys and of_value is items and column.type == kind:
        return column
    entries = pa.Array.from_buffers(
        pa.struct([kind.key_field, kind.item_field]), len(keys), [None], 0, 0, [of_key, of_value]
    )
    return pa.Array.from_buffers(
        kind, len(column), column.buffers()[:2], column.null_count, column.offset, [entries]
    )


def _struct(column: Any, source: tuple[Field, ...], target: tuple[Field, ...], kind: pa.DataType) -> Any:
    own = {field.id: (nth, field) for nth, field in enumerate(source)}
    children = []
    for field in target:
        if field.id in own:
            nth, theirs = own[field.id]
            children.append(mapped(column.field(nth), theirs.type, field.type))
        else:
            children.append(pa.nulls(len(column), arrow_type(field.type)))
    return pa.Array.from_buffers(kind, len(column), [_validity(column)], column.null_count, children=children)


def _validity(column: Any) -> pa.Buffer | None:
    """The bitmap of what is not null, from the first row on: children are cut to the rows already."""
    if column.null_count == 0:
        return None
    return column.buffers()[0] if column.offset == 0 else booleans(~nulls_of(column)).buffers()[1]
