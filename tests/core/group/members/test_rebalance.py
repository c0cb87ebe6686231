"""Rebalances: what starts one, whom it waits for and how long, and what a generation is told."""

from sparklog.core.group.records import GroupValue, MemberValue
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    WALL_START_MS,
    Coordinator,
    errors_of,
)

ORDERS_0 = TopicPartition("orders", 0)


def test_the_first_rebalance_waits_for_members_that_start_together() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice")
    alice.joins()
    coordinator.passes(INITIAL_DELAY_MS - 1)
    assert alice.joined is not None
    assert alice.joined.is_waiting
    coordinator.passes(1)
    assert alice.generation == 1


def test_each_member_that_joins_a_new_group_prolongs_the_wait() -> None:
    coordinator = Coordinator()
    alice, bob, carol = (coordinator.client(name) for name in ("alice", "bob", "carol"))
    alice.joins()
    coordinator.passes(INITIAL_DELAY_MS - 1)
    bob.joins()
    coordinator.passes(INITIAL_DELAY_MS)
    carol.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert alice.generation == bob.generation == carol.generation == 1


def test_the_wait_is_prolonged_up_to_the_rebalance_time_out_at_most() -> None:
    coordinator = Coordinator()
    clients = [coordinator.client(f"c{n}", rebalance_ms=2 * INITIAL_DELAY_MS) for n in range(4)]
    for client in clients:
        client.joins()
        coordinator.passes(2_000)
    assert [client.generation for client in clients[:3]] == [1, 1, 1]
    assert clients[3].joined is not None
    assert clients[3].joined.is_waiting


def test_without_an_initial_delay_the_first_member_has_a_generation_at_once() -> None:
    coordinator = Coordinator(settings=GroupSettings(initial_rebalance_delay_ms=0))
    alice = coordinator.client("alice")
    alice.joins()
    coordinator.passes(0)
    assert alice.generation == 1


def test_a_group_that_became_empty_waits_again_but_the_wait_is_not_prolonged() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.leaves()
    bob, carol = coordinator.client("bob"), coordinator.client("carol")
    bob.joins()
    coordinator.passes(INITIAL_DELAY_MS - 1)
    carol.joins()
    coordinator.passes(1)
    assert bob.generation == carol.generation == 3


def test_a_new_member_starts_a_rebalance_that_the_others_hear_of_by_heartbeat() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    bob = coordinator.client("bob")
    bob.joins()
    assert coordinator.state() == "PreparingRebalance"
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    alice.joins()
    assert alice.generation == bob.generation == 2
    assert alice.is_leader


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    assert alice.joins().is_waiting
    assert bob.heartbeat() is ErrorCode.rebalance_in_progress


def test_a_follower_that_joins_again_unchanged_is_answered_at_once() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    bob.joins()
    assert (bob.generation, bob.join_answer.leader) == (1, alice.member_id)
    assert bob.join_answer.members == ()
    assert coordinator.state() == "Stable"


def test_a_follower_that_joins_again_with_other_topics_starts_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    bob.protocols = (("range", b"orders payments"),)
    assert bob.joins().is_waiting
    alice.joins()
    seen = {member.member_id: member.metadata for member in alice.join_answer.members}
    assert seen[bob.member_id] == b"orders payments"


def test_a_member_that_lost_its_answer_is_told_the_generation_again() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.client("alice"), coordinator.client("bob")
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert coordinator.state() == "CompletingRebalance"
    first = alice.join_answer
    assert alice.joins().answer == first
    assert len(first.members) == 2
    assert bob.generation == 1
    bob.joins()
    assert bob.join_answer.members == ()
    assert coordinator.state() == "CompletingRebalance"


def test_a_member_that_changes_between_join_and_sync_starts_the_rebalance_anew() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.client("alice"), coordinator.client("bob")
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert bob.syncs().is_waiting
    alice.protocols = (("range", b"payments"),)
    alice.joins()
    assert bob.synced is not None
    assert bob.synced.error is ErrorCode.rebalance_in_progress
    bob.joins()
    assert alice.generation == bob.generation == 2


def test_members_that_miss_the_rebalance_time_out_are_removed() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob", rebalance_ms=8_000)
    carol = coordinator.client("carol", rebalance_ms=8_000)
    carol.joins()
    alice.joins()
    coordinator.passes(8_000)
    assert alice.generation == carol.generation == 2
    assert len(alice.join_answer.members) == 2
    assert bob.heartbeat() is ErrorCode.unknown_member_id


def test_the_longest_rebalance_time_out_of_the_members_counts() -> None:
    coordinator = Coordinator()
    alice, bob = (
        coordinator.client("alice", rebalance_ms=7_000),
        coordinator.client("bob", rebalance_ms=9_000),
    )
    alice.joins()
    bob.joins()
    coordinator.passes(3 * INITIAL_DELAY_MS)
    coordinator.assigns(alice, bob)
    assert alice.joins().is_waiting
    coordinator.passes(8_999)
    assert alice.joined is not None
    assert alice.joined.is_waiting
    coordinator.passes(1)
    assert alice.generation == 2


