"""Rules about what logs remember, starts, and who is counted: each fires, and only where it should."""

import re
from collections import deque
from types import SimpleNamespace

import pytest

from simulation.invariants.derived import (
    EpochsAreAsTheLogSays,
    ProducersAreAsTheLogSays,
    _fits,
    check_producers_at_rest,
    trouble_with,
)
from simulation.invariants.invariant import Violation
from simulation.invariants.presence import NOTICED_MS, CountsWhoIsThere, StopsOutsideTheIsr
from simulation.invariants.restarts import OnlyDamageIsCalledDamage, RemembersWhatIsCommitted
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.core.controller.state.znodes import broker_path
from sparklog.core.producers.producer_state import ProducerState, ProducerStates, RememberedBatch
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import BrokerId, TopicId, TopicPartition


def truth(**facts):
    return SimpleNamespace(topic_partition="quakes-0", **facts)


def state(isr, *, leader=1, epoch=3):
    return SimpleNamespace(isr=isr, leader=leader, leader_epoch=epoch, has_leader=leader >= 0)


@pytest.mark.parametrize(
    ("known", "in_log", "fits"),
    [
        pytest.param([4, 5, 6], [4, 5, 6], True, id="equal"),
        pytest.param([3, 4, 5, 6, 7], [4, 5, 6, 7], True, id="the oldest was compacted away"),
        pytest.param([3, 4, 5, 6, 7], [0, 4, 5, 6, 7], True, id="and an older one had to stay"),
        pytest.param([0, 3, 6, 9], [0, 9], False, id="only the last one stayed"),
        pytest.param([9], [6, 9], False, id="forgotten though there is room"),
        pytest.param([], [6], False, id="all forgotten"),
        pytest.param([4, 9], [4], False, id="the last one is not in the log"),
    ],
)
def test_in_a_compacted_log_only_the_oldest_batches_that_are_remembered_may_be_missing(known, in_log, fits):
    assert _fits(known, in_log) is fits


def sent(offset, *, sequence, count=2, producer=7, epoch=0, leader_epoch=0):
    return Entry(offset, offset + count, leader_epoch, producer, epoch, sequence, 1)


def producers_of(*batches, epoch=0):
    """Producer 7, of whom a log remembers these: first and last offset, first and last number."""
    remembered = deque(RememberedBatch(*numbers, *offsets, 0) for *offsets, numbers in batches)
    return ProducerStates({7: ProducerState(epoch, remembered)})


LOG = [sent(4, sequence=0), sent(6, sequence=2)]
REMEMBERED = ((4, 5, (0, 1)), (6, 7, (2, 3)))


def look_at_log(
    rule,
    entries,
    *,
    is_read_anew,
    added=(),
    producers=None,
    epochs=(),
    log_start=0,
    rots=False,
    epochs_checked=(0, []),
):
    log = SimpleNamespace(
        corruption=None,
        producers=producers or ProducerStates(),
        log_start_offset=log_start,
        epochs=EpochHistory.of(epochs),
    )
    view = SimpleNamespace(
        broker_id=2,
        member=2,
        entries=entries,
        is_read_anew=is_read_anew,
        was_cut=False,
        log_start=log_start,
        history_start=log_start,
        end_offset=entries[-1].next_offset,
        epochs_checked=epochs_checked,
    )
    partition = SimpleNamespace(log=log, is_offline=False)
    rule.on_replica(truth(is_thinned=False, rots=lambda broker: rots), view, partition, list(added))


