"""Changes of role as sentences."""

import pytest

from sparklog.core.producers.transactions import Transactions
from sparklog.core.recent_events import IllegalTransition
from sparklog.core.replication.actions import (
    AssignEpoch,
    BeganLeading,
    CeasedLeading,
    CompleteProduce,
    StartFetching,
    StopFetching,
    WakeFetch,
    split_actions,
)
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.time import MonotonicMs

NOW = MonotonicMs(5_000)


def replica_with(*, end=10, high_watermark=4) -> Replica:
    return Replica(
        BrokerId(1), TopicPartition("t", 0), EpochHistory(), Watermarks(0, high_watermark, end), 10_000
    )


def told(replica: Replica, *, leader: int, epoch: int, isr=(1, 2, 3), replicas=(1, 2, 3), lost_in=-1):
    state = PartitionState(
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(epoch),
        isr=tuple(map(BrokerId, isr)),
        replicas=tuple(map(BrokerId, replicas)),
        min_insync_replicas=2,
        lost_in_epoch=LeaderEpoch(lost_in),
    )
    actions = replica.on_leader_and_isr(state, broker_epoch=BrokerEpoch(50), now_ms=NOW)
    replica.check_invariants()
    return actions


@pytest.mark.scenario("S25", "A new leader records its epoch and start before any append (KAFKA-7415).")
def test_a_new_leader_begins_its_epoch_before_anything_is_appended() -> None:
    replica = replica_with()
    actions = told(replica, leader=1, epoch=3)
    assert actions == [AssignEpoch(LeaderEpoch(3), 10), StopFetching(), BeganLeading(LeaderEpoch(3))]
    assert split_actions(actions)[0] == [AssignEpoch(LeaderEpoch(3), 10)]
    assert replica.leader is not None


def test_a_follower_starts_to_fetch_from_its_leader() -> None:
    replica = replica_with()
    assert told(replica, leader=2, epoch=3) == [StartFetching(BrokerId(2), LeaderEpoch(3))]
    assert replica.follower is not None


def test_a_follower_knows_of_the_last_election_that_may_have_lost_records() -> None:
    replica = replica_with()
    told(replica, leader=2, epoch=5, lost_in=4)
    assert replica.follower is not None
    assert replica.follower.lost_in_epoch == 4


@pytest.mark.scenario("S43")
def test_a_newer_epoch_with_the_same_leader_is_taken_up_all_the_same() -> None:
    replica = replica_with()
    told(replica, leader=2, epoch=3)
    assert told(replica, leader=2, epoch=5) == [StartFetching(BrokerId(2), LeaderEpoch(5))]


@pytest.mark.parametrize("epoch", [2, 3])
def test_an_epoch_that_is_not_newer_changes_nothing(epoch) -> None:
    replica = replica_with()
    told(replica, leader=2, epoch=3)
    assert told(replica, leader=1, epoch=epoch) == []
    assert replica.follower is not None


@pytest.mark.scenario("S39")
def test_a_leader_that_becomes_follower_tells_everyone_who_waits() -> None:
    replica = replica_with()
    told(replica, leader=1, epoch=3)
    replica.leader.on_produce_waits(7, 10)
    replica.leader.on_fetch_waits(8, 10, Visibility.LOG_END)
    assert told(replica, leader=2, epoch=4) == [
        CompleteProduce(7, ErrorCode.not_leader_or_follower),
        WakeFetch(8),
        CeasedLeading(LeaderEpoch(3)),
        StartFetching(BrokerId(2), LeaderEpoch(4)),
    ]


@pytest.mark.bug(
    "B87", "records", "A follower that leaves has plain producers' records written twice, and out of order."
)
def test_a_write_goes_on_waiting_at_a_leader_that_leads_the_next_epoch_too() -> None:
    """The controller raises the epoch when a follower has left, and a producer that is told to look for
    another leader sends again what is in the log."""
    replica = replica_with()
    told(replica, leader=1, epoch=3)
    replica.leader.on_produce_waits(7, 10, outlasts=True)
    assert told(replica, leader=1, epoch=4, isr=(1, 2)) == [
        CeasedLeading(LeaderEpoch(3)),
        AssignEpoch(LeaderEpoch(4), 10),
        StopFetching(),
        BeganLeading(LeaderEpoch(4)),
    ]
    done = replica.leader.on_follower_fetch(BrokerId(2), BrokerEpoch(60), 10, NOW)
    assert done == [CompleteProduce(7, ErrorCode.none)]
    assert told(replica, leader=2, epoch=5)[0] == CeasedLeading(LeaderEpoch(4)), "it is answered once"


