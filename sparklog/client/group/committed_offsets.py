"""A group's committed offsets: read, written and deleted at its coordinator.

A committed offset is the next one to read. Members write with their identity. From outside, offsets are
written without one, which the coordinator takes only while the group has no members.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparklog.client.coordinator import NOT_READY, Coordinator
from sparklog.client.group.handover import Identity
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sparklog.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

OUTSIDER = Identity()
"""The identity of a commit from outside the group."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, with the leader epoch of the record before it (-1: not given)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Refused = dict[TopicPartition, ErrorCode]
"""The partitions that were refused, each with the reason; empty if none was."""


def fetch_committed(
    coordinator: Coordinator,
    topic_partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """The committed offsets of these partitions (None: of all); partitions without one are absent.

    ``require_stable`` waits for commits of open transactions (KIP-447).
    """
    topics = None
    if topic_partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(topic_partitions).items()
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=coordinator.key, topics=topics)],
        require_stable=require_stable,
    )
    response: OffsetFetchResponse = coordinator.call(request, _fetch_error)
    (group,) = response.groups
    if group.error_code is not ErrorCode.none:
        raise KafkaError(group.error_code, f"no offsets of group {coordinator.key!r}")
    committed: dict[TopicPartition, CommittedOffset] = {}
    for topic in group.topics:
        for one in topic.partitions:
            topic_partition = TopicPartition(topic.name, one.partition_index)
            if one.error_code is not ErrorCode.none:
                raise KafkaError(one.error_code, f"no offset of {topic_partition} in {coordinator.key!r}")
            if one.committed_offset >= 0:
                committed[topic_partition] = CommittedOffset(
                    one.committed_offset, one.committed_leader_epoch, one.metadata or ""
                )
    return committed


def commit_offsets(
    coordinator: Coordinator,
    offsets: Mapping[TopicPartition, int],
    identity: Identity = OUTSIDER,
    *,
    group_instance_id: str | None = None,
    timeout_ms: int | None = None,
    metadata: str = "",
) -> Refused:
    """Commit offsets, each with ``metadata``, as a member or from outside; the refused partitions."""
    request = OffsetCommitRequest(
        group_id=coordinator.key,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[TopicPartition(topic, partition)],
                        committed_metadata=metadata,
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )
    response: OffsetCommitResponse = coordinator.call(request, _commit_error, timeout_ms=timeout_ms)
    return {
        TopicPartition(topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
        if one.error_code is not ErrorCode.none
    }


def delete_offsets(coordinator: Coordinator, topic_partitions: Iterable[TopicPartition]) -> Refused:
    """Delete committed offsets; KafkaError if the whole request was refused."""
    request = OffsetDeleteRequest(
        group_id=coordinator.key,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in partitions],
            )
            for topic, partitions in by_topic(topic_partitions).items()
        ],
    )
    response: OffsetDeleteResponse = coordinator.call(request, lambda answer: answer.error_code)
    if response.error_code is not ErrorCode.none:
        raise KafkaError(response.error_code, f"group {coordinator.key!r}")
    return {
        TopicPartition(topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
        if one.error_code is not ErrorCode.none
    }


def by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, sorted."""
    found: dict[str, list[int]] = {}
    for topic_partition in sorted(set(topic_partitions)):
        found.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return found


def _fetch_error(response: OffsetFetchResponse) -> ErrorCode:
    (group,) = response.groups
    if group.error_code is not ErrorCode.none:
        return group.error_code
    codes = (one.error_code for topic in group.topics for one in topic.partitions)
    return next((code for code in codes if code.retriable), ErrorCode.none)


def _commit_error(response: OffsetCommitResponse) -> ErrorCode:
    """The coordinator's state, which is then the code of every partition; other codes are for the caller."""
    codes = (one.error_code for topic in response.topics for one in topic.partitions)
    return next((code for code in codes if code in NOT_READY), ErrorCode.none)
