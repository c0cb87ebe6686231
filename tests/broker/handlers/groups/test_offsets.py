"""OffsetCommit, OffsetFetch and OffsetDelete: from each version to the coordinator and back."""

import pytest

from sparklog.broker.handlers.groups import offset_commit, offset_delete, offset_fetch
from sparklog.core.group.requests import OffsetCommit, OffsetDelete, OffsetFetch, OffsetToCommit
from sparklog.core.group.responses import (
    FetchedOffset,
    OffsetCommitAnswer,
    OffsetDeleteAnswer,
    OffsetFetchAnswer,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sparklog.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NONE = ErrorCode.none
UNKNOWN = ErrorCode.unknown_topic_or_partition
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
T2, ABSENT = TopicPartition("t", 2), TopicPartition("absent", 0)


def commit_request(*partitions, **fields):
    """Of topic, partition number and offset, with further fields of the partition."""
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset, **dict(*further)
                    )
                ],
            )
            for topic, number, offset, *further in partitions
        ],
        **fields,
    )


def errors_of(response):
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


# OffsetCommit


@pytest.mark.parametrize("version", range(9))
def test_a_commit_of_each_version_carries_what_that_version_has(handled, version):
    member = {"generation_id_or_member_epoch": 4, "member_id": "m"} if version >= 1 else {}
    retention = {"retention_time_ms": 5_000} if 2 <= version <= 4 else {}
    instance = {"group_instance_id": "i"} if version >= 7 else {}
    partition = {"committed_metadata": "note"}
    partition |= {"commit_timestamp": 99} if version == 1 else {}
    partition |= {"committed_leader_epoch": 6} if version >= 6 else {}
    exchanged = handled(
        offset_commit.handle,
        commit_request(("t", 0, 42, partition), **member, **retention, **instance),
        version,
    )
    assert exchanged.asked == OffsetCommit(
        group_id="g",
        generation_id=4 if version >= 1 else -1,
        member_id="m" if version >= 1 else "",
        group_instance_id=instance.get("group_instance_id"),
        retention_time_ms=retention.get("retention_time_ms", -1),
        offsets=(
            OffsetToCommit(
                T0, 42, 6 if version >= 6 else -1, "note", commit_timestamp_ms=99 if version == 1 else None
            ),
        ),
    )
    response = exchanged.answer(OffsetCommitAnswer(((T0, ErrorCode.illegal_generation),)))
    assert errors_of(response) == {T0: ErrorCode.illegal_generation}


def test_partitions_that_do_not_exist_are_refused_and_the_others_committed(handled):
    exchanged = handled(offset_commit.handle, commit_request(("absent", 0, 1), ("t", 2, 1), ("t", 1, 5)))
    assert exchanged.asked.offsets == (OffsetToCommit(T1, 5, metadata=None),)
    response = exchanged.answer(OffsetCommitAnswer(((T1, NONE),)))
    assert errors_of(response) == {ABSENT: UNKNOWN, T2: UNKNOWN, T1: NONE}
    assert [topic.name for topic in response.topics] == ["absent", "t"]


@pytest.mark.parametrize("version", range(9))
def test_a_commit_of_nothing_that_exists_is_answered_without_the_coordinator(handled, version):
    exchanged = handled(offset_commit.handle, commit_request(("absent", 0, 1)), version)
    assert errors_of(exchanged.response) == {ABSENT: UNKNOWN}
    assert exchanged.coordinators.requests == []
    assert handled(offset_commit.handle, commit_request(), version).response.topics == []


def test_the_last_of_two_commits_of_one_partition_counts(handled):
    exchanged = handled(offset_commit.handle, commit_request(("t", 0, 1), ("t", 1, 2), ("t", 0, 3)))
    assert [(one.topic_partition, one.offset) for one in exchanged.asked.offsets] == [(T0, 3), (T1, 2)]
    response = exchanged.answer(OffsetCommitAnswer(((T0, NONE), (T1, NONE))))
    assert [len(topic.partitions) for topic in response.topics] == [2]


def test_a_negative_offset_is_passed_on_as_kafka_does(handled):
    exchanged = handled(offset_commit.handle, commit_request(("t", 0, -5)))
    assert exchanged.asked.offsets[0].offset == -5


def test_metadata_and_group_ids_that_could_not_be_stored_are_refused(handled):
    note = {"committed_metadata": "x" * 32_768}
    exchanged = handled(offset_commit.handle, commit_request(("t", 0, 1, note), ("t", 1, 2)))
    assert [one.topic_partition for one in exchanged.asked.offsets] == [T1]
    response = exchanged.answer(OffsetCommitAnswer(((T1, NONE),)))
    assert errors_of(response) == {T0: ErrorCode.offset_metadata_too_large, T1: NONE}
    request = commit_request(("t", 0, 1))
    request.group_id = "g" * 32_768
    refused = handled(offset_commit.handle, request)
    assert errors_of(refused.response) == {T0: ErrorCode.invalid_group_id}


# OffsetFetch

