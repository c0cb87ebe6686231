"""Committed offsets: who may commit, when a commit counts, and what a reader gets."""

import pytest

from sparklog.core.group.records import OffsetKey, OffsetValue
from sparklog.core.group.requests import DescribeGroup, OffsetCommit, OffsetFetch, OffsetToCommit
from sparklog.core.group.responses import FetchedOffset
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import (
    GROUP,
    INITIAL_DELAY_MS,
    SESSION_MS,
    WALL_START_MS,
    Asked,
    Coordinator,
    errors_of,
)

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def commit_one(coordinator: Coordinator, to_commit: OffsetToCommit, **changes: int) -> Asked:
    """A commit of a client that manages no membership here."""
    request = OffsetCommit(GROUP, generation_id=-1, member_id="", offsets=(to_commit,), **changes)
    return coordinator.ask(request)


def test_a_member_reads_what_it_has_committed() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    assert errors_of(alice.commits({ORDERS_0: 5, ORDERS_1: 7})) == {ErrorCode.none}
    assert coordinator.committed() == {ORDERS_0: 5, ORDERS_1: 7}


def test_a_commit_is_written_with_its_metadata_and_the_time() -> None:
    coordinator = Coordinator(now_ms=42)
    commit_one(coordinator, OffsetToCommit(ORDERS_0, 5, leader_epoch=3, metadata="half of it"))
    [record] = coordinator.log
    assert record.key == OffsetKey(GROUP, ORDERS_0)
    assert record.value == OffsetValue(5, 3, "half of it", WALL_START_MS + 42)
    assert coordinator.fetched(ORDERS_0) == (FetchedOffset(ORDERS_0, 5, 3, "half of it"),)


def test_old_versions_may_name_the_time_and_the_retention_of_a_commit() -> None:
    coordinator = Coordinator()
    commit_one(coordinator, OffsetToCommit(ORDERS_0, 5, commit_timestamp_ms=77))
    commit_one(coordinator, OffsetToCommit(ORDERS_1, 6), retention_time_ms=1_000)
    first, second = coordinator.log
    assert first.value == OffsetValue(5, -1, "", 77)
    assert second.value == OffsetValue(6, -1, "", WALL_START_MS, WALL_START_MS + 1_000)


def test_of_two_commits_of_one_partition_in_a_request_the_last_counts() -> None:
    coordinator = Coordinator()
    offsets = (OffsetToCommit(ORDERS_0, 5), OffsetToCommit(ORDERS_0, 6))
    coordinator.ask(OffsetCommit(GROUP, generation_id=-1, member_id="", offsets=offsets))
    assert coordinator.committed() == {ORDERS_0: 6}


def test_a_commit_counts_when_it_is_in_the_log() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.is_log_slow = True
    asked = alice.commits({ORDERS_0: 5})
    assert asked.is_waiting
    assert coordinator.committed(ORDERS_0) == {ORDERS_0: -1}
    coordinator.log_writes()
    assert errors_of(asked) == {ErrorCode.none}
    assert coordinator.committed(ORDERS_0) == {ORDERS_0: 5}


def test_several_commits_under_way_count_in_their_order() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.is_log_slow = True
    asked = [alice.commits({ORDERS_0: offset}) for offset in (5, 9, 7)]
    coordinator.log_writes()
    assert [errors_of(one) for one in asked] == [{ErrorCode.none}] * 3
    assert coordinator.committed() == {ORDERS_0: 7}


def test_a_commit_may_go_back() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5})
    alice.commits({ORDERS_0: 2})
    assert coordinator.committed() == {ORDERS_0: 2}


def test_a_commit_of_nothing_is_answered_with_nothing() -> None:
    coordinator = Coordinator()
    assert coordinator.client("admin").commits({}).answer.errors == ()
    assert coordinator.state() == "Dead"


