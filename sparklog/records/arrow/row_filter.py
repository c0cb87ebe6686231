"""Which rows a condition keeps: those of which it is true, judged by Arrow on whole columns."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.model.schema.data_types import DECIMAL, Field, Scalar
from sparklog.model.schema.predicates.literals import is_nan
from sparklog.model.schema.predicates.tree import All, Condition, Operator, Term, Value
from sparklog.records.arrow.arrow_types import arrow_type

_COMPARISONS: Final = {
    Operator.EQUAL: pc.equal,
    Operator.UNEQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.AT_MOST: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.AT_LEAST: pc.greater_equal,
}
_TRUE_OF_NAN: Final = (Operator.UNEQUAL, Operator.GREATER, Operator.AT_LEAST)
"""Comparisons of NaN with another number that are true."""


def judged(condition: Condition, columns: Mapping[int, Any]) -> Any:
    """True, false or null for each row. ``columns`` has arrays by ids, in the types that the terms name."""
    if isinstance(condition, Term):
        return _term(condition, columns[condition.column.id])
    parts = [judged(part, columns) for part in condition.parts]
    return reduce(pc.and_kleene if isinstance(condition, All) else pc.or_kleene, parts)


def _term(term: Term, column: Any) -> Any:
    operator, values = term.operator, term.values
    match operator:
        case Operator.NULL:
            return pc.is_null(column)
        case Operator.NOT_NULL:
            return pc.is_valid(column)
        case Operator.BEGINS:
            return pc.starts_with(column, _text(values[0]))
        case Operator.BEGINS_NOT:
            return pc.invert(pc.starts_with(column, _text(values[0])))
        case Operator.IN:
            return _among(term.column, column, values)
        case Operator.NOT_IN:
            return pc.invert(_among(term.column, column, values))
    if pa.types.is_floating(column.type):
        return _of_doubles(operator, column.cast(pa.float64()), values[0])
    if pa.types.is_boolean(column.type):
        return _COMPARISONS[operator](column.cast(pa.int8()), pa.scalar(values[0], pa.int8()))
    return _COMPARISONS[operator](column, _array(term.column, values)[0])


def _among(field: Field, column: Any, values: Sequence[Value]) -> Any:
    if pa.types.is_floating(column.type):
        doubles = column.cast(pa.float64())
        return reduce(pc.or_kleene, (_of_doubles(Operator.EQUAL, doubles, value) for value in values))
    found = pc.is_in(column, value_set=_array(field, values))
    return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))


def _of_doubles(operator: Operator, column: Any, value: Value) -> Any:
    """NaN equals NaN, and is greater than all others."""
    are_nan = pc.is_nan(column)
    if is_nan(value):
        match operator:
            case Operator.EQUAL | Operator.AT_LEAST:
                return are_nan
            case Operator.UNEQUAL | Operator.LESS:
                return pc.invert(are_nan)
        return pc.if_else(pc.is_valid(column), operator is Operator.AT_MOST, pa.scalar(None, pa.bool_()))
    found = _COMPARISONS[operator](column, pa.scalar(value, pa.float64()))
    return pc.or_kleene(found, are_nan) if operator in _TRUE_OF_NAN else found


def _array(field: Field, values: Sequence[Value]) -> pa.Array:
    """The values in the column's type; a condition has at most a thousand."""
    assert isinstance(field.type, Scalar), "conditions are on scalars"
    kind = arrow_type(field.type)
    if field.type.name == DECIMAL:
        digits = b"".join(int(value).to_bytes(16, "little", signed=True) for value in values)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(digits)])
    if field.type.name == "string":
        return pa.array([_text(value) for value in values], kind)
    if field.type.name == "boolean":
        return pa.array([bool(value) for value in values], kind)
    return pa.array(list(values), kind)


def _text(value: Value) -> str:
    assert isinstance(value, bytes), "texts are kept in UTF-8"
    return value.decode()
