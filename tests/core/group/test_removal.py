"""Groups and offsets that are removed: by an administrator, and with their topics."""

import pytest

from sparklog.core.coordinator.actions import InDoubt, StateRecord
from sparklog.core.group.records import GroupKey, OffsetKey
from sparklog.core.group.requests import DeleteGroup, OffsetDelete
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import GROUP, Asked, Coordinator, errors_of

ORDERS_0 = TopicPartition("orders", 0)
PAYMENTS_0 = TopicPartition("payments", 0)


def emptied(coordinator: Coordinator) -> None:
    """A group that had a member, and has an offset."""
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5})
    alice.leaves()


def delete_offsets(coordinator: Coordinator, *places: TopicPartition) -> Asked:
    return coordinator.ask(OffsetDelete(GROUP, topic_partitions=places))


def test_a_group_without_members_is_deleted_with_its_offsets() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    assert coordinator.ask(DeleteGroup(GROUP)).error is ErrorCode.none
    assert coordinator.log[-2:] == [
        StateRecord(OffsetKey(GROUP, ORDERS_0), None),
        StateRecord(GroupKey(GROUP), None),
    ]
    assert coordinator.state() == "Dead"
    assert coordinator.shard.applied_state() == {}


def test_a_group_that_only_stored_offsets_has_no_record_to_delete() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_0: 5})
    assert coordinator.ask(DeleteGroup(GROUP)).error is ErrorCode.none
    assert coordinator.log[-1] == StateRecord(OffsetKey(GROUP, ORDERS_0), None)
    assert coordinator.state() == "Dead"


def test_a_group_with_members_is_not_deleted() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice")
    assert coordinator.ask(DeleteGroup(GROUP)).error is ErrorCode.non_empty_group
    assert coordinator.state() == "Stable"


def test_a_group_that_is_not_there_is_not_found() -> None:
    assert Coordinator().ask(DeleteGroup(GROUP)).error is ErrorCode.group_id_not_found


def test_member_ids_that_were_given_out_end_with_the_group() -> None:
    coordinator = Coordinator()
    given = coordinator.ask(coordinator.client("alice").join_request()).answer.member_id
    assert coordinator.ask(DeleteGroup(GROUP)).error is ErrorCode.none
    assert coordinator.client("alice", member_id=given).joins().error is ErrorCode.unknown_member_id


def test_a_deletion_takes_offsets_with_it_whose_commit_is_under_way() -> None:
    coordinator = Coordinator(is_log_slow=True)
    committed = coordinator.client("admin").commits({ORDERS_0: 5})
    deleted = coordinator.ask(DeleteGroup(GROUP))
    coordinator.log_writes()
    assert errors_of(committed) == {ErrorCode.none}
    assert deleted.error is ErrorCode.none
    assert coordinator.shard.applied_state() == {}
    assert coordinator.state() == "Dead"


def test_a_deletion_is_answered_when_it_is_in_the_log() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    coordinator.is_log_slow = True
    deleted = coordinator.ask(DeleteGroup(GROUP))
    assert deleted.is_waiting
    coordinator.log_writes()
    assert deleted.error is ErrorCode.none


def test_a_deletion_that_the_log_refuses_leaves_the_group() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    coordinator.is_log_slow = True
    deleted = coordinator.ask(DeleteGroup(GROUP))
    coordinator.log_refuses(ErrorCode.not_enough_replicas)
    assert deleted.error is ErrorCode.coordinator_not_available
    assert coordinator.state() == "Empty"
    assert coordinator.committed() == {ORDERS_0: 5}


def test_a_deletion_in_doubt_removes_the_group_when_it_is_in_the_log_after_all() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    coordinator.is_log_slow = True
    deleted = coordinator.ask(DeleteGroup(GROUP))
    coordinator.log_answers(InDoubt(ErrorCode.request_timed_out))
    assert deleted.error is ErrorCode.coordinator_not_available
    assert coordinator.state() == "Empty"
    coordinator.log_writes()
    assert coordinator.state() == "Dead"


