"""OffsetCommit: store how far a group has read.

Partitions that do not exist are refused here, each for itself; the coordinator decides about the rest.
Version 0, which stored offsets in ZooKeeper, is stored like version 1: by a client without membership.
"""

from collections.abc import Iterable
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import STORED_BYTES_MAX, ask, is_too_long
from sparklog.core.group.requests import OffsetCommit, OffsetToCommit
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

NO_TIMESTAMP_MS: Final = -1

Errors = dict[TopicPartition, ErrorCode]


def handle(call: Call, request: OffsetCommitRequest) -> None:
    asked = _asked(request)
    errors: Errors = {}
    for topic_partition, partition in asked.items():
        problem = _problem(call, request, topic_partition, partition)
        if problem is not None:
            errors[topic_partition] = problem
    offsets = tuple(
        _offset(topic_partition, partition)
        for topic_partition, partition in asked.items()
        if topic_partition not in errors
    )
    if not offsets:
        call.reply(_response(asked, errors))
        return
    commit = OffsetCommit(
        group_id=request.group_id,
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        offsets=offsets,
    )
    ask(call, commit, lambda response: _response(asked, errors | dict(response.errors)))


def _asked(request: OffsetCommitRequest) -> dict[TopicPartition, OffsetCommitRequestPartition]:
    """The last offset of each partition: of a partition that is named twice the last one counts."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def _problem(
    call: Call,
    request: OffsetCommitRequest,
    topic_partition: TopicPartition,
    partition: OffsetCommitRequestPartition,
) -> ErrorCode | None:
    if is_too_long(request.group_id):
        return ErrorCode.invalid_group_id
    if call.broker.metadata.partition(topic_partition) is None:
        return ErrorCode.unknown_topic_or_partition
    if len((partition.committed_metadata or "").encode()) > STORED_BYTES_MAX:
        return ErrorCode.offset_metadata_too_large
    return None


def _offset(topic_partition: TopicPartition, partition: OffsetCommitRequestPartition) -> OffsetToCommit:
    stamp_ms = partition.commit_timestamp
    return OffsetToCommit(
        topic_partition,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata,
        commit_timestamp_ms=None if stamp_ms == NO_TIMESTAMP_MS else stamp_ms,
    )


def _response(asked: Iterable[TopicPartition], errors: Errors) -> OffsetCommitResponse:
    topics: dict[str, OffsetCommitResponseTopic] = {}
    for topic_partition in asked:
        topic = topics.setdefault(
            topic_partition.topic, OffsetCommitResponseTopic(name=topic_partition.topic)
        )
        topic.partitions.append(
            OffsetCommitResponsePartition(
                partition_index=topic_partition.partition, error_code=errors[topic_partition]
            )
        )
    return OffsetCommitResponse(topics=list(topics.values()))
