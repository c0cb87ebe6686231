"""OffsetForLeaderEpoch: the end of a leader epoch in the leader's log (KIP-101, KIP-279)."""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(call: Call, request: OffsetForLeaderEpochRequest) -> None:
    call.reply(
        OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_partition(call, topic.topic, asked) for asked in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _partition(call: Call, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = call.partition(TopicPartition(topic, asked.partition))
    if isinstance(partition, ErrorCode):
        return EpochEndOffset(partition=asked.partition, error_code=partition)
    found = partition.reads.epoch_end(asked.current_leader_epoch, asked.leader_epoch)
    if isinstance(found, ErrorCode):
        return EpochEndOffset(partition=asked.partition, error_code=found)
    return EpochEndOffset(partition=asked.partition, leader_epoch=found[0], end_offset=found[1])
