"""An operator aborts what hangs since a loss that an election reported; nothing else is excused."""

import uuid

import pytest

from simulation.operators import hanging
from simulation.operators.hanging import has_lost_its_marker, lost_states
from simulation.plans.faults import Hunt
from simulation.plans.plan import draw_plan
from simulation.run import simulate
from simulation.truth import Entry, PartitionTruth
from sparklog.model.ids import TopicPartition

LOST_MARKER = 55
"""All power is cut in this seed's plan; each replica loses the marker of a committed transaction."""

BLACKOUTS = Hunt(plot=3, transactions=1.0)

PRODUCER = 7


def truth_that_lost(*entries, topic="quakes"):
    truth = PartitionTruth(TopicPartition(topic, 0), uuid.UUID(int=1))
    for entry in entries:
        truth.lost.setdefault(entry.base_offset, []).append(entry)
    return truth


def entry_at(offset, *, producer_id=PRODUCER, sequence=-1):
    return Entry(offset, offset + 1, 0, producer_id, 0, sequence, 0)


def test_what_hangs_since_an_election_lost_its_marker_is_aborted():
    outcome = simulate(draw_plan(LOST_MARKER, hunt=BLACKOUTS), is_told=True)
    assert outcome.violation is None
    told = [line for line in outcome.lines if "OPERATOR" in line]
    assert len(told) == 1
    assert "aborts what hangs" in told[0]


def test_what_hangs_without_such_a_loss_keeps_a_cluster_from_rest(monkeypatch):
    monkeypatch.setattr(hanging, "has_lost_its_marker", lambda *of_a_transaction: False)
    violation = simulate(draw_plan(LOST_MARKER, hunt=BLACKOUTS)).violation
    assert violation.invariant == "ComesToRest"


@pytest.mark.parametrize(
    "lost",
    [
        [],
        [entry_at(9, sequence=3)],
        [entry_at(9, producer_id=PRODUCER + 1)],
        [entry_at(4)],
    ],
    ids=["nothing", "a batch", "another producer's marker", "the marker of an earlier transaction"],
)
def test_a_loss_of_something_else_is_no_reason(lost):
    assert not has_lost_its_marker(truth_that_lost(*lost), PRODUCER, 5)


def test_the_marker_behind_the_first_batch_is_a_reason():
    assert has_lost_its_marker(truth_that_lost(entry_at(9)), PRODUCER, 5)


@pytest.mark.parametrize("topic", ["quakes", "__consumer_offsets", "__transaction_state"])
def test_a_coordinator_that_lost_a_record_may_have_forgotten_any_transaction(topic):
    assert lost_states([truth_that_lost(entry_at(9), topic=topic)]) == (topic == "__transaction_state")
    assert not lost_states([truth_that_lost(topic=topic)])
