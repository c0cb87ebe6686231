"""Members get their assignment, and show by heartbeats that they live."""

from sparklog.core.group.records import GroupValue
from sparklog.core.group.requests import Heartbeat, SyncGroup
from sparklog.model.errors import ErrorCode
from tests.core.group.dialogue import GROUP, INITIAL_DELAY_MS, SESSION_MS, Client, Coordinator


def joined_pair(coordinator: Coordinator) -> tuple[Client, Client]:
    """Two members of a generation that have no assignment yet; the first leads."""
    alice, bob = coordinator.client("alice"), coordinator.client("bob")
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert alice.generation == bob.generation == 1
    return alice, bob


def test_followers_wait_for_the_assignment_of_the_leader() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    assert bob.syncs().is_waiting
    alice.syncs({alice.member_id: b"A", bob.member_id: b"B"})
    assert (alice.assignment, bob.assignment) == (b"A", b"B")
    assert coordinator.state() == "Stable"
    assert bob.synced is not None
    assert (bob.synced.answer.protocol_type, bob.synced.answer.protocol) == ("consumer", "range")


def test_nobody_hears_of_an_assignment_before_it_is_in_the_log() -> None:
    coordinator = Coordinator(is_log_slow=True)
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    asked = alice.syncs({alice.member_id: b"A"})
    assert asked.is_waiting
    assert coordinator.state() == "CompletingRebalance"
    coordinator.log_writes()
    assert coordinator.state() == "Stable"
    assert alice.assignment == b"A"


def test_a_follower_that_asks_later_is_answered_at_once() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    alice.syncs({bob.member_id: b"B"})
    assert bob.syncs().answer.assignment == b"B"


def test_members_that_the_leader_left_out_get_an_empty_assignment() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    alice.syncs({alice.member_id: b"A"})
    assert bob.assignment == b""


def test_an_assignment_of_a_stranger_is_ignored() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    alice.syncs({"eve-1": b"E", bob.member_id: b"B"})
    value = coordinator.log[-1].value
    assert isinstance(value, GroupValue)
    assert {member.member_id: member.assignment for member in value.members} == {
        alice.member_id: b"",
        bob.member_id: b"B",
    }


def test_an_assignment_of_a_follower_is_ignored() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    bob.syncs({bob.member_id: b"everything"})
    alice.syncs({})
    assert bob.assignment == b""


def test_a_sync_of_another_generation_is_refused() -> None:
    coordinator = Coordinator()
    alice, _ = joined_pair(coordinator)
    assert alice.syncs(generation_id=7).error is ErrorCode.illegal_generation


def test_a_sync_of_an_unknown_member_or_group_is_refused() -> None:
    coordinator = Coordinator()
    alice, _ = joined_pair(coordinator)
    assert alice.syncs(member_id="eve-1").error is ErrorCode.unknown_member_id
    elsewhere = SyncGroup("elsewhere", generation_id=1, member_id=alice.member_id)
    assert coordinator.ask(elsewhere).error is ErrorCode.unknown_member_id
    assert coordinator.state("elsewhere") == "Dead"


def test_a_sync_that_names_another_protocol_is_refused() -> None:
    """KIP-559: from version 5 on the member says what it was told."""
    coordinator = Coordinator()
    alice, _ = joined_pair(coordinator)
    assert alice.syncs(protocol="sticky").error is ErrorCode.inconsistent_group_protocol
    assert alice.syncs(protocol_type="connect").error is ErrorCode.inconsistent_group_protocol
    assert alice.syncs(protocol=None, protocol_type=None).error is ErrorCode.none


def test_a_sync_while_a_rebalance_is_prepared_is_refused() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.joins()
    assert bob.syncs().error is ErrorCode.rebalance_in_progress


def test_a_sync_that_is_sent_again_replaces_the_one_that_waits() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    first = bob.syncs()
    second = bob.syncs()
    assert first.error is ErrorCode.rebalance_in_progress
    alice.syncs({bob.member_id: b"B"})
    assert second.answer.assignment == b"B"


def test_a_member_that_waits_for_its_assignment_needs_no_heartbeats() -> None:
    coordinator = Coordinator()
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    for _ in range(4):
        coordinator.passes(SESSION_MS - 1_000)
        alice.heartbeat()
    alice.syncs({bob.member_id: b"B"})
    assert bob.assignment == b"B"
    coordinator.passes(SESSION_MS - 1)
    assert bob.heartbeat() is ErrorCode.none


def test_a_heartbeat_between_join_and_sync_is_a_success() -> None:
    alice, _ = joined_pair(Coordinator())
    assert alice.heartbeat() is ErrorCode.none


def test_heartbeats_of_others_are_refused() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    assert alice.heartbeat(generation_id=0) is ErrorCode.illegal_generation
    assert alice.heartbeat(member_id="eve-1") is ErrorCode.unknown_member_id
    assert alice.heartbeat(group_instance_id="kitchen") is ErrorCode.unknown_member_id
    elsewhere = Heartbeat("elsewhere", generation_id=1, member_id=alice.member_id)
    assert coordinator.ask(elsewhere).error is ErrorCode.unknown_member_id
    nameless = Heartbeat("", generation_id=1, member_id=alice.member_id)
    assert coordinator.ask(nameless).error is ErrorCode.invalid_group_id


def test_a_heartbeat_to_an_empty_group_is_refused() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.leaves()
    assert alice.heartbeat() is ErrorCode.unknown_member_id


def test_while_loading_heartbeats_succeed_and_a_sync_starts_over() -> None:
    heartbeat = Heartbeat(GROUP, generation_id=1, member_id="alice-1")
    sync = SyncGroup(GROUP, generation_id=1, member_id="alice-1")
    assert heartbeat.while_loading().error is ErrorCode.none
    assert sync.while_loading().error is ErrorCode.rebalance_in_progress


def test_an_assignment_that_the_log_refuses_starts_another_rebalance() -> None:
    coordinator = Coordinator(is_log_slow=True)
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    asked = alice.syncs({alice.member_id: b"A"})
    coordinator.log_refuses(ErrorCode.not_enough_replicas)
    assert asked.error is ErrorCode.coordinator_not_available
    assert bob.synced is not None
    assert bob.synced.error is ErrorCode.coordinator_not_available
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    assert coordinator.log == []


def test_an_assignment_larger_than_a_batch_is_an_error_of_the_server() -> None:
    coordinator = Coordinator(is_log_slow=True)
    alice, _ = joined_pair(coordinator)
    asked = alice.syncs({alice.member_id: b"A"})
    coordinator.log_refuses(ErrorCode.message_too_large)
    assert asked.error is ErrorCode.unknown_server_error


def test_an_assignment_in_doubt_is_neither_given_out_nor_forgotten() -> None:
    coordinator = Coordinator(is_log_slow=True)
    alice, bob = joined_pair(coordinator)
    bob.syncs()
    asked = alice.syncs({alice.member_id: b"A", bob.member_id: b"B"})
    coordinator.log_times_out()
    assert asked.error is ErrorCode.rebalance_in_progress
    assert coordinator.state() == "CompletingRebalance"
    coordinator.passes(100 * SESSION_MS)
    assert coordinator.state() == "CompletingRebalance"
    coordinator.log_writes()
    assert coordinator.state() == "Stable"
    assert bob.syncs().answer.assignment == b"B"
