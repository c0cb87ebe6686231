"""Whether a batch may have rows that a condition keeps, judged by its columns' bounds and counts of nulls.

In doubt it may: without bounds, and where values are cut. A reader never sees what it may not.
"""

from collections.abc import Mapping
from typing import Any

from sparklog.model.schema.predicates.literals import is_nan
from sparklog.model.schema.predicates.tree import All, Condition, Operator, Term, Value
from sparklog.records.arrow.column_bounds import Bounds, value_of_bound
from sparklog.records.arrow.header import ArrowHeader, ColumnEntry


def may_keep(condition: Condition, ours: ArrowHeader) -> bool:
    """Whether a row may be kept of the batch with this header, which is of the version of the condition's
    columns.
    """
    return _may(condition, {entry.column_id: entry for entry in ours.columns}, ours)


def _may(condition: Condition, entries: Mapping[int, ColumnEntry], ours: ArrowHeader) -> bool:
    if not isinstance(condition, Term):
        judge = all if isinstance(condition, All) else any
        return judge(_may(part, entries, ours) for part in condition.parts)
    entry = entries.get(condition.column.id)
    nulls = ours.row_count if entry is None else entry.null_count  # what is absent is null in all rows
    if condition.operator is Operator.NULL:
        return nulls > 0
    if condition.operator is Operator.NOT_NULL or nulls == ours.row_count:
        return nulls < ours.row_count
    return _compares(condition, ours.bounds.get(condition.column.id))


def _compares(term: Term, bounds: Bounds | None) -> bool:
    """Whether the term may be true of one of the values within these bounds, none of which is NaN."""
    if bounds is None:
        return True
    value = term.values[0]
    least = None if bounds.least is None else value_of_bound(bounds.least, value)
    greatest = None if bounds.greatest is None else value_of_bound(bounds.greatest, value)
    match term.operator:
        case Operator.EQUAL | Operator.IN:
            return any(_is_within(one, least, greatest) for one in term.values)
        case Operator.UNEQUAL | Operator.NOT_IN:
            return least is None or least != greatest or least not in term.values
        case Operator.LESS:
            return is_nan(value) or least is None or _below(least, value)
        case Operator.AT_MOST:
            return is_nan(value) or not _above(least, value)
        case Operator.GREATER:
            return not is_nan(value) and (greatest is None or _above(greatest, value))
        case Operator.AT_LEAST:
            return not is_nan(value) and not _below(greatest, value)
    return _begins(term.operator is Operator.BEGINS, value, least, greatest)


def _begins(is_wanted: bool, begin: Value, least: Value | None, greatest: Value | None) -> bool:
    """Whether a text may begin so, or otherwise. Texts of one beginning follow each other."""
    if not (isinstance(begin, bytes) and isinstance(least, bytes)):
        return True
    size = len(begin)
    if not isinstance(greatest, bytes):
        return not is_wanted or least[:size] <= begin
    if is_wanted:
        return least[:size] <= begin <= greatest
    return not (least[:size] == greatest[:size] == begin)


def _is_within(value: Value, least: Value | None, greatest: Value | None) -> bool:
    return not is_nan(value) and not _below(value, least) and not _above(value, greatest)


def _below(one: Any, other: Any) -> bool:
    """Whether both are known, and one is less. They are values of one type, or None; NaN is above all."""
    return one is not None and other is not None and bool(one < other)


def _above(one: Any, other: Any) -> bool:
    return _below(other, one)