@pytest.mark.parametrize("is_read_anew", [True, False], ids=["after a start", "after an append"])
@pytest.mark.parametrize(
    ("producers", "is_right"),
    [
        pytest.param(producers_of(*REMEMBERED), True, id="as a replay says"),
        pytest.param(producers_of(REMEMBERED[0], (6, 7, (3, 4))), False, id="another number"),
        pytest.param(producers_of(REMEMBERED[0], (6, 7, (2, 2))), False, id="ends with another number"),
        pytest.param(producers_of(REMEMBERED[0], (6, 6, (2, 3))), False, id="ends at another offset"),
        pytest.param(producers_of(*REMEMBERED, epoch=1), False, id="another epoch"),
        pytest.param(producers_of(REMEMBERED[0]), False, id="the last one is forgotten"),
        pytest.param(producers_of(*REMEMBERED, (8, 9, (4, 5))), False, id="one that is not in the log"),
        pytest.param(None, False, id="a producer is forgotten"),
    ],
)
def test_what_a_log_knows_of_a_producer_is_what_a_replay_says_numbers_and_epoch_included(
    is_read_anew, producers, is_right
):
    rule = ProducersAreAsTheLogSays()
    if is_right:
        look_at_log(rule, LOG, is_read_anew=is_read_anew, added=LOG[1:], producers=producers)
        return
    with pytest.raises(Violation, match=r"ProducersAreAsTheLogSays: .* producer 7"):
        look_at_log(rule, LOG, is_read_anew=is_read_anew, added=LOG[1:], producers=producers)


def test_what_rotted_where_no_start_reads_is_asked_of_nobody_until_it_is_appended_again():
    """A start after a clean stop reads no batches; seed 604633."""
    rule, spoilt = ProducersAreAsTheLogSays(), [sent(4, sequence=0), sent(6, sequence=2, producer=8)]
    look_at_log(rule, spoilt, is_read_anew=True, producers=producers_of(*REMEMBERED), rots=True)
    look_at_log(EpochsAreAsTheLogSays(), spoilt, is_read_anew=True, epochs=[(2, 0)], rots=True)
    with pytest.raises(Violation, match=r"ProducersAreAsTheLogSays: .* producer 8"):
        look_at_log(
            rule,
            spoilt,
            is_read_anew=False,
            added=spoilt[1:],
            producers=producers_of(*REMEMBERED),
            rots=True,
        )


def test_a_producer_of_a_later_epoch_is_known_by_the_batches_of_that_alone():
    later = [*LOG, sent(8, sequence=0, epoch=1)]
    known = producers_of((8, 9, (0, 1)), epoch=1)
    look_at_log(ProducersAreAsTheLogSays(), later, is_read_anew=True, producers=known)


IN_EPOCHS = [
    sent(4, sequence=0, leader_epoch=1),
    sent(6, sequence=2, leader_epoch=1),
    sent(8, sequence=4, leader_epoch=3),
]


@pytest.mark.parametrize(
    ("history", "log_start", "is_thinned", "trouble"),
    [
        pytest.param([(1, 4), (3, 8)], 0, False, None, id="as the batches say"),
        pytest.param([(1, 4), (3, 8), (4, 10)], 0, False, None, id="a leader has just begun another"),
        pytest.param([(1, 5), (3, 8)], 5, False, None, id="the log begins within a batch"),
        pytest.param([(3, 9)], 9, False, None, id="an epoch is forgotten with its records"),
        pytest.param([(3, 10)], 10, False, None, id="all records are forgotten"),
        pytest.param([(1, 3), (3, 8)], 0, True, None, id="compacted"),
        pytest.param([(1, 4), (2, 7), (3, 8)], 0, True, None, id="an epoch was compacted away"),
        pytest.param([(1, 4), (2, 7), (3, 8)], 0, False, "no batch of epoch 2", id="an epoch too many"),
        pytest.param([(1, 3), (3, 8)], 0, False, "epoch 1 begins with .4..5", id="an earlier beginning"),
        pytest.param([(1, 4), (3, 6)], 0, False, "6..7 .* is in epoch 3 of them", id="the border is too low"),
        pytest.param([(1, 4)], 0, False, "8..9 .* is in epoch 1 of them", id="the last one is missing"),
        pytest.param([(1, 6), (3, 8)], 0, False, "4..5 .* is in none of them", id="begins too late"),
        pytest.param(
            [(1, 4), (3, 8), (4, 11)], 0, False, "ends before epoch 4 begins", id="one behind the log's end"
        ),
        pytest.param([], 0, False, "4..5 .* is in none of them", id="nothing is known"),
        pytest.param([(2, 4), (3, 8)], 0, True, "4..5 .* is in epoch 2 of them", id="another epoch"),
    ],
)
def test_an_epoch_history_follows_from_the_batches_of_its_log(history, log_start, is_thinned, trouble):
    entries = EpochHistory.of(history).entries
    found = trouble_with(entries, IN_EPOCHS, log_start, is_thinned=is_thinned)
    assert (found is None) if trouble is None else re.search(trouble, found)