COMMITTED = FetchedOffset(T0, 42, 6, "note")
MISSING = FetchedOffset(T1)


def fetch_request(*indexes):
    return OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=list(indexes))]
    )


@pytest.mark.parametrize("version", range(8))
def test_a_fetch_of_one_group_is_answered_by_partition(handled, version):
    exchanged = handled(offset_fetch.handle, fetch_request(0, 1, 0), version)
    assert exchanged.asked == OffsetFetch(group_id="g", topic_partitions=(T0, T1))
    response = exchanged.answer(OffsetFetchAnswer(NONE, (COMMITTED, MISSING)))
    (topic,) = response.topics
    committed, missing = topic.partitions
    assert (committed.committed_offset, committed.metadata, committed.error_code) == (42, "note", NONE)
    assert committed.committed_leader_epoch == (6 if version >= 5 else -1)
    assert (missing.committed_offset, missing.metadata) == (-1, "")
    assert missing.error_code is (NONE if version else UNKNOWN)


@pytest.mark.parametrize("version", range(2, 8))
def test_null_topics_ask_for_all_committed_offsets(handled, version):
    exchanged = handled(offset_fetch.handle, OffsetFetchRequest(group_id="g", topics=None), version)
    assert exchanged.asked == OffsetFetch(group_id="g", topic_partitions=None)
    response = exchanged.answer(OffsetFetchAnswer(NONE, (COMMITTED,)))
    assert [len(topic.partitions) for topic in response.topics] == [1]


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("offsets", [(), (FetchedOffset(T0, error=ErrorCode.not_coordinator),)])
def test_an_error_of_the_group_is_where_the_version_has_room_for_it(handled, version, offsets):
    exchanged = handled(offset_fetch.handle, fetch_request(0), version)
    response = exchanged.answer(OffsetFetchAnswer(ErrorCode.not_coordinator, offsets))
    if version >= 2:
        assert (response.error_code, response.topics) == (ErrorCode.not_coordinator, [])
    else:
        assert errors_of(response) == {T0: ErrorCode.not_coordinator}


def test_version_7_asks_for_stable_offsets(handled):
    request = OffsetFetchRequest(group_id="g", topics=[], require_stable=True)
    assert handled(offset_fetch.handle, request, 7).asked.require_stable


def groups_request(*groups):
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=None
                if indexes is None
                else [OffsetFetchRequestTopics(name="t", partition_indexes=indexes)],
            )
            for group_id, indexes in groups
        ],
        require_stable=True,
    )


def test_several_groups_are_answered_in_the_order_of_the_request(handled):
    exchanged = handled(offset_fetch.handle, groups_request(("g", [0]), ("h", None), ("i", [1])), 8)
    assert exchanged.coordinators.requests == [
        OffsetFetch(group_id="g", topic_partitions=(T0,), require_stable=True),
        OffsetFetch(group_id="h", topic_partitions=None, require_stable=True),
        OffsetFetch(group_id="i", topic_partitions=(T1,), require_stable=True),
    ]
    g, h, i = exchanged.coordinators.replies
    i(OffsetFetchAnswer(ErrorCode.coordinator_load_in_progress, (MISSING,)))
    g(OffsetFetchAnswer(NONE, (COMMITTED,)))
    assert not exchanged.is_answered
    h(OffsetFetchAnswer(NONE, ()))
    groups = exchanged.response.groups
    assert [(group.group_id, group.error_code) for group in groups] == [
        ("g", NONE),
        ("h", NONE),
        ("i", ErrorCode.coordinator_load_in_progress),
    ]
    (topic,) = groups[0].topics
    (partition,) = topic.partitions
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (
        42,
        6,
        "note",
    )
    assert groups[1].topics == groups[2].topics == []


def test_a_fetch_of_no_group_is_answered_at_once(handled):
    assert handled(offset_fetch.handle, groups_request(), 8).response.groups == []


# OffsetDelete


def delete_request(*partitions):
    return OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number)]
            )
            for topic, number in partitions
        ],
    )


def test_offsets_of_partitions_that_exist_are_deleted_and_the_others_refused(handled):
    exchanged = handled(offset_delete.handle, delete_request(T0, ABSENT, T2, T1, T0))
    assert exchanged.asked == OffsetDelete(group_id="g", topic_partitions=(T0, T1))
    deleted = OffsetDeleteAnswer(NONE, ((T0, NONE), (T1, ErrorCode.group_subscribed_to_topic)))
    assert errors_of(exchanged.answer(deleted)) == {
        T0: NONE,
        ABSENT: UNKNOWN,
        T2: UNKNOWN,
        T1: ErrorCode.group_subscribed_to_topic,
    }


def test_an_error_of_the_group_leaves_out_the_partitions(handled):
    exchanged = handled(offset_delete.handle, delete_request(ABSENT))
    assert exchanged.asked.topic_partitions == ()
    response = exchanged.answer(OffsetDeleteAnswer(ErrorCode.group_id_not_found))
    assert (response.error_code, response.topics) == (ErrorCode.group_id_not_found, [])