def test_a_coordinators_write_and_one_whose_records_are_gone_end_with_their_epoch() -> None:
    replica = replica_with()
    told(replica, leader=1, epoch=3)
    replica.leader.on_produce_waits(7, 8)
    replica.leader.on_produce_waits(8, 10, outlasts=True)
    replica.on_log_changed(0, 9, replica.marks.transactions)
    ended = told(replica, leader=1, epoch=4)[:2]
    assert ended == [CompleteProduce(one, ErrorCode.not_leader_or_follower) for one in (7, 8)]


def test_a_write_that_the_next_epoch_has_too_few_replicas_for_is_told_so() -> None:
    replica = replica_with()
    told(replica, leader=1, epoch=3)
    replica.leader.on_produce_waits(7, 10, outlasts=True)
    actions = told(replica, leader=1, epoch=4, isr=(1,))
    assert actions[-1] == CompleteProduce(7, ErrorCode.not_enough_replicas_after_append)


def test_each_epoch_of_a_leader_is_announced_with_its_begin_and_its_end() -> None:
    replica = replica_with()
    actions = [
        *told(replica, leader=1, epoch=3),
        *told(replica, leader=1, epoch=3),
        *told(replica, leader=1, epoch=5),
        *told(replica, leader=2, epoch=6),
        *told(replica, leader=1, epoch=8),
        *replica.on_offline("the disk broke"),
        *replica.on_offline("the replica is being deleted"),
    ]
    announced = [action for action in actions if isinstance(action, BeganLeading | CeasedLeading)]
    assert announced == [
        announcement(LeaderEpoch(epoch))
        for epoch in (3, 5, 8)
        for announcement in (BeganLeading, CeasedLeading)
    ]


def test_without_a_leader_nobody_is_fetched_from() -> None:
    assert told(replica_with(), leader=-1, epoch=3) == [StopFetching()]


def test_an_offline_replica_serves_nothing() -> None:
    replica = replica_with()
    told(replica, leader=1, epoch=3)
    replica.leader.on_produce_waits(7, 10)
    assert replica.on_offline("the disk broke") == [
        CompleteProduce(7, ErrorCode.not_leader_or_follower),
        CeasedLeading(LeaderEpoch(3)),
        StopFetching(),
    ]
    assert replica.role is None


def test_a_single_replica_commits_its_whole_log_when_it_is_elected() -> None:
    replica = replica_with()
    told(replica, leader=1, epoch=3, isr=(1,), replicas=(1,))
    assert replica.marks.high_watermark == 10


def test_watermarks_follow_a_truncation_into_the_logs_range() -> None:
    replica = replica_with(end=10, high_watermark=8)
    replica.on_log_changed(0, 6, Transactions())
    assert replica.marks.high_watermark == 6
    replica.check_invariants()


def test_a_state_that_does_not_name_us_is_refused_with_our_story() -> None:
    replica = replica_with()
    told(replica, leader=2, epoch=3)
    with pytest.raises(IllegalTransition, match=r"(?s)no replica of t-0.*leader 2 in epoch 3"):
        told(replica, leader=2, epoch=4, isr=(2,), replicas=(2, 3))


def test_a_local_start_follows_the_log_and_is_its_start_unless_said_otherwise() -> None:
    replica = replica_with(end=20)
    replica.on_log_changed(3, 20, Transactions(), local_start_offset=8)
    assert (replica.marks.log_start_offset, replica.marks.local_start_offset) == (3, 8)
    assert replica.marks.high_watermark == 8
    replica.on_log_changed(9, 20, Transactions())
    assert replica.marks.local_start_offset == 9
    replica.check_invariants()