def test_another_member_leads_if_the_leader_does_not_join() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob", rebalance_ms=8_000)
    bob.protocols = (("range", b"payments"),)
    bob.joins()
    coordinator.passes(8_000)
    assert bob.is_leader
    assert bob.generation == 2
    assert alice.heartbeat() is ErrorCode.unknown_member_id


def test_a_leader_stays_when_an_older_member_joins_again() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.static_group("alice", "bob", rebalance_ms=8_000, session_ms=30_000)
    bob.protocols = (("range", b"payments"),)
    bob.joins()
    coordinator.passes(8_000)
    assert bob.is_leader
    bob.syncs({})
    bob.joins()
    alice.joins()
    assert alice.generation == bob.generation == 3
    assert bob.is_leader


def test_a_member_that_waits_for_a_rebalance_needs_no_heartbeats() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    assert alice.joins().is_waiting
    for _ in range(4):
        coordinator.passes(SESSION_MS - 1_000)
        assert bob.heartbeat() is ErrorCode.rebalance_in_progress
    bob.joins()
    assert alice.generation == bob.generation == 2


def test_a_member_without_heartbeats_fails_after_its_session_time_out() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    bob.heartbeat()
    coordinator.passes(SESSION_MS // 2)
    assert alice.heartbeat() is ErrorCode.none
    coordinator.passes(SESSION_MS // 2)
    assert bob.heartbeat() is ErrorCode.unknown_member_id
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    alice.joins()
    assert alice.generation == 2


def test_a_commit_is_a_sign_of_life() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    for _ in range(4):
        coordinator.passes(SESSION_MS - 1_000)
        assert errors_of(alice.commits({ORDERS_0: 1})) == {ErrorCode.none}
    assert alice.heartbeat() is ErrorCode.none


def test_members_that_do_not_ask_for_their_assignment_are_removed() -> None:
    coordinator = Coordinator()
    alice, bob = (
        coordinator.client("alice", rebalance_ms=8_000),
        coordinator.client("bob", rebalance_ms=8_000),
    )
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    alice.syncs({alice.member_id: b"all"})
    assert coordinator.state() == "Stable"
    for _ in range(2):
        alice.heartbeat()
        bob.heartbeat()
        coordinator.passes(4_000)
    assert bob.heartbeat() is ErrorCode.unknown_member_id
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress


def test_a_leader_that_brings_no_assignment_is_removed_and_another_leads() -> None:
    coordinator = Coordinator()
    alice, bob = (
        coordinator.client("alice", rebalance_ms=7_000),
        coordinator.client("bob", rebalance_ms=7_000),
    )
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert bob.syncs().is_waiting
    alice.heartbeat()
    coordinator.passes(7_000)
    assert bob.synced is not None
    assert bob.synced.error is ErrorCode.rebalance_in_progress
    bob.joins()
    assert bob.is_leader
    assert alice.heartbeat() is ErrorCode.unknown_member_id


def test_a_group_whose_last_member_fails_is_empty_in_a_generation_of_its_own() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.passes(SESSION_MS)
    assert coordinator.state() == "Empty"
    value = coordinator.log[-1].value
    assert value == GroupValue("consumer", 2, None, None, WALL_START_MS + coordinator.now_ms, ())
    assert alice.heartbeat() is ErrorCode.unknown_member_id


def test_a_generation_is_written_with_all_that_its_members_said() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.static_group("kitchen")
    value = coordinator.log[-1].value
    assert isinstance(value, GroupValue)
    assert (value.protocol_type, value.generation_id, value.protocol) == ("consumer", 1, "range")
    assert value.leader == alice.member_id
    assert value.state_timestamp_ms == WALL_START_MS + INITIAL_DELAY_MS
    assert value.members == (
        MemberValue(
            member_id=alice.member_id,
            group_instance_id="kitchen",
            client_id="kitchen",
            client_host="/10.0.0.1",
            rebalance_timeout_ms=REBALANCE_MS,
            session_timeout_ms=SESSION_MS,
            subscription=b"orders",
            assignment=b"kitchen",
        ),
    )


def test_a_rebalance_that_no_member_joins_is_prolonged_until_one_does() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.static_group("alice", "bob", rebalance_ms=8_000, session_ms=30_000)
    carol = coordinator.client("carol", rebalance_ms=8_000)
    carol.joins()
    carol.leaves()
    coordinator.passes(3 * 8_000 - 1)
    assert coordinator.state() == "PreparingRebalance"
    alice.joins()
    coordinator.passes(1)
    assert alice.generation == 2
    assert len(alice.join_answer.members) == 2
    assert bob.heartbeat(generation_id=2) is ErrorCode.none


def test_a_rebalance_that_no_member_joins_ends_with_their_sessions() -> None:
    coordinator = Coordinator()
    coordinator.static_group("alice", "bob", rebalance_ms=8_000, session_ms=30_000)
    carol = coordinator.client("carol", rebalance_ms=8_000)
    carol.joins()
    carol.leaves()
    coordinator.passes(32_000)
    assert coordinator.state() == "Empty"
