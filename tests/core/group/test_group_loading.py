"""Another broker becomes the coordinator: groups go on where the log says they were."""

from sparklog.core.coordinator.actions import Reply, StateRecord, Token
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.group.records import GroupKey, GroupValue, MemberValue
from sparklog.core.group.requests import DescribeGroup, Heartbeat
from sparklog.core.group.responses import HeartbeatAnswer
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import (
    GROUP,
    INITIAL_DELAY_MS,
    SESSION_MS,
    Coordinator,
    at,
    errors_of,
    topics_of,
)

ORDERS_0 = TopicPartition("orders", 0)


def test_a_stable_group_goes_on_without_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.commits({ORDERS_0: 5})
    described = coordinator.described()
    coordinator.restart()
    assert coordinator.described() == described
    assert (alice.heartbeat(), bob.heartbeat()) == (ErrorCode.none, ErrorCode.none)
    assert errors_of(bob.commits({ORDERS_0: 6})) == {ErrorCode.none}
    assert coordinator.committed() == {ORDERS_0: 6}
    assert bob.syncs().answer.assignment == b"bob"


def test_members_have_a_whole_session_from_the_end_of_loading() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.now_ms += 100 * SESSION_MS
    coordinator.restart()
    coordinator.passes(SESSION_MS - 1)
    assert alice.heartbeat() is ErrorCode.none
    coordinator.passes(SESSION_MS)
    assert alice.heartbeat() is ErrorCode.unknown_member_id


def test_a_rebalance_that_was_prepared_is_lost_and_the_old_generation_goes_on() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    carol = coordinator.client("carol")
    carol.joins()
    coordinator.restart()
    assert coordinator.state() == "Stable"
    assert alice.heartbeat() is ErrorCode.none
    assert carol.joins().error is ErrorCode.unknown_member_id
    carol.member_id = ""
    assert carol.joins().is_waiting
    alice.joins()
    bob.joins()
    assert alice.generation == carol.generation == 2


def test_a_generation_that_was_not_written_is_lost() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.joins()
    assert alice.generation == 2
    coordinator.restart()
    assert alice.syncs().error is ErrorCode.illegal_generation
    assert alice.heartbeat(generation_id=1) is ErrorCode.none


def test_a_commit_that_was_not_written_is_lost_and_was_not_acknowledged() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.is_log_slow = True
    asked = alice.commits({ORDERS_0: 5})
    coordinator.restart()
    assert asked.is_waiting
    assert coordinator.committed(ORDERS_0) == {ORDERS_0: -1}


def test_a_static_member_comes_back_to_another_coordinator_without_a_rebalance() -> None:
    coordinator = Coordinator()
    alice, _ = coordinator.static_group("alice", "bob")
    coordinator.restart()
    again = coordinator.client("bob", instance="bob")
    again.joins()
    assert again.generation == 1
    assert alice.heartbeat() is ErrorCode.none


def test_an_empty_group_is_loaded_empty_and_keeps_its_generation() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.leaves()
    coordinator.restart()
    assert coordinator.state() == "Empty"
    assert coordinator.described().protocol_type == "consumer"
    bob = coordinator.client("bob")
    bob.joins()
    coordinator.passes(INITIAL_DELAY_MS)
    assert bob.generation == 3


def test_a_group_that_only_stored_offsets_is_loaded() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.restart()
    assert coordinator.state() == "Empty"
    assert coordinator.committed() == {ORDERS_0: 5}


def test_a_deleted_group_stays_deleted() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.deletes_topics("orders")
    coordinator.restart()
    assert coordinator.state() == "Dead"


def test_odd_records_of_other_writers_are_loaded_as_far_as_they_make_sense() -> None:
    def member(member_id: str, instance: str | None) -> MemberValue:
        return MemberValue(member_id, instance, "c", "/h", 9_000, 9_000, b"orders", b"")

    members = (member("a", "i"), member("b", "i"), member("c", None), member("c", None))
    shard = GroupMachine.of(GroupSettings(), topics_of)
    value = GroupValue("consumer", 4, "range", "nobody", -1, members)
    shard.replay(StateRecord(GroupKey(GROUP), value))
    shard.on_loaded(at(0))
    answered = shard.on_request(Token(1), DescribeGroup(GROUP), at(0))
    assert isinstance(answered[0], Reply)
    assert [one.member_id for one in answered[0].response.members] == ["b", "c"]
    beat = Heartbeat(GROUP, generation_id=4, member_id="b", group_instance_id="i")
    assert shard.on_request(Token(2), beat, at(0)) == [Reply(Token(2), HeartbeatAnswer(ErrorCode.none))]


def test_a_coordinator_that_resigns_answers_all_that_waits() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    others = coordinator.client("carol", group_id="others")
    others.joins()
    coordinator.passes(INITIAL_DELAY_MS)
    dave = coordinator.client("dave", group_id="others")
    waiting = [dave.joins(), alice.joins()]
    coordinator.is_log_slow = True
    waiting.append(bob.commits({ORDERS_0: 5}))
    coordinator.resigns()
    assert [one.error for one in waiting[:2]] == [ErrorCode.not_coordinator] * 2
    assert errors_of(waiting[2]) == {ErrorCode.not_coordinator}
