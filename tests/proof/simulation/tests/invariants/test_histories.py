"""A history in a store that counts as a replica: what an election leaves, and who may lack it when."""

from types import SimpleNamespace

import pytest

from simulation.invariants.histories import awaits_history, kept_by_history, revived_by_history
from simulation.invariants.invariant import Violation
from simulation.invariants.replication import IsrContainsCommitted
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.model.ids import BrokerId, TopicId, TopicPartition

ONE, TWO = BrokerId(1), BrokerId(2)


def entry(offset, epoch=0):
    return Entry(offset, offset + 1, epoch, 1, 0, offset, 0)


def view_of(*entries, broker=ONE):
    end = entries[-1].next_offset if entries else 0
    return ReplicaView(broker, entries=list(entries), end_offset=end, shared_end=end)


@pytest.fixture
def truth():
    """Five batches are committed, of epochs 0 and 1; the store has the first three."""
    made = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), lossy_epoch=4)
    made.committed = [entry(0), entry(1), entry(2, 1), entry(3, 1), entry(4, 1)]
    made.stored = made.committed[:3]
    made.state = SimpleNamespace(
        isr=(ONE,), eligible=(), leader=ONE, lost_in_epoch=4, store_given_up_in_epoch=-1
    )
    return made


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        pytest.param([], 3, id="an empty log"),
        pytest.param([entry(0), entry(1)], 3, id="a shorter log"),
        pytest.param(
            [entry(0), entry(1), entry(2, 2)], 0, id="a record of a later epoch than the last copy's"
        ),
    ],
)
def test_what_the_store_has_stays_unless_the_elected_has_a_record_of_a_later_epoch(truth, log, kept):
    assert kept_by_history(truth, view_of(*log)) == kept


def test_an_election_demanded_without_the_store_keeps_and_awaits_nothing_of_it(truth):
    assert awaits_history(truth, view_of())
    truth.state.store_given_up_in_epoch = 4
    assert kept_by_history(truth, view_of()) == 0
    assert not awaits_history(truth, view_of())


def test_a_store_that_was_given_up_before_an_earlier_loss_counts_again(truth):
    truth.state.store_given_up_in_epoch = 3
    assert kept_by_history(truth, view_of()) == 3


def test_the_store_revives_what_an_election_without_it_lost_if_nobody_wrote_since(truth):
    stored = list(truth.committed[:3])
    truth.state.store_given_up_in_epoch = 4
    truth.lose(view_of(), 4, kept_min=kept_by_history(truth, view_of()))
    truth.state.lost_in_epoch = 5
    assert revived_by_history(truth, view_of(entry(0, 4))) == []
    revived = revived_by_history(truth, view_of())
    assert revived == stored
    truth.lose(view_of(), 5, revived=revived)
    assert truth.committed == stored


def test_a_store_that_has_another_log_keeps_nothing(truth):
    truth.stored = [entry(0), entry(1), entry(2)]
    assert kept_by_history(truth, view_of()) == 0


def test_what_was_deleted_before_the_history_begins_may_be_nowhere(truth):
    truth.stored, truth.stored_start = truth.committed[1:3], 1
    assert kept_by_history(truth, view_of()) == 3


def test_an_election_loses_what_neither_the_elected_nor_the_store_has(truth):
    elected = view_of()
    assert truth.lose(elected, 5, kept_min=kept_by_history(truth, elected)) == [entry(3, 1), entry(4, 1)]
    assert truth.committed_end == 3


def test_the_elected_may_lack_what_the_store_has_until_it_has_a_record_of_its_own(truth):
    assert awaits_history(truth, view_of())
    assert awaits_history(truth, view_of(entry(0)))
    assert not awaits_history(truth, view_of(entry(0, 4)))


def test_nobody_else_may(truth):
    assert not awaits_history(truth, view_of(broker=TWO))
    truth.state.isr = (ONE, TWO)
    assert not awaits_history(truth, view_of())
    truth.state.isr, truth.lossy_epoch = (ONE,), -1
    assert not awaits_history(truth, view_of())


def test_a_leader_that_appends_before_it_has_asked_lacks_what_is_committed(truth):
    truth.views[ONE] = view_of()
    rule = IsrContainsCommitted()
    del truth.committed[3:]
    rule.on_state(truth, None, truth.state)
    truth.views[ONE] = view_of(entry(0, 4))
    truth.views[ONE].shared_end = 0
    with pytest.raises(Violation, match="lacks the committed"):
        rule.on_state(truth, None, truth.state)
