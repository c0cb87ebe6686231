"""Up to where a replica's log holds what is committed."""

from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.replication import (
    CommittedIsNeverLost,
    IsrContainsCommitted,
    LogsBeginWhereTheyMay,
)
from simulation.truth import Entry, PartitionTruth, ReplicaView, history_of
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import BrokerId, TopicId, TopicPartition

KEY = b"key"
LATER_MS = 1_000


def entry(base, end, epoch=0):
    return Entry(base, end, epoch, 1, 0, base, 0)


@pytest.fixture
def truth():
    """A compacted partition: three batches of one record each are committed, all of one key."""
    made = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), is_thinned=True)
    for offset in range(3):
        made.committed.append(entry(offset, offset + 1))
        made.note_records(made.committed[-1], [(KEY, b"value")], now_ms=0)
    return made


def view_of(entries, kept, end_offset):
    return ReplicaView(BrokerId(1), entries=entries, kept=kept, end_offset=end_offset, matched=-1)


def test_what_compaction_removed_between_two_batches_is_held(truth):
    view = view_of([entry(0, 1), entry(2, 3)], {0: (), 2: (2,)}, 3)
    truth.compare(view, LATER_MS)
    assert view.shared_end == 3


def test_what_was_never_there_is_not_held(truth):
    view = view_of([entry(0, 1)], {0: (0,)}, 1)
    truth.compare(view, LATER_MS)
    assert view.shared_end == 1


def test_what_a_log_gave_up_after_a_lossy_election_is_not_demanded_again():
    """The next unclean election brought it back; seed 606052."""
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), committed=[entry(0, 1)])
    view = ReplicaView(BrokerId(1), entries=[entry(2, 3)], log_start=2, end_offset=3, matched=-1)
    truth.compare(view, LATER_MS)
    truth.committed += [entry(1, 2), entry(2, 3)]
    truth.compare(view, LATER_MS)
    assert view.shared_end == 3


def test_the_newest_record_of_a_key_may_not_be_lacking(truth):
    view = view_of([entry(0, 1), entry(3, 4, epoch=1)], {0: (), 3: (3,)}, 4)
    truth.compare(view, LATER_MS)
    assert view.shared_end == 2


def test_a_tombstone_may_go_as_much_earlier_as_clocks_part(truth):
    truth.committed.append(entry(3, 4))
    truth.note_records(truth.committed[-1], [(KEY, None)], now_ms=500)
    truth.delete_retention_ms = 1_000
    for drift_max, end in ((0.0, 3), (0.05, 3), (0.06, 4)):
        truth.drift_max = drift_max
        view = view_of([entry(0, 1), entry(4, 5, epoch=1)], {0: (), 4: (4,)}, 5)
        truth.compare(view, 1_420)
        assert view.shared_end == end


def test_what_an_uncommitted_batch_replaced_in_a_deposed_leader_s_log_is_held(truth):
    """An election has lost the record that its cleaner kept instead; the leader does not know yet."""
    truth.forgiven_end = 4
    view = view_of([entry(0, 1), entry(3, 4, epoch=1)], {0: (), 3: (3,)}, 4)
    truth.compare(view, LATER_MS)
    assert view.shared_end == 3


@pytest.mark.parametrize(("lost", "shared_end"), [([entry(0, 1), entry(1, 2)], 3), ([], 0)])
def test_a_loss_below_the_elected_leaders_start_excuses_nothing_above_it(lost, shared_end):
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), committed=[entry(2, 3)])
    truth.lost = {one.base_offset: [one] for one in lost}
    view = view_of([entry(0, 1), entry(1, 2), entry(2, 3)], {}, 3)
    truth.compare(view, LATER_MS)
    assert view.shared_end == shared_end


def test_what_is_rightly_lacking_at_the_end_of_a_log_is_not_among_what_it_has(truth):
    view = view_of([entry(0, 1), entry(3, 4, epoch=1)], {0: (), 3: (3,)}, 4)
    truth.forgiven_end = 4
    truth.compare(view, LATER_MS)
    assert (view.held_end, view.shared_end) == (1, 3)


def test_a_log_may_begin_behind_what_its_leader_alone_committed_and_an_election_has_lost(truth):
    """A leader that was paused meanwhile commits, and retention removes it there."""
    truth.may_delete, truth.lossy_epoch = True, 7
    truth.lost[3] = [entry(3, 5, epoch=2)]
    rule = LogsBeginWhereTheyMay()
    rule.on_replica(truth, ReplicaView(BrokerId(1), history_start=5), None, [])
    with pytest.raises(Violation, match="begins at 6"):
        rule.on_replica(truth, ReplicaView(BrokerId(1), history_start=6), None, [])
    truth.may_delete = False
    with pytest.raises(Violation, match="begins at 5"):
        rule.on_replica(truth, ReplicaView(BrokerId(1), history_start=5), None, [])


