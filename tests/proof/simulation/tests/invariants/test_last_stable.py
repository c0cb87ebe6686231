"""The rule of last stable offsets knows which logs say where each of their transactions began."""

import uuid
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.transaction_replay import LastStableIsAsTheLogSays
from simulation.truth import Entry, PartitionTruth, TransactionPart
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd

PRODUCER = 7
RECORDS = TransactionPart(is_control=False, has_records=True, end=None)
COMMIT = TransactionPart(is_control=True, has_records=True, end=TransactionEnd(True, 0))


def batch(offset: int, next_offset: int) -> Entry:
    return Entry(offset, next_offset, 0, PRODUCER, 0, 0, 0)


TRANSACTION = [(batch(0, 2), RECORDS), (batch(2, 3), RECORDS), (batch(3, 4), COMMIT)]


LOG = SimpleNamespace(
    corruption=None, log_start_offset=0, log_end_offset=4, aborted_transactions=lambda first, end: []
)


def look(
    batches: list[tuple[Entry, TransactionPart]],
    *,
    stable: int,
    start: int = 0,
    high_watermark: int = 3,
    rule: LastStableIsAsTheLogSays | None = None,
) -> None:
    """At a replica whose log has these batches: as it starts, or, for a rule that saw it before, added."""
    parts = dict(batches)
    view = SimpleNamespace(
        broker_id=1, member=None, is_read_anew=rule is None, entries=list(parts), part=parts.get
    )
    marks = SimpleNamespace(
        local_start_offset=start, high_watermark=high_watermark, last_stable_offset=stable
    )
    partition = SimpleNamespace(log=LOG, is_offline=False, _replica=SimpleNamespace(marks=marks))
    truth = PartitionTruth(TopicPartition("quakes", 0), uuid.UUID(int=1))
    (rule or LastStableIsAsTheLogSays()).on_replica(truth, view, partition, list(parts))


def test_a_marker_that_is_not_committed_holds_back_what_its_transaction_wrote():
    look(TRANSACTION, stable=0)
    with pytest.raises(Violation, match=r"has the last stable offset 3; its log says 0"):
        look(TRANSACTION, stable=3)


def test_a_whole_log_without_open_transactions_is_stable_to_its_high_watermark():
    look([(batch(0, 4), RECORDS._replace(is_control=True))], stable=3)
    with pytest.raises(Violation, match=r"has the last stable offset 2; its log says 3"):
        look([(batch(0, 4), RECORDS._replace(is_control=True))], stable=2)


@pytest.mark.parametrize(
    "left", [TRANSACTION[1:], [(batch(0, 3), RECORDS._replace(has_records=False)), TRANSACTION[2]]]
)
def test_a_compacted_log_may_know_of_a_beginning_that_compaction_took(left):
    look(left, stable=0)
    with pytest.raises(Violation, match=r"has the last stable offset 4"):
        look(left, stable=4)


@pytest.mark.parametrize("empty_at", [0, 1])
def test_an_empty_log_that_begins_anew_may_know_of_a_beginning_before_its_start(empty_at):
    rule = LastStableIsAsTheLogSays()
    look([], start=empty_at, high_watermark=empty_at, stable=empty_at, rule=rule)
    look(TRANSACTION[1:2], start=2, stable=2, rule=rule)
    with pytest.raises(Violation, match=r"has the last stable offset 4"):
        look([], start=2, stable=4, rule=rule)
