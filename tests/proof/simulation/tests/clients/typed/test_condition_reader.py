"""What a reader with a condition has to have when all is healed."""

from types import SimpleNamespace

import pytest

from simulation.clients.typed.condition_reader import ConditionReader
from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.conditions import OFFSET, Comparison, ConditionRules, Wanted
from simulation.marks import Marks
from simulation.recorder import Recorder
from simulation.schedule import Schedule
from simulation.truth import Entry, PartitionTruth
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.kafka_numbers import READ_COMMITTED
from sparklog.model.schema.data_types import Field, Scalar

A = Field("a", Scalar("int"), id=1)
TP = TopicPartition("columns", 0)
ROWS = [{"a": 10_101, OFFSET: 1}, {"a": 10_201, OFFSET: 2}]


@pytest.fixture
def truth():
    made = PartitionTruth(TP, TopicId(int=1))
    made.committed.append(Entry(0, 3, 0, 7, 0, 0, 1))
    return made


@pytest.fixture
def reader():
    """It has read all three rows, and wants the last two."""
    schedule, columns = Schedule(), ColumnRules(Marks())
    columns.written[7, 0, 0] = (A,), range(100, 103)
    transactions = SimpleNamespace(is_judged=lambda where: True)
    witness = SimpleNamespace(transactions=transactions, is_silent=False)
    place = SimpleNamespace(
        schedule=schedule, seed=1, hosts=("broker-1",), witness=witness, recorder=Recorder(schedule)
    )
    rules = ConditionRules(columns, lambda truth, entry: False)
    made = ConditionReader(
        place, "reader", TP, columns, rules, replan_every_ms=1_000.0, isolation_level=READ_COMMITTED
    )
    made._wanted = Wanted((A,), (Comparison(A, ">", (10_001,)),), needs_all=True)
    made.rows, made.offset = [*ROWS], 3
    return made


def test_who_has_all_wanted_rows_is_at_rest(reader, truth):
    assert reader.unrest(truth) is None


def test_who_has_not_come_to_the_end_is_not(reader, truth):
    reader.offset = 2
    assert reader.unrest(truth) == "reader has read up to 2 of 3"


@pytest.mark.parametrize("rows", [ROWS[:1], [*ROWS, ROWS[1]], [{"a": 10_001, OFFSET: 0}, *ROWS]])
def test_who_lacks_a_row_or_has_one_too_many_shows_a_violation(reader, truth, rows):
    reader.rows = rows
    with pytest.raises(Violation, match="ConditionsReadEverything: reader wants a > 10001 of all rows"):
        reader.unrest(truth)


def test_after_a_loss_it_reads_again_and_has_to_have_them_then(reader, truth):
    reader.rows, truth.lossy_epoch = ROWS[:1], 4
    assert reader.unrest(truth) == "reader may have read what an election lost, and reads again"
    assert reader.unrest(truth) == "reader has read up to 0 of 3"
    reader.offset = 3
    with pytest.raises(Violation, match="ConditionsReadEverything"):
        reader.unrest(truth)


def test_what_coordinators_have_lost_says_nothing_of_what_is_committed(reader, truth):
    reader.rows = []
    reader._place.witness.transactions.is_judged = lambda where: False
    assert reader.unrest(truth) is None
