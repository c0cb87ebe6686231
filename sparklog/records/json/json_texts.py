"""The JSON texts of typed columns, made by Arrow's compute functions without an object for a row.

    {"id":7,"at":"2024-02-29T12:00:00.000000Z","tags":["a",null],"by":{"x":1}}

It is what Spark's ``from_json`` reads back with the topic's columns: fields that are null are left out,
elements and values of maps are ``null``, binary is base64 in a string, NaN and infinities are strings, and a
timestamp has a zone, which a timestamp_ntz has not. Keys of maps are strings, as JSON has no others; those
that are not text are the text of their JSON.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.model.schema.data_types import Array, Columns, DataType, Map, Scalar, Struct
from sparklog.records.arrow.scalar_text import float_texts, joined, scalar_texts, time_texts
from sparklog.records.bridge import booleans, nulls_of, repeated_text, text_scalar, value_lengths
from sparklog.records.json.base64_text import base64_texts
from sparklog.records.json.string_text import escaped

_NULL: Final = "null"


@dataclass(frozen=True, slots=True)
class Texts:
    """A text for each row, between two that all have; null where the row is."""

    before: str
    rows: Any
    after: str

    def whole(self) -> Any:
        """A string array."""
        return joined(self.before, self.rows, self.after) if self.before or self.after else self.rows


def object_texts(columns: Columns, arrays: Sequence[Any], row_count: int) -> Any:
    """An object for each row: a string array."""
    return _object(columns, arrays, row_count).whole()


def texts_of(column: Any, data_type: DataType) -> Texts:
    """The texts of an array of ``arrow_type(data_type)``."""
    match data_type:
        case Scalar(name):
            return _scalar(column, name)
        case Array(element):
            return _list(column, element)
        case Map():
            return _map(column, data_type)
        case Struct(fields):
            children = [column.field(nth) for nth in range(len(fields))]
            found = _object(fields, children, len(column))
            return Texts(found.before, _null_where(column, found.rows), found.after)


def _scalar(column: Any, name: str) -> Texts:
    match name:
        case "string":
            return Texts('"', escaped(column), '"')
        case "binary":
            return Texts('"', base64_texts(column), '"')
        case "timestamp":
            return Texts('"', time_texts(column), 'Z"')
        case "date" | "timestamp_ntz":
            return Texts('"', scalar_texts(column), '"')
        case "float" | "double":
            return Texts("", float_texts(column, quote='"'), "")
    return Texts("", scalar_texts(column), "")


def _object(fields: Columns, arrays: Sequence[Any], row_count: int) -> Texts:
    """Fields that have no null are joined in one pass, with the others as they are then: with a comma, or
    empty. That needs one field without nulls, or it is unknown which comes first.
    """
    named = [
        (f"{quoted(field.name)}:{texts.before}", texts.rows, texts.after)
        for field, array in zip(fields, arrays, strict=True)
        if array.null_count < row_count
        for texts in [texts_of(array, field.type)]
    ]
    if not named:
        return Texts("{", repeated_text("", row_count), "}")
    whole = [nth for nth, (_, rows, _) in enumerate(named) if rows.null_count == 0]
    if not whole:
        return Texts("{", _joined_if_present([joined(*piece) for piece in named]), "}")
    after = ""
    joins: list[Any] = []
    for nth, (name, rows, end) in enumerate(named):
        comma_before, comma_after = ("," if nth > whole[0] else ""), ("," if nth < whole[0] else "")
        if rows.null_count:
            optional = joined(comma_before + name, rows, end + comma_after)
            joins += [*([after] if after else []), pc.fill_null(optional, text_scalar(""))]
            after = ""
        else:
            joins += [after + comma_before + name, rows]
            after = end + comma_after
    return Texts("{", joined(*joins), after + "}")


def _joined_if_present(pieces: Sequence[Any]) -> Any:
    """The pieces of each row that are not null, with commas between them; empty if all are.

    Arrow 26 leaves out rows of which all pieces are null.
    """
    are_empty = np.logical_and.reduce([nulls_of(piece) for piece in pieces])
    first = pc.if_else(booleans(are_empty), text_scalar(""), pieces[0]) if are_empty.any() else pieces[0]
    return pc.binary_join_element_wise(first, *pieces[1:], text_scalar(","), null_handling="skip")


def _list(column: Any, element: DataType) -> Texts:
    return _joined(column, "[", _or_null(texts_of(column.flatten(), element)), "]")


def _map(column: Any, data_type: Map) -> Texts:
    keys, values = (_elements(column, of_all) for of_all in (column.keys, column.items))
    pairs = joined(_key_texts(keys, data_type.key), ":", _or_null(texts_of(values, data_type.value)))
    return _joined(column, "{", pairs, "}")


def _elements(column: Any, of_all: Any) -> Any:
    """What the rows' maps have of ``of_all``, the keys or the values of all that Arrow holds."""
    kind, buffers = pa.list_(of_all.type), column.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(column), buffers, column.null_count, column.offset, [of_all]
    ).flatten()


def _key_texts(keys: Any, data_type: DataType) -> Any:
    texts = texts_of(keys, data_type)
    if isinstance(data_type, Scalar):
        return texts.whole() if texts.before else joined('"', scalar_texts(keys), '"')
    return joined('"', escaped(texts.whole()), '"')


def _or_null(texts: Texts) -> Any:
    found = texts.whole()
    return pc.fill_null(found, text_scalar(_NULL)) if found.null_count else found


def _joined(column: Any, before: str, elements: Any, after: str) -> Texts:
    """The elements of each row's list, or of its map, with commas between them."""
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(value_lengths(column), out=offsets[1:])
    validity = booleans(~nulls_of(column)).buffers()[1] if column.null_count else None
    lists = pa.Array.from_buffers(
        pa.list_(pa.string()), len(column), [validity, pa.py_buffer(offsets)], children=[elements]
    )
    return Texts(before, pc.binary_join(lists, text_scalar(",")), after)


def _null_where(column: Any, texts: Any) -> Any:
    """``texts``, null where ``column`` is."""
    if not column.null_count:
        return texts
    return pc.if_else(booleans(~nulls_of(column)), texts, pa.nulls(len(column), pa.string()))


def quoted(text: str) -> str:
    """A name as JSON."""
    return json.dumps(text, ensure_ascii=False)