@pytest.mark.parametrize("is_read_anew", [True, False], ids=["after a start", "after an append"])
def test_a_log_whose_epochs_are_not_those_of_its_batches_is_found_when_it_changes(is_read_anew):
    rule, last = EpochsAreAsTheLogSays(), IN_EPOCHS[-1:]
    look_at_log(rule, IN_EPOCHS, is_read_anew=is_read_anew, added=last, epochs=[(1, 4), (3, 8)])
    with pytest.raises(Violation, match=r"EpochsAreAsTheLogSays: .* has the epochs \[\(1, 4\)\], but"):
        look_at_log(rule, IN_EPOCHS, is_read_anew=is_read_anew, added=last, epochs=[(1, 4)])


def test_a_raised_log_start_without_a_raised_first_epoch_is_found():
    rule, history = EpochsAreAsTheLogSays(), EpochHistory.of([(1, 4), (3, 8)]).entries
    known = {"epochs": [(1, 4), (3, 8)], "epochs_checked": (0, history), "is_read_anew": False}
    look_at_log(rule, IN_EPOCHS, log_start=0, **known)
    with pytest.raises(Violation, match=r"whose log begins at 6, has the epochs .* epoch 1 begins with"):
        look_at_log(rule, IN_EPOCHS, log_start=6, **known)


def test_a_log_that_is_called_damaged_was_damaged_by_something():
    rule = OnlyDamageIsCalledDamage()
    damaged = SimpleNamespace(log=SimpleNamespace(corruption=SimpleNamespace(reason="it ends too soon")))
    rule.on_start(truth(), 2, damaged, may_be_damaged=True)
    with pytest.raises(Violation, match="which nothing has touched: it ends too soon"):
        rule.on_start(truth(), 2, damaged, may_be_damaged=False)


@pytest.mark.parametrize(
    ("end_before", "end", "remembered", "is_right"),
    [
        pytest.param(48, 48, 47, True, id="nothing was cut, and all is known"),
        pytest.param(48, 48, 46, False, id="nothing was cut, and something is forgotten"),
        pytest.param(48, 30, 30, True, id="as far as the log reaches"),
        pytest.param(0, 48, 10, True, id="died before it threw its log away"),
        pytest.param(40, 48, 40, True, id="died before a cut"),
        pytest.param(40, 48, 39, False, id="died before a cut, and forgot what the cut would have left"),
        pytest.param(40, 40, 39, False, id="died behind a cut, and forgot what the cut has left"),
    ],
)
def test_a_start_knows_the_committed_end_that_the_start_before_it_knew(end_before, end, remembered, is_right):
    rule = RemembersWhatIsCommitted()
    replica = truth(topic_id=1, lossy_epoch=-1)
    replica.topic_partition = TopicPartition("quakes", 0)

    def start(high_watermark, log_end_offset, end_before):
        found = SimpleNamespace(high_watermark=high_watermark, log_end_offset=log_end_offset)
        rule.on_start(replica, 2, found, end_before=end_before, was_struck=False)

    start(47, 48, 48)
    if is_right:
        start(remembered, end, end_before)
        return
    with pytest.raises(Violation, match=rf"starts with high watermark {remembered}, .* it knew 47"):
        start(remembered, end, end_before)


