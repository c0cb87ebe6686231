"""How large the JSON of rows may be at most, before memory is taken for it.

A batch of a megabyte may become hundreds of them: compression is undone, names are written for each row, and
a control character takes six bytes.
"""

from collections.abc import Sequence
from typing import Any, Final

from sparklog.model.schema.data_types import Array, Columns, DataType, Map, Scalar, Struct
from sparklog.records.bridge import extent_of
from sparklog.records.json.string_text import added_by_escapes, string_bytes

_SCALAR_BYTES_MAX: Final = {
    "boolean": 5,
    "tinyint": 4,
    "smallint": 6,
    "int": 11,
    "bigint": 20,
    "float": 16,
    "double": 26,
    "decimal": 48,
    "date": 16,
    "timestamp": 32,
    "timestamp_ntz": 32,
}
_AROUND: Final = 4
"""Quotes or brackets, a comma, a colon; ``null`` has as many."""
_NAME_FACTOR: Final = 6


def json_bytes_max(columns: Columns, arrays: Sequence[Any], row_count: int) -> int:
    """At most so many bytes are the objects of these rows together."""
    names = sum(_NAME_FACTOR * len(column.name.encode()) + _AROUND for column in columns)
    values = sum(_bytes_max(array, column.type) for column, array in zip(columns, arrays, strict=True))
    return (names + _AROUND) * row_count + values


def _bytes_max(column: Any, data_type: DataType) -> int:
    count = len(column)
    if column.null_count == count:
        return _AROUND * count
    match data_type:
        case Scalar("string"):
            data = string_bytes(column)
            return _AROUND * count + len(data) + added_by_escapes(data)
        case Scalar("binary"):
            return 2 * _AROUND * count + len(string_bytes(column)) * 4 // 3
        case Scalar(name):
            return (_AROUND + _SCALAR_BYTES_MAX[name]) * count
        case Array(element):
            return _AROUND * count + _bytes_max(_within(column, column.values), element)
        case Map(key, value):
            return (
                _AROUND * count
                + 2 * _bytes_max(_within(column, column.keys), key)
                + _bytes_max(_within(column, column.items), value)
            )
        case Struct(fields):
            return json_bytes_max(fields, [column.field(nth) for nth in range(len(fields))], count)


def _within(column: Any, of_all: Any) -> Any:
    """What the rows' lists or maps have of the elements, keys or values that Arrow holds."""
    first, end = extent_of(column)
    return of_all.slice(first, end - first)