def test_a_client_without_membership_commits_to_a_group_without_members() -> None:
    coordinator = Coordinator()
    assert errors_of(coordinator.client("admin").commits({ORDERS_0: 5})) == {ErrorCode.none}
    described = coordinator.described()
    assert (described.state, described.protocol_type, described.members) == ("Empty", "", ())


def test_an_outsider_may_not_commit_to_a_group_with_members() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice")
    assert errors_of(coordinator.client("admin").commits({ORDERS_0: 5})) == {ErrorCode.unknown_member_id}
    assert coordinator.committed() == {}


def test_an_outsider_may_commit_after_the_last_member_has_left() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.leaves()
    assert errors_of(coordinator.client("admin").commits({ORDERS_0: 5})) == {ErrorCode.none}


def test_a_commit_with_a_generation_to_an_unknown_group_is_refused() -> None:
    coordinator = Coordinator()
    asked = coordinator.client("alice", member_id="alice-1").commits({ORDERS_0: 5}, generation_id=1)
    assert errors_of(asked) == {ErrorCode.illegal_generation}
    assert coordinator.state() == "Dead"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"generation_id": 0}, ErrorCode.illegal_generation),
        ({"generation_id": -1}, ErrorCode.illegal_generation),
        ({"member_id": "eve-1"}, ErrorCode.unknown_member_id),
        ({"member_id": ""}, ErrorCode.unknown_member_id),
        ({"group_instance_id": "kitchen"}, ErrorCode.unknown_member_id),
    ],
)
def test_a_commit_of_no_member_of_the_generation_is_refused(
    changes: dict[str, object], error: ErrorCode
) -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    assert errors_of(alice.commits({ORDERS_0: 5}, **changes)) == {error}


def test_a_former_members_late_commit_is_refused() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.passes(SESSION_MS)
    assert errors_of(alice.commits({ORDERS_0: 5})) == {ErrorCode.unknown_member_id}


def test_the_old_generation_may_commit_while_a_rebalance_is_prepared() -> None:
    coordinator = Coordinator()
    alice, bob = coordinator.stable_group("alice", "bob")
    alice.joins()
    assert errors_of(bob.commits({ORDERS_0: 5})) == {ErrorCode.none}


def test_nobody_commits_between_join_and_sync() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice")
    alice.joins()
    coordinator.passes(INITIAL_DELAY_MS)
    assert errors_of(alice.commits({ORDERS_0: 5})) == {ErrorCode.rebalance_in_progress}


def test_a_commit_with_too_much_metadata_is_refused_alone() -> None:
    coordinator = Coordinator(settings=GroupSettings(offset_metadata_max_length=4))
    offsets = (OffsetToCommit(ORDERS_0, 5, metadata="12345"), OffsetToCommit(ORDERS_1, 6, metadata="1234"))
    asked = coordinator.ask(OffsetCommit(GROUP, generation_id=-1, member_id="", offsets=offsets))
    assert asked.answer.errors == (
        (ORDERS_0, ErrorCode.offset_metadata_too_large),
        (ORDERS_1, ErrorCode.none),
    )
    assert coordinator.committed() == {ORDERS_1: 6}


def test_a_commit_with_nothing_but_too_much_metadata_writes_nothing() -> None:
    coordinator = Coordinator(settings=GroupSettings(offset_metadata_max_length=4))
    asked = commit_one(coordinator, OffsetToCommit(ORDERS_0, 5, metadata="12345"))
    assert errors_of(asked) == {ErrorCode.offset_metadata_too_large}
    assert coordinator.log == []


@pytest.mark.parametrize(("text", "is_taken"), [("äöüß", True), ("😀😀", True), ("😀😀😀", False)])
def test_metadata_is_measured_as_java_measures_it(text: str, is_taken: bool) -> None:
    coordinator = Coordinator(settings=GroupSettings(offset_metadata_max_length=4))
    asked = commit_one(coordinator, OffsetToCommit(ORDERS_0, 5, metadata=text))
    assert (errors_of(asked) == {ErrorCode.none}) is is_taken