def test_who_is_gone_for_long_must_not_join_and_who_is_back_may():
    registered = set()
    tree = SimpleNamespace(exists=lambda path: True if path in registered else None)
    rule = CountsWhoIsThere(brokers=(3,))
    rule.look_at_zookeeper(tree, 1_000)
    rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 1_000 + NOTICED_MS)
    with pytest.raises(Violation, match="broker 3 joined the ISR, and is gone since 1000 ms"):
        rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 1_001 + NOTICED_MS)
    registered.add(broker_path(3))
    rule.look_at_zookeeper(tree, 5_000)
    rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 9_000)


def test_who_stops_as_it_may_is_in_no_isr_but_its_own():
    rule = StopsOutsideTheIsr()
    rule.on_clean_stop(truth(state=state((1, 2))), 3)
    rule.on_clean_stop(truth(state=state((3, 2), leader=3)), 3)
    with pytest.raises(Violation, match="broker 3 has stopped"):
        rule.on_clean_stop(truth(state=state((1, 3))), 3)


def behind_a_history(known, *, was_cut=False):
    """A log whose disk begins at 6, behind a batch that only a store has; producer 7 has these batches."""
    entries = [sent(4, sequence=0), sent(6, sequence=2)]
    log = SimpleNamespace(corruption=None, producers=producers_of(*known), log_start_offset=0)
    view = ReplicaView(BrokerId(2), entries=entries[1:], log_start=6, end_offset=8, was_cut=was_cut)
    view.log, view.is_read_anew = log, True
    there = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=7), committed=entries)
    return there, view, SimpleNamespace(log=log, is_offline=False)


def test_a_replica_that_begins_behind_a_history_may_lack_what_its_leader_forgot():
    there, view, partition = behind_a_history(REMEMBERED[1:])
    ProducersAreAsTheLogSays().on_replica(there, view, partition, [])
    there, view, partition = behind_a_history(REMEMBERED[:1])
    with pytest.raises(Violation, match=r"the last in its log are \[4\.\.5 .*, 6\.\.7"):
        ProducersAreAsTheLogSays().on_replica(there, view, partition, [])


def test_a_producer_of_the_store_alone_may_be_unknown_until_there_is_more_of_it():
    there, view, partition = behind_a_history(())
    view.entries, partition.log.producers = [], ProducerStates()
    there.committed = there.committed[:1]
    ProducersAreAsTheLogSays().on_replica(there, view, partition, [])


def test_at_rest_a_log_knows_the_producers_of_its_whole_history_unless_it_lost_its_end():
    check_producers_at_rest(*behind_a_history(REMEMBERED)[:2])
    with pytest.raises(Violation, match=r"ProducersAreAsTheLogSays: .* at rest broker 2, .* begins at 6"):
        check_producers_at_rest(*behind_a_history(REMEMBERED[1:])[:2])
    check_producers_at_rest(*behind_a_history(REMEMBERED[1:], was_cut=True)[:2])


def test_at_rest_a_log_that_an_election_made_the_truth_may_lack_what_its_leader_forgot():
    there, view, _ = behind_a_history(REMEMBERED[1:])
    there.lossy_epoch = 3
    check_producers_at_rest(there, view)
    there, view, _ = behind_a_history(REMEMBERED[:1])
    there.lossy_epoch = 3
    with pytest.raises(Violation, match="ProducersAreAsTheLogSays"):
        check_producers_at_rest(there, view)


def test_the_epochs_of_a_log_reach_across_the_start_of_its_disk():
    there, view, partition = behind_a_history(REMEMBERED)
    there.committed[:1] = [sent(4, sequence=0, leader_epoch=0)]
    there.committed[1:] = view.entries = [sent(6, sequence=2, leader_epoch=3)]
    partition.log.epochs = EpochHistory.of([(0, 4), (3, 6)])
    EpochsAreAsTheLogSays().on_replica(there, view, partition, view.entries)
    partition.log.epochs = EpochHistory.of([(3, 6)])
    with pytest.raises(Violation, match="is in none of them"):
        EpochsAreAsTheLogSays().on_replica(there, view, partition, view.entries)
