"""Static members that come back, and their twins (KIP-345, KIP-814)."""

import pytest

from sparklog.core.group.records import GroupValue
from sparklog.core.group.requests import OffsetDelete
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import GROUP, INITIAL_DELAY_MS, SESSION_MS, Client, Coordinator, errors_of

ORDERS_0 = TopicPartition("orders", 0)


@pytest.mark.scenario("S14", "A static member bounces (KIP-345): no rebalance within its session time-out.")
def test_a_static_member_comes_back_without_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.static_group("alice", "bob")
    before = bob.member_id
    again = coordinator.client("bob", instance="bob")
    again.joins()
    assert (again.generation, again.is_leader) == (1, False)
    assert again.member_id != before
    assert again.syncs().answer.assignment == b"bob"
    assert alice.heartbeat() is ErrorCode.none


def test_the_new_member_id_is_in_the_log_before_it_is_given_out() -> None:
    coordinator = Coordinator()
    alice, _ = coordinator.static_group("alice", "bob")
    coordinator.is_log_slow = True
    again = coordinator.client("bob", instance="bob")
    assert again.joins().is_waiting
    coordinator.log_writes()
    value = coordinator.log[-1].value
    assert isinstance(value, GroupValue)
    assert [member.member_id for member in value.members] == [alice.member_id, again.join_answer.member_id]
    coordinator.restart()
    assert again.heartbeat() is ErrorCode.none


@pytest.mark.scenario("S15", "Two members with one group.instance.id (KIP-345): the older one is fenced.")
def test_the_older_of_two_twins_is_fenced_everywhere() -> None:
    coordinator = Coordinator()
    _, old = coordinator.static_group("alice", "bob")
    coordinator.client("bob", instance="bob").joins()
    assert old.heartbeat() is ErrorCode.fenced_instance_id
    assert old.syncs().error is ErrorCode.fenced_instance_id
    assert errors_of(old.commits({ORDERS_0: 5})) == {ErrorCode.fenced_instance_id}
    assert old.leaves() is ErrorCode.fenced_instance_id
    assert old.joins().error is ErrorCode.fenced_instance_id


def test_a_twin_that_names_only_its_member_id_is_unknown() -> None:
    coordinator = Coordinator()
    _, old = coordinator.static_group("alice", "bob")
    coordinator.client("bob", instance="bob").joins()
    old.instance = None
    assert old.heartbeat() is ErrorCode.unknown_member_id


def test_a_leader_that_comes_back_is_told_to_skip_the_assignment() -> None:
    coordinator = Coordinator()
    coordinator.static_group("alice", "bob")
    again = coordinator.client("alice", instance="alice")
    again.joins()
    assert again.is_leader
    assert again.join_answer.skip_assignment
    assert len(again.join_answer.members) == 2
    assert again.syncs().answer.assignment == b"alice"


def test_a_follower_that_comes_back_has_nothing_to_skip() -> None:
    coordinator = Coordinator()
    coordinator.static_group("alice", "bob")
    again = coordinator.client("bob", instance="bob")
    again.joins()
    assert not again.join_answer.skip_assignment


def test_an_older_leader_that_comes_back_takes_itself_for_a_follower() -> None:
    coordinator = Coordinator()
    old, _ = coordinator.static_group("alice", "bob")
    again = coordinator.client("alice", instance="alice", version=8)
    again.joins()
    assert again.join_answer.leader == old.member_id
    assert not again.is_leader
    assert again.join_answer.members == ()


def test_a_static_member_that_comes_back_with_another_protocol_starts_a_rebalance() -> None:
    coordinator = Coordinator()
    both = (("range", b"orders"), ("sticky", b"orders"))
    [alice] = coordinator.stable_group("alice", protocols=both)
    bob = coordinator.client("bob", instance="bob", protocols=both)
    bob.joins()
    alice.joins()
    coordinator.assigns(alice, bob)
    again = coordinator.client("bob", instance="bob", protocols=(("sticky", b"orders"),))
    assert again.joins().is_waiting
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    alice.joins()
    assert again.join_answer.protocol == "sticky"


