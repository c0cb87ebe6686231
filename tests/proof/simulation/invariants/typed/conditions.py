"""Rules of readers that want the rows alone of which a condition is true. Brokers may leave out others.

ConditionsKeepTheirRows     who goes on from one offset to another was given just the wanted rows in between,
                            in order, and what lies there is committed
ConditionsReadEverything    at rest a reader has all wanted rows of the log
RefusalsHaveAReason         a reader is refused rows only if its columns cannot hold one of the values

A condition is judged here in the simplest words, over values that follow from rows' numbers. After an
election that may lose, only what a reader has at rest is judged.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.values import DoesNotFitError, expected
from simulation.truth import Entry, PartitionTruth
from sparklog.model.schema.data_types import Columns, Field

Row = dict[str, Any]

OFFSET: Final = "_offset"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One term; ``sign`` as in its text. ``values``: none for *is null*, several for *in*."""

    column: Field
    sign: str
    values: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        listed = ", ".join(map(str, self.values))
        return f"{self.column.name} {self.sign} {f'({listed})' if self.sign == 'in' else listed}".strip()

    def is_true(self, value: int | None) -> bool:
        if value is None or not self.values:
            return (value is None) is (self.sign == "is null")
        match self.sign:
            case "=" | "in":
                return value in self.values
            case "!=":
                return value not in self.values
            case "<":
                return value < self.values[0]
            case "<=":
                return value <= self.values[0]
            case ">":
                return value > self.values[0]
        assert self.sign == ">=", self.sign
        return value >= self.values[0]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns that a reader wants, of rows of which one comparison, or each of them, is true."""

    columns: Columns
    comparisons: tuple[Comparison, ...]
    needs_all: bool

    @property
    def condition(self) -> str:
        return (" and " if self.needs_all else " or ").join(one.text for one in self.comparisons)

    @property
    def all_columns(self) -> Columns:
        return (*self.columns, *(one.column for one in self.comparisons))

    def row(self, written: Columns, number: int) -> Row | None:
        """The row with that number, as a version's columns have it; None if it is not wanted."""
        verdicts = (self._is_true(one, written, number) for one in self.comparisons)
        is_wanted = all(verdicts) if self.needs_all else any(verdicts)
        return expected(self.columns, written, number) if is_wanted else None

    @staticmethod
    def _is_true(comparison: Comparison, written: Columns, number: int) -> bool:
        (value,) = expected((comparison.column,), written, number).values()
        return comparison.is_true(value)


class ConditionRules:
    """``is_hidden``: whether a batch is in a transaction that its partition's markers do not commit."""

    def __init__(self, columns: ColumnRules, is_hidden: Callable[[PartitionTruth, Entry], bool]) -> None:
        self._columns = columns
        self._is_hidden = is_hidden

    def on_rows(
        self,
        who: str,
        truth: PartitionTruth,
        wanted: Wanted,
        span: tuple[int, int],
        rows: Sequence[Row],
        *,
        is_committed_only: bool,
    ) -> None:
        """A reader was given these rows of a span of offsets, and goes on after it."""
        if truth.lossy_epoch >= 0:
            return
        if span[1] > truth.committed_end:
            what = f"{who} goes on at {span[1]}, and {truth.committed_end} is committed"
            raise Violation("ConditionsKeepTheirRows", what)
        found = [*self.rows(truth, wanted, span, is_committed_only=is_committed_only)]
        if [*rows] != found:
            what = f"{who} wants {wanted.condition} of {span[0]} to {span[1] - 1}: {differing(rows, found)}"
            raise Violation("ConditionsKeepTheirRows", what)

    def rows(
        self, truth: PartitionTruth, wanted: Wanted, span: tuple[int, int], *, is_committed_only: bool
    ) -> Iterator[Row]:
        """The rows of committed batches that such a reader must be given."""
        start, end = span
        for entry in truth.committed[bisect_right(truth.committed, start, key=_next_offset) :]:
            if entry.base_offset >= end:
                return
            written = self._columns.written.get(entry.send)
            if written is None or (is_committed_only and self._is_hidden(truth, entry)):
                continue
            for offset, number in enumerate(written[1], entry.base_offset):
                row = wanted.row(written[0], number) if start <= offset < end else None
                if row is not None:
                    yield {**row, OFFSET: offset}

    def on_refusal(self, who: str, wanted: Wanted, batches: Iterable[tuple[int, int, int]], why: str) -> None:
        """A reader is told that its columns cannot hold what one of these batches has."""
        for send in batches:
            written = self._columns.written.get(send)
            for number in () if written is None else written[1]:
                try:
                    expected(wanted.all_columns, written[0] if written else (), number)
                except DoesNotFitError:
                    return
        raise Violation("RefusalsHaveAReason", f"{who} is refused what fits: {why}")


def differing(rows: Sequence[Row], wanted: Sequence[Row]) -> str:
    """In words, the first difference."""
    for row, one in zip(rows, wanted, strict=False):
        if row != one:
            return f"it is given {row} where {one} comes next"
    if len(rows) < len(wanted):
        return f"it is not given {wanted[len(rows)]}"
    return f"it is given {rows[len(wanted)]} as well"


def _next_offset(entry: Entry) -> int:
    return entry.next_offset
