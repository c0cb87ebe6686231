"""Members that leave: one, several, by instance id; and what the others hear of it."""

from sparklog.core.group.requests import LeaveGroup, LeavingMember, OffsetDelete
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import GROUP, INITIAL_DELAY_MS, Client, Coordinator

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def test_the_others_share_the_partitions_of_a_member_that_leaves() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    assert bob.leaves() is ErrorCode.none
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress
    alice.joins()
    assert len(alice.join_answer.members) == 1


def test_another_member_leads_when_the_leader_leaves() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.leaves()
    bob.joins()
    assert bob.is_leader


def test_a_group_that_all_have_left_is_empty() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.leaves()
    bob.leaves()
    assert coordinator.state() == "Empty"


def test_several_members_leave_at_once_and_each_gets_its_own_answer() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.static_group("alice", "bob")
    leaving = (
        LeavingMember("", "bob", "scaled down by an operator"),
        LeavingMember("eve-1"),
        LeavingMember("", "nobody"),
        LeavingMember(""),
        LeavingMember("wrong", "alice"),
    )
    answer = coordinator.ask(LeaveGroup(GROUP, members=leaving)).answer
    assert answer.error is ErrorCode.none
    assert [member.error for member in answer.members] == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.unknown_member_id,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
    ]
    assert answer.members[0].group_instance_id == "bob"
    assert bob.heartbeat() is ErrorCode.unknown_member_id
    assert alice.heartbeat() is ErrorCode.rebalance_in_progress


def test_a_client_that_was_given_a_member_id_may_leave() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    given = coordinator.ask(coordinator.client("bob").join_request()).answer.member_id
    alice.joins()
    answer = coordinator.ask(LeaveGroup(GROUP, members=(LeavingMember(given),))).answer
    assert answer.members[0].error is ErrorCode.none
    assert alice.generation == 2


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    waiting = alice.joins()
    alice.leaves()
    assert waiting.error is ErrorCode.unknown_member_id
    assert bob.heartbeat() is ErrorCode.rebalance_in_progress


def test_a_member_that_leaves_while_it_waits_for_its_assignment_is_answered() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.client("alice"), coordinator.client("bob")
    alice.joins()
    bob.joins()
    coordinator.passes(2 * INITIAL_DELAY_MS)
    assert alice.generation == 1
    waiting = bob.syncs()
    bob.leaves()
    assert waiting.error is ErrorCode.unknown_member_id
    alice.joins()
    assert alice.generation == 2


def test_a_rebalance_goes_on_when_the_missing_member_leaves() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.joins()
    bob.leaves()
    assert alice.generation == 2


def test_members_of_an_unknown_group_are_unknown() -> None:
    answer = Coordinator().ask(LeaveGroup("elsewhere", members=(LeavingMember("eve-1"),))).answer
    assert answer.error is ErrorCode.none
    assert answer.members[0].error is ErrorCode.unknown_member_id


def test_a_group_without_a_name_is_refused() -> None:
    answer = Coordinator().ask(LeaveGroup("", members=(LeavingMember("eve-1"),))).answer
    assert answer.error is ErrorCode.invalid_group_id
    assert answer.members == ()


def test_an_empty_generation_that_the_log_refuses_is_written_with_the_next_commit() -> None:
    """Else the next coordinator would revive the members, and one of them could commit over it."""
    coordinator = Coordinator()
    alice = left_while_the_log_refused(coordinator)
    coordinator.client("admin").commits({ORDERS_0: 0})
    coordinator.restart()
    assert coordinator.state() == "Empty"
    assert alice.heartbeat() is ErrorCode.unknown_member_id
    assert coordinator.committed() == {ORDERS_0: 0, ORDERS_1: 5}


def test_an_empty_generation_that_the_log_refuses_is_written_with_the_next_removal() -> None:
    coordinator = Coordinator()
    alice = left_while_the_log_refused(coordinator)
    coordinator.ask(OffsetDelete(GROUP, topic_partitions=(ORDERS_0,)))
    coordinator.restart()
    assert coordinator.state() == "Empty"
    assert alice.heartbeat() is ErrorCode.unknown_member_id
    assert coordinator.committed() == {ORDERS_1: 5}


def left_while_the_log_refused(coordinator: Coordinator) -> Client:
    """A member that has left; the log still has its generation, and two offsets."""
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5, ORDERS_1: 5})
    coordinator.is_log_slow = True
    alice.leaves()
    coordinator.log_refuses(ErrorCode.not_enough_replicas)
    coordinator.is_log_slow = False
    assert coordinator.state() == "Empty"
    return alice