def test_the_history_of_a_log_is_what_a_store_has_of_it_and_then_its_disk():
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7))
    truth.committed = [entry(offset, offset + 2) for offset in range(0, 8, 2)]
    on_disk = [entry(2, 4), entry(4, 6), entry(6, 8), entry(8, 10)]
    view = ReplicaView(BrokerId(1), entries=on_disk, log_start=4, history_start=3, end_offset=10)
    assert history_of(truth, view) == [entry(2, 4), entry(4, 6), entry(6, 8), entry(8, 10)]
    view.history_start = view.log_start
    assert history_of(truth, view) is on_disk


def with_history(disk_start, *epochs):
    log = SimpleNamespace(epochs=EpochHistory.of(epochs))
    return ReplicaView(BrokerId(1), log=log, log_start=disk_start, end_offset=disk_start, held_end=disk_start)


def test_what_a_log_had_before_its_disk_is_known_by_its_epochs():
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7))
    truth.committed, truth.lost = [entry(0, 1), entry(1, 2, epoch=3)], {1: [entry(1, 2, epoch=1)]}
    assert history_of(truth, with_history(2, (0, 0), (1, 1))) == [entry(0, 1), entry(1, 2, epoch=1)]
    assert history_of(truth, with_history(2, (0, 0), (3, 1))) == truth.committed
    truth.committed = [entry(0, 1), entry(2, 3, epoch=1)]
    assert history_of(truth, with_history(2, (0, 0), (1, 1))) == [entry(0, 1), entry(1, 2, epoch=1)], (
        "also what nobody has any more"
    )


@pytest.mark.parametrize(
    ("stored", "committed"),
    [
        pytest.param([entry(0, 1), entry(1, 2, epoch=1)], [entry(0, 1), entry(1, 2, epoch=1)], id="all"),
        pytest.param([entry(0, 1), entry(1, 2, epoch=3)], [entry(0, 1)], id="of the other log"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_an_election_brings_back_and_keeps_what_the_store_has_of_that_very_log(stored, committed):
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), stored=stored)
    truth.committed, truth.lost = [entry(0, 1), entry(1, 2, epoch=3)], {1: [entry(1, 2, epoch=1)]}
    elected = with_history(2, (0, 0), (1, 1))
    elected.shared_end = 2
    assert truth.lose(elected, 4) == [
        one for one in (entry(0, 1), entry(1, 2, epoch=3)) if one not in committed
    ]
    assert truth.committed == committed


def test_whoever_is_in_the_isr_has_on_its_disk_what_the_store_lacks():
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), lossy_epoch=2)
    truth.committed, truth.stored = [entry(0, 1), entry(2, 3), entry(3, 4)], [entry(0, 1)]
    truth.state = SimpleNamespace(
        isr=(BrokerId(1),), eligible=(), leader=BrokerId(1), lost_in_epoch=2, store_given_up_in_epoch=-1
    )
    for disk_start, lacks in ((2, None), (3, entry(2, 3))):
        view = truth.views[BrokerId(1)] = with_history(disk_start, (0, 0))
        view.shared_end = 4
        found = None
        try:
            IsrContainsCommitted().on_state(truth, None, truth.state)
        except Violation as violation:
            found = str(violation)
        assert found is None if lacks is None else f"begins at 3, and the store lacks {lacks}" in found


def test_a_replica_may_begin_anew_where_its_leaders_disk_begins_earlier_after_a_loss():
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), committed=[entry(0, 1), entry(1, 5)])
    truth.assignment = SimpleNamespace(replicas=(BrokerId(1),))
    view = ReplicaView(BrokerId(1), log_start=1, start_before=3, held_before=5, cursor=1)
    with pytest.raises(Violation, match="CommittedIsNeverLost"):
        CommittedIsNeverLost().on_replica(truth, view, None, [])
    truth.lossy_epoch = 2
    CommittedIsNeverLost().on_replica(truth, view, None, [])
    view.start_before = 1
    with pytest.raises(Violation, match="CommittedIsNeverLost"):
        CommittedIsNeverLost().on_replica(truth, view, None, [])


def test_what_is_given_up_before_a_hole_is_not_held():
    truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), committed=[entry(0, 1), entry(6, 7)])
    truth.lost = {1: [entry(1, 2, epoch=4)]}
    view = view_of([entry(0, 1), entry(1, 2, epoch=4)], {}, 2)
    truth.compare(view, LATER_MS)
    assert (view.matched, view.held_end) == (2, 1)