def test_many_offsets_are_removed_in_writes_that_fit_into_a_batch() -> None:
    coordinator = Coordinator()
    name = "t" * 200
    coordinator.client("admin").commits({TopicPartition(name, number): 1 for number in range(2_000)})
    coordinator.is_log_slow = True
    deleted = coordinator.ask(DeleteGroup(GROUP))
    assert len(coordinator.open_writes) > 1
    assert all(len(write.records) * 270 < 300_000 for write in coordinator.open_writes)
    coordinator.log_answers(InDoubt(ErrorCode.request_timed_out))
    assert deleted.error is ErrorCode.coordinator_not_available
    coordinator.log_writes()
    assert coordinator.state() == "Dead"


def test_a_deleted_group_begins_anew() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    coordinator.ask(DeleteGroup(GROUP))
    [alice] = coordinator.stable_group("alice")
    assert alice.generation == 1
    assert coordinator.committed() == {}


def test_offsets_of_a_topic_that_is_not_subscribed_are_deleted() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", protocols=(("range", b"orders"),))
    alice.commits({ORDERS_0: 5, PAYMENTS_0: 6})
    answer = delete_offsets(coordinator, ORDERS_0, PAYMENTS_0).answer
    assert answer.error is ErrorCode.none
    assert answer.errors == (
        (ORDERS_0, ErrorCode.group_subscribed_to_topic),
        (PAYMENTS_0, ErrorCode.none),
    )
    assert coordinator.committed() == {ORDERS_0: 5}


def test_of_a_group_whose_topics_are_not_known_no_offset_is_deleted() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", protocols=(("range", b"?"),))
    alice.commits({PAYMENTS_0: 6})
    answer = delete_offsets(coordinator, PAYMENTS_0).answer
    assert answer.errors == ((PAYMENTS_0, ErrorCode.group_subscribed_to_topic),)


def test_a_group_of_another_protocol_type_must_be_empty() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("worker", protocol_type="connect")
    answer = delete_offsets(coordinator, ORDERS_0).answer
    assert (answer.error, answer.errors) == (ErrorCode.non_empty_group, ())


def test_an_offset_that_is_not_there_is_deleted_without_a_write() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    written = len(coordinator.log)
    answer = delete_offsets(coordinator, PAYMENTS_0).answer
    assert answer.errors == ((PAYMENTS_0, ErrorCode.none),)
    assert len(coordinator.log) == written


def test_an_empty_group_goes_with_its_last_offset() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    delete_offsets(coordinator, ORDERS_0)
    assert coordinator.state() == "Dead"
    assert coordinator.shard.applied_state() == {}


@pytest.mark.parametrize(
    ("group_id", "error"), [("", ErrorCode.invalid_group_id), ("elsewhere", ErrorCode.group_id_not_found)]
)
def test_offsets_of_no_group_are_not_deleted(group_id: str, error: ErrorCode) -> None:
    asked = Coordinator().ask(OffsetDelete(group_id, topic_partitions=(ORDERS_0,)))
    assert (asked.error, asked.answer.errors) == (error, ())


def test_offsets_of_a_deleted_topic_go_from_every_group() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5, PAYMENTS_0: 6})
    other = coordinator.client("admin", group_id="others")
    other.commits({ORDERS_0: 5})
    coordinator.deletes_topics("orders")
    assert coordinator.committed() == {PAYMENTS_0: 6}
    assert coordinator.state() == "Stable"
    assert coordinator.state("others") == "Dead"
    assert alice.heartbeat() is ErrorCode.none


def test_a_commit_under_way_does_not_outlive_its_topic() -> None:
    coordinator = Coordinator(is_log_slow=True)
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.deletes_topics("orders")
    coordinator.log_writes()
    assert coordinator.shard.applied_state() == {}


def test_a_topic_may_go_while_the_group_waits_for_its_log() -> None:
    coordinator = Coordinator()
    emptied(coordinator)
    coordinator.is_log_slow = True
    coordinator.ask(DeleteGroup(GROUP))
    coordinator.deletes_topics("orders")
    coordinator.log_writes()
    assert coordinator.state() == "Dead"


def test_a_commit_in_doubt_does_not_outlive_its_topic() -> None:
    coordinator = Coordinator(is_log_slow=True)
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.log_times_out()
    coordinator.deletes_topics("orders")
    coordinator.log_writes()
    assert coordinator.shard.applied_state() == {}
