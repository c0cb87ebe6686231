"""Clients become members: member ids first, one generation for those that start together, bad input."""

import pytest

from sparklog.core.group.members.join import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX
from sparklog.core.group.requests import JoinGroup
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from tests.core.group.dialogue import INITIAL_DELAY_MS, SESSION_MS, Coordinator


def test_a_new_client_is_given_a_member_id_first() -> None:
    """KIP-394: a client that retries its first JoinGroup must not become several members."""
    coordinator = Coordinator()
    answer = coordinator.ask(coordinator.client("alice").join_request()).answer
    assert answer.error is ErrorCode.member_id_required
    assert answer.member_id == "alice-uuid1"
    assert answer.generation_id == -1
    assert coordinator.state() == "Empty"


def test_an_old_client_becomes_a_member_without_knowing_its_member_id() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice", version=3)
    assert alice.joins().is_waiting
    coordinator.passes(INITIAL_DELAY_MS)
    assert alice.join_answer.member_id == "alice-uuid1"


def test_the_first_member_leads_and_sees_the_metadata_of_all() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice", protocols=(("range", b"orders"),))
    bob = coordinator.client("bob", protocols=(("range", b"payments"),))
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert (alice.is_leader, bob.is_leader) == (True, False)
    assert alice.generation == bob.generation == 1
    seen = {member.member_id: member.metadata for member in alice.join_answer.members}
    assert seen == {alice.member_id: b"orders", bob.member_id: b"payments"}
    assert bob.join_answer.members == ()
    assert (bob.join_answer.protocol_type, bob.join_answer.protocol) == ("consumer", "range")


def test_the_member_id_of_a_static_member_has_its_instance_id() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.static_group("kitchen")
    assert alice.member_id == "kitchen-uuid1"


def test_a_member_id_that_is_not_used_expires_with_the_session_time_out() -> None:
    coordinator = Coordinator()
    given = coordinator.ask(coordinator.client("alice").join_request()).answer.member_id
    coordinator.passes(SESSION_MS)
    late = coordinator.client("alice", member_id=given)
    assert late.joins().error is ErrorCode.unknown_member_id
    assert coordinator.state() == "Dead"


def test_a_rebalance_waits_for_a_client_that_was_given_a_member_id() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    bob = coordinator.client("bob")
    bob.member_id = coordinator.ask(bob.join_request()).answer.member_id
    assert alice.joins().is_waiting
    bob.joins()
    assert alice.generation == bob.generation == 2


def test_a_rebalance_goes_on_when_an_unused_member_id_has_expired() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.ask(coordinator.client("bob").join_request())
    assert alice.joins().is_waiting
    coordinator.passes(SESSION_MS)
    assert alice.generation == 2


def test_member_ids_that_were_given_out_are_bounded_and_the_oldest_is_forgotten() -> None:
    coordinator = Coordinator()
    given = [
        coordinator.ask(coordinator.client("c").join_request()).answer.member_id
        for _ in range(PENDING_MEMBERS_MAX + 1)
    ]
    assert coordinator.client("c", member_id=given[0]).joins().error is ErrorCode.unknown_member_id
    assert coordinator.client("c", member_id=given[1]).joins().is_waiting


def test_a_given_member_id_cannot_be_used_with_an_instance_id() -> None:
    coordinator = Coordinator()
    given = coordinator.ask(coordinator.client("alice").join_request()).answer.member_id
    odd = coordinator.client("alice", member_id=given, instance="kitchen")
    assert odd.joins().error is ErrorCode.unknown_member_id


@pytest.mark.parametrize("session_ms", [0, -1, 5_999, 1_800_001])
def test_a_session_time_out_outside_the_bounds_is_refused(session_ms: int) -> None:
    coordinator = Coordinator()
    asked = coordinator.client("alice", session_ms=session_ms).joins()
    assert asked.error is ErrorCode.invalid_session_timeout
    assert coordinator.state() == "Dead"


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_the_session_time_out_are_inclusive(session_ms: int) -> None:
    assert Coordinator().client("alice", session_ms=session_ms).joins().is_waiting


def test_a_group_without_a_name_is_refused() -> None:
    asked = Coordinator().client("alice", group_id="").joins()
    assert asked.error is ErrorCode.invalid_group_id


