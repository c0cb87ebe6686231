"""OffsetDelete: forget committed offsets of a group.

Partitions that do not exist are refused here, each for itself. The coordinator is asked also if none is left,
because the whole group may be refused.
"""

from collections.abc import Iterable

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask
from sparklog.core.group.requests import OffsetDelete
from sparklog.core.group.responses import OffsetDeleteAnswer
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Errors = dict[TopicPartition, ErrorCode]


def handle(call: Call, request: OffsetDeleteRequest) -> None:
    asked = dict.fromkeys(
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    unknown: Errors = {
        topic_partition: ErrorCode.unknown_topic_or_partition
        for topic_partition in asked
        if call.broker.metadata.partition(topic_partition) is None
    }
    known = tuple(topic_partition for topic_partition in asked if topic_partition not in unknown)
    delete = OffsetDelete(group_id=request.group_id, topic_partitions=known)
    ask(call, delete, lambda deleted: _response(asked, unknown, deleted))


def _response(
    asked: Iterable[TopicPartition], unknown: Errors, deleted: OffsetDeleteAnswer
) -> OffsetDeleteResponse:
    if deleted.error is not ErrorCode.none:
        return OffsetDeleteResponse(error_code=deleted.error)
    errors = unknown | dict(deleted.errors)
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for topic_partition in asked:
        topic = topics.setdefault(
            topic_partition.topic, OffsetDeleteResponseTopic(name=topic_partition.topic)
        )
        topic.partitions.append(
            OffsetDeleteResponsePartition(
                partition_index=topic_partition.partition, error_code=errors[topic_partition]
            )
        )
    return OffsetDeleteResponse(topics=list(topics.values()))
