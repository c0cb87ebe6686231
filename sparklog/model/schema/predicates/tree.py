"""Conditions on rows as a tree of terms, each of which compares a column with literals of its type.

Logic has three values: a term with a null is neither true nor false, but for ``is null`` and ``is not null``,
and rows count of which the whole is true. There is no *not* in the tree: each operator has its opposite, so
that ``not (a > 1 or b is null)`` is ``a <= 1 and b is not null``.

Values have an order in each type: numbers, days and times by size, -0.0 equals 0.0, NaN equals NaN and is
greater than all other numbers; text and bytes in order of bytes; false before true.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from sparklog.model.schema.data_types import Field

Value = int | float | bytes
"""A literal in its column's type: a decimal by its digits without the point, a boolean as 0 or 1, days and
microseconds since 1970, text in UTF-8."""


class Operator(Enum):
    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    IN = "in"
    NOT_IN = "not in"
    BEGINS = "like"
    """With these bytes."""
    BEGINS_NOT = "not like"
    NULL = "is null"
    NOT_NULL = "is not null"

    @property
    def opposite(self) -> "Operator":
        """True where this one is false, and neither where it is neither."""
        return _OPPOSITE[self]

    @property
    def mirrored(self) -> "Operator":
        """The same comparison with its sides exchanged."""
        return _MIRRORED.get(self, self)


_PAIRS = (
    (Operator.EQUAL, Operator.UNEQUAL),
    (Operator.LESS, Operator.AT_LEAST),
    (Operator.GREATER, Operator.AT_MOST),
    (Operator.IN, Operator.NOT_IN),
    (Operator.BEGINS, Operator.BEGINS_NOT),
    (Operator.NULL, Operator.NOT_NULL),
)
_OPPOSITE = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_MIRRORED = {
    Operator.LESS: Operator.GREATER,
    Operator.GREATER: Operator.LESS,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.AT_LEAST: Operator.AT_MOST,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A column, with the id that it has in the topic, and the values that it is compared with: one, for *in*
    at least one, for *is null* none.
    """

    column: Field
    operator: Operator
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class All:
    """True if all parts are; at least two."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """True if one part is; at least two."""

    parts: "tuple[Condition, ...]"


Condition = Term | All | Either


def terms_of(condition: Condition) -> Iterator[Term]:
    """Its terms, from left to right."""
    if isinstance(condition, Term):
        yield condition
    else:
        for part in condition.parts:
            yield from terms_of(part)


def columns_of(condition: Condition) -> tuple[Field, ...]:
    """The columns that its terms name, each once."""
    return tuple({term.column.id: term.column for term in terms_of(condition)}.values())
