"""The rows of a typed topic: each value follows from the row's number and the id of its column.

A reader can therefore tell what each column must hold by ids alone, whatever the columns were called when the
row was written.
"""

from typing import Any, Final

import pyarrow as pa

from sparklog.model.schema.data_types import Columns, DataType, Field, Scalar, Struct
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.topic_columns import VersionColumns
from sparklog.records.arrow.typed_payload import typed_batch

BIGINT: Final = Scalar("bigint")
_LARGE: Final = 2**40
_INT_MAX: Final = 2**31 - 1


class DoesNotFitError(Exception):
    """A value that the reader's narrower type cannot hold."""


def batch_of(columns: VersionColumns, numbers: range, now_ms: int) -> bytes:
    """A batch of the rows with these numbers."""
    present = {
        field.id: pa.array([_given(field, number) for number in numbers], arrow_type(field.type))
        for field in columns.columns
    }
    return typed_batch(present, len(numbers), columns, now_ms=now_ms)


def expected(wanted: Columns, written: Columns, number: int) -> dict[str, Any]:
    """The row ``number``, written with one version's columns, as who wants those of another has it."""
    by_id = {field.id: field for field in written}
    return {field.name: _expected(field, by_id.get(field.id), number) for field in wanted}


def _expected(wanted: Field, written: Field | None, number: int) -> Any:
    if written is None:
        return None
    if isinstance(wanted.type, Struct) and isinstance(written.type, Struct):
        return expected(wanted.type.fields, written.type.fields, number)
    value = _value(written.id, written.type, number)
    if value is not None and wanted.type != BIGINT and value > _INT_MAX:
        raise DoesNotFitError(wanted.name)
    return value


def _given(field: Field, number: int) -> Any:
    if isinstance(field.type, Struct):
        return {one.name: _given(one, number) for one in field.type.fields}
    return _value(field.id, field.type, number)


def filled(column: Field, number: int) -> int:
    """What the row has in that column, if that is not null there."""
    return _filled(column.id, column.type, number)


def _value(field_id: int, data_type: DataType, number: int) -> int | None:
    return None if (number + field_id) % 9 == 0 else _filled(field_id, data_type, number)


def _filled(field_id: int, data_type: DataType, number: int) -> int:
    value = number * 100 + field_id
    return value + _LARGE if data_type == BIGINT and number % 5 == 0 else value