def test_a_commit_to_the_group_without_a_name_is_taken() -> None:
    coordinator = Coordinator()
    nameless = OffsetCommit("", generation_id=-1, member_id="", offsets=(OffsetToCommit(ORDERS_0, 5),))
    assert errors_of(coordinator.ask(nameless)) == {ErrorCode.none}
    assert coordinator.committed(group_id="") == {ORDERS_0: 5}
    assert coordinator.ask(DescribeGroup("")).answer.state == "Empty"


@pytest.mark.parametrize(
    ("of_append", "of_commit"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.kafka_storage_error, ErrorCode.not_coordinator),
        (ErrorCode.message_too_large, ErrorCode.invalid_commit_offset_size),
        (ErrorCode.record_list_too_large, ErrorCode.invalid_commit_offset_size),
    ],
)
def test_a_commit_that_the_log_refuses_leaves_the_offset_as_it_was(
    of_append: ErrorCode, of_commit: ErrorCode
) -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5})
    coordinator.is_log_slow = True
    asked = alice.commits({ORDERS_0: 9})
    coordinator.log_refuses(of_append)
    assert errors_of(asked) == {of_commit}
    assert coordinator.committed() == {ORDERS_0: 5}


def test_a_commit_in_doubt_counts_when_it_is_in_the_log_after_all() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.is_log_slow = True
    asked = alice.commits({ORDERS_0: 5})
    coordinator.log_times_out()
    assert errors_of(asked) == {ErrorCode.request_timed_out}
    assert alice.coordinator.shard.applied_state().keys() == {record.key for record in coordinator.log}
    coordinator.log_writes()
    assert coordinator.committed() == {ORDERS_0: 5}


def test_time_in_which_a_commit_is_in_doubt_does_not_count_for_sessions() -> None:
    """The heartbeats of the members wait in the shard."""
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    coordinator.is_log_slow = True
    alice.commits({ORDERS_0: 5})
    coordinator.log_times_out()
    coordinator.passes(3 * SESSION_MS)
    coordinator.log_writes()
    coordinator.passes(SESSION_MS - 1)
    assert alice.heartbeat() is ErrorCode.none


def test_a_partition_without_a_commit_is_fetched_as_minus_one() -> None:
    coordinator = Coordinator()
    assert coordinator.fetched(ORDERS_0) == (FetchedOffset(ORDERS_0, -1, -1, "", ErrorCode.none),)
    coordinator.client("admin").commits({ORDERS_1: 5})
    assert coordinator.committed(ORDERS_0, ORDERS_1) == {ORDERS_0: -1, ORDERS_1: 5}


def test_all_offsets_of_an_unknown_group_are_none() -> None:
    assert Coordinator().fetched() == ()


def test_a_fetch_of_no_partition_is_not_a_fetch_of_all() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_1: 5})
    assert coordinator.ask(OffsetFetch(GROUP, topic_partitions=())).answer.offsets == ()


def test_a_stable_fetch_says_that_a_commit_is_under_way() -> None:
    """KIP-447."""
    coordinator = Coordinator()
    admin = coordinator.client("admin")
    admin.commits({ORDERS_0: 5, ORDERS_1: 5})
    coordinator.is_log_slow = True
    admin.commits({ORDERS_0: 9})
    unstable = FetchedOffset(ORDERS_0, error=ErrorCode.unstable_offset_commit)
    assert coordinator.fetched(ORDERS_0, ORDERS_1, require_stable=True) == (
        unstable,
        FetchedOffset(ORDERS_1, 5),
    )
    assert coordinator.committed(ORDERS_0) == {ORDERS_0: 5}
    coordinator.log_writes()
    assert coordinator.fetched(ORDERS_0, require_stable=True) == (FetchedOffset(ORDERS_0, 9),)