def test_a_static_member_may_come_back_with_other_topics() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.static_group("alice")
    payments_0 = TopicPartition("payments", 0)
    alice.commits({ORDERS_0: 5, payments_0: 6})
    again = coordinator.client("alice", instance="alice", protocols=(("range", b"payments"),))
    again.joins()
    answer = coordinator.ask(OffsetDelete(GROUP, topic_partitions=(ORDERS_0, payments_0))).answer
    assert answer.errors == (
        (ORDERS_0, ErrorCode.none),
        (payments_0, ErrorCode.group_subscribed_to_topic),
    )


def test_a_static_member_does_not_leave_the_group_when_it_misses_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, bob = (
        coordinator.client("alice", rebalance_ms=8_000),
        coordinator.client("bob", instance="bob", session_ms=30_000, rebalance_ms=8_000),
    )
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    coordinator.assigns(alice, bob)
    alice.joins()
    coordinator.passes(8_000)
    assert alice.generation == 2
    assert len(alice.join_answer.members) == 2


def test_a_static_member_fails_after_its_session_time_out() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.static_group("alice", "bob")
    coordinator.passes(SESSION_MS // 2)
    alice.heartbeat()
    coordinator.passes(SESSION_MS // 2)
    assert bob.heartbeat() is ErrorCode.unknown_member_id
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress


def test_a_twin_takes_over_the_join_that_waits() -> None:
    coordinator = Coordinator()
    alice, old = coordinator.static_group("alice", "bob")
    alice.joins()
    old.protocols = (("range", b"payments"),)
    waiting = old.joins()
    assert waiting.error is ErrorCode.none  # both had joined: generation 2
    assert alice.joins().error is ErrorCode.none
    carol = coordinator.client("carol")
    carol.joins()
    waiting = old.joins()
    again = coordinator.client("bob", instance="bob")
    again.joins()
    assert waiting.error is ErrorCode.fenced_instance_id
    assert waiting.answer.member_id == old.member_id
    alice.joins()
    assert again.generation == alice.generation == 3


def test_a_twin_between_join_and_sync_starts_the_rebalance_anew() -> None:
    """The leader may assign to the old member id, so the new one would get nothing."""
    coordinator = Coordinator()
    alice, old = (coordinator.client(name, instance=name) for name in ("alice", "bob"))
    alice.joins()
    old.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert old.syncs().is_waiting
    again = coordinator.client("bob", instance="bob")
    assert again.joins().is_waiting
    assert old.synced is not None
    assert old.synced.error is ErrorCode.fenced_instance_id
    alice.joins()
    assert again.generation == alice.generation == 2


def takeover_that_fails(coordinator: Coordinator) -> tuple[Client, Client]:
    """The old process, and the new one whose takeover is being written."""
    _, old = coordinator.static_group("alice", "bob")
    coordinator.is_log_slow = True
    again = coordinator.client("bob", instance="bob")
    assert again.joins().is_waiting
    return old, again


def test_a_takeover_that_the_log_refuses_leaves_the_older_process_in_place() -> None:
    coordinator = Coordinator()
    old, again = takeover_that_fails(coordinator)
    coordinator.log_refuses(ErrorCode.not_enough_replicas)
    assert again.join_answer.error is ErrorCode.coordinator_not_available
    assert again.join_answer.member_id == ""
    assert old.heartbeat() is ErrorCode.none


def test_a_takeover_in_doubt_happens_when_it_is_in_the_log_after_all() -> None:
    coordinator = Coordinator()
    old, again = takeover_that_fails(coordinator)
    coordinator.log_times_out()
    assert again.join_answer.error is ErrorCode.rebalance_in_progress
    coordinator.log_writes()
    assert old.heartbeat() is ErrorCode.fenced_instance_id
    coordinator.is_log_slow = False
    assert again.joins(member_id="").error is ErrorCode.none


def test_an_unknown_instance_with_a_member_id_is_unknown() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.instance = "kitchen"
    assert alice.joins().error is ErrorCode.unknown_member_id