def test_a_member_id_of_an_unknown_group_is_refused_and_makes_no_group() -> None:
    coordinator = Coordinator()
    asked = coordinator.client("alice", member_id="alice-77").joins()
    assert asked.error is ErrorCode.unknown_member_id
    assert coordinator.state() == "Dead"


@pytest.mark.parametrize("changes", [{"protocol_type": ""}, {"protocols": ()}])
def test_a_first_member_without_protocol_is_refused_and_makes_no_group(changes: dict[str, object]) -> None:
    coordinator = Coordinator()
    asked = coordinator.client("alice", **changes).joins()
    assert asked.error is ErrorCode.inconsistent_group_protocol
    assert coordinator.state() == "Dead"


def test_a_member_of_another_protocol_type_is_refused() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice")
    asked = coordinator.client("worker", protocol_type="connect").joins()
    assert asked.error is ErrorCode.inconsistent_group_protocol
    assert coordinator.state() == "Stable"


def test_a_member_that_shares_no_protocol_with_all_others_is_refused() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice", protocols=(("range", b""), ("sticky", b"")))
    assert coordinator.client("bob", protocols=(("sticky", b""),)).joins().is_waiting
    late = coordinator.client("carol", protocols=(("range", b""),)).joins()
    assert late.error is ErrorCode.inconsistent_group_protocol


def test_of_two_protocols_with_one_name_the_first_counts() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", protocols=(("range", b"first"), ("range", b"second")))
    assert alice.join_answer.members[0].metadata == b"first"


def test_all_members_vote_for_a_protocol_that_everybody_supports() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice", protocols=(("a", b""), ("b", b""), ("c", b"")))
    bob = coordinator.client("bob", protocols=(("c", b""), ("b", b"")))
    carol = coordinator.client("carol", protocols=(("x", b""), ("c", b""), ("b", b"")))
    for client in (alice, bob, carol):
        client.joins()
    coordinator.passes(3 * INITIAL_DELAY_MS)
    assert alice.join_answer.protocol == "c"


def test_a_group_that_is_full_takes_no_further_member() -> None:
    coordinator = Coordinator(settings=GroupSettings(size_max=2))
    coordinator.stable_group("alice", "bob")
    asked = coordinator.client("carol").joins()
    assert asked.error is ErrorCode.group_max_size_reached
    assert asked.answer.member_id == ""
    assert coordinator.state() == "Stable"


def test_members_of_a_full_group_may_join_again() -> None:
    coordinator = Coordinator(settings=GroupSettings(size_max=2))
    alice, bob = coordinator.stable_group("alice", "bob")
    assert alice.joins().is_waiting
    bob.joins()
    assert alice.generation == bob.generation == 2


def test_a_group_above_a_lowered_limit_loses_the_members_that_join_last() -> None:
    coordinator = Coordinator()
    alice, bob, carol = coordinator.stable_group("alice", "bob", "carol")
    coordinator.restart(size_max=2)
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    assert carol.joins().is_waiting
    assert alice.joins().is_waiting
    assert bob.joins().error is ErrorCode.group_max_size_reached
    assert alice.generation == carol.generation == 2


def test_a_new_member_that_waits_for_five_minutes_is_taken_for_gone() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    bob = coordinator.client("bob", rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    bob.joins()
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        assert alice.heartbeat() is ErrorCode.rebalance_in_progress
        coordinator.passes(5_000)
    assert bob.join_answer.error is ErrorCode.unknown_member_id
    assert bob.join_answer.member_id == ""


def test_a_join_that_is_sent_again_replaces_the_one_that_waits() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice")
    first = alice.joins()
    second = alice.joins()
    assert first.error is ErrorCode.rebalance_in_progress
    coordinator.passes(INITIAL_DELAY_MS)
    assert second.error is ErrorCode.none


def test_a_join_of_an_unknown_member_is_refused_in_a_group_with_members() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice")
    assert coordinator.client("eve", member_id="eve-1").joins().error is ErrorCode.unknown_member_id


def test_requests_know_the_answer_of_a_coordinator_that_loads() -> None:
    request: JoinGroup = Coordinator().client("alice").join_request()
    assert request.while_loading().error is ErrorCode.coordinator_load_in_progress
    assert request.refused(ErrorCode.not_coordinator).error is ErrorCode.not_coordinator
