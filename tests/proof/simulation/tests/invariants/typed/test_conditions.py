"""Readers with a condition get the rows of which it is true: in simple words, and by the shipped filter."""

import random

import pyarrow as pa
import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.conditions import OFFSET, Comparison, ConditionRules, Wanted
from simulation.invariants.typed.values import expected
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.schema.data_types import Field, Scalar
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.row_filter import judged

A, B = Field("a", Scalar("int"), id=1), Field("b", Scalar("bigint"), id=2)
COLUMNS = (A, B)
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null")
NUMBERS = range(100, 130)


def drawn(draw):
    """One comparison or two, with values that rows have, nearly have, or do not have."""
    comparisons = []
    for _ in range(draw.choice((1, 2))):
        column, sign = draw.choice(COLUMNS), draw.choice(SIGNS)
        count = 0 if sign.startswith("is") else draw.randint(1, 3) if sign == "in" else 1
        values = (draw.choice(NUMBERS) * 100 + column.id + draw.choice((0, 1)) for _ in range(count))
        comparisons.append(Comparison(column, sign, tuple(values)))
    return Wanted(COLUMNS, tuple(comparisons), needs_all=draw.random() < 0.5)


def test_a_condition_in_simple_words_keeps_the_rows_that_the_shipped_filter_keeps():
    rows = [expected(COLUMNS, COLUMNS, number) for number in NUMBERS]
    arrays = {one.id: pa.array([row[one.name] for row in rows], arrow_type(one.type)) for one in COLUMNS}
    draw, counts = random.Random(4711), set()
    for _ in range(300):
        wanted = drawn(draw)
        kept = judged(parse_condition(wanted.condition, COLUMNS), arrays).to_pylist()
        found = [wanted.row(COLUMNS, number) for number in NUMBERS]
        assert found == [row if is_kept else None for row, is_kept in zip(rows, kept, strict=True)]
        counts.add(sum(map(bool, kept)))
    assert {0, 1} < counts
    assert max(counts) > len(rows) // 2


ABOVE = Wanted((A,), (Comparison(A, ">", (10_201,)),), needs_all=True)
"""Of the rows 100 to 104, the last two are wanted."""
ROWS = [{"a": 10_301, OFFSET: 3}, {"a": 10_401, OFFSET: 4}]


@pytest.fixture
def truth():
    made = PartitionTruth(TopicPartition("columns", 0), TopicId(int=1))
    made.committed += [Entry(0, 2, 0, 7, 0, 0, 1), Entry(2, 5, 0, 7, 0, 2, 2)]
    return made


@pytest.fixture
def rules():
    columns = ColumnRules(Marks())
    columns.written.update({(7, 0, 0): (COLUMNS, range(100, 102)), (7, 0, 2): (COLUMNS, range(102, 105))})
    return ConditionRules(columns, lambda truth, entry: entry.crc == 2)


def judge(rules, truth, rows, span=(0, 5), *, is_committed_only=False):
    rules.on_rows("a reader", truth, ABOVE, span, rows, is_committed_only=is_committed_only)


def test_a_reader_is_given_the_wanted_rows_of_its_span_and_none_that_is_aborted(rules, truth):
    judge(rules, truth, ROWS)
    judge(rules, truth, ROWS[1:], (4, 5))
    judge(rules, truth, [], (0, 2))
    judge(rules, truth, [], is_committed_only=True)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (ROWS[:1], "it is not given {'a': 10401, '_offset': 4}"),
        (ROWS[1:], "it is given {'a': 10401, '_offset': 4} where {'a': 10301, '_offset': 3} comes next"),
        ([*ROWS, ROWS[1]], "it is given {'a': 10401, '_offset': 4} as well"),
    ],
)
def test_a_row_that_is_missing_or_given_twice_breaks_a_rule(rules, truth, rows, what):
    with pytest.raises(Violation, match="ConditionsKeepTheirRows") as broken:
        judge(rules, truth, rows)
    assert broken.value.what == f"a reader wants a > 10201 of 0 to 4: {what}"


def test_a_reader_that_goes_on_after_what_is_committed_breaks_a_rule(rules, truth):
    with pytest.raises(Violation, match="goes on at 6, and 5 is committed"):
        judge(rules, truth, ROWS, (0, 6))


def test_who_is_refused_a_value_that_fits_has_found_a_fault(rules):
    with pytest.raises(Violation, match="RefusalsHaveAReason: a reader is refused what fits: too large"):
        rules.on_refusal("a reader", ABOVE, [(7, 0, 0)], "too large")
    narrow = Wanted((Field("b", Scalar("int"), id=2),), ABOVE.comparisons, needs_all=True)
    rules.on_refusal("a reader", narrow, [(7, 0, 0)], "too large")
