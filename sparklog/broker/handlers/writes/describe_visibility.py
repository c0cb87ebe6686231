"""DescribeVisibility: of each partition, the ends and the atomic writes that a cut of a read depends on.

All of a partition's answer is of one moment. Right after a failover a leader may not know which records are
committed, and answers OFFSET_NOT_AVAILABLE, as to ListOffsets.
"""

from sparklog.broker.call import Call
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.visibility import Visibility
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.storage.log import Log
from sparklog.wire.messages.writes.describe_visibility import (
    AskedPartition,
    DescribedPartition,
    DescribedTopic,
    DescribeVisibilityRequest,
    DescribeVisibilityResponse,
)


def handle(call: Call, request: DescribeVisibilityRequest) -> None:
    topics = [
        DescribedTopic(
            name=topic.name, partitions=[_described(call, topic.name, asked) for asked in topic.partitions]
        )
        for topic in request.topics
    ]
    call.reply(DescribeVisibilityResponse(topics=topics))


def _described(call: Call, topic: str, asked: AskedPartition) -> DescribedPartition:
    answer = DescribedPartition(partition_index=asked.partition_index)
    partition = call.partition(TopicPartition(topic, asked.partition_index))
    if isinstance(partition, ErrorCode):
        answer.error_code = partition
        return answer

    def choose(leader: Leader, log: Log) -> int | None:
        high_watermark = leader.latest_offset(Visibility.HIGH_WATERMARK)
        ended = log.writes_ended_since(asked.since_offset)
        if high_watermark is None or ended is None:
            answer.error_code = ErrorCode.none if high_watermark is None else ErrorCode.offset_out_of_range
            return high_watermark
        answer.stable_offset = leader.marks.stable_offset_of_clients()
        answer.writes = sorted(ended | leader.marks.transactions.open_writes(high_watermark))
        return high_watermark

    found = partition.reads.leader_offset(asked.current_leader_epoch, choose)
    if isinstance(found, ErrorCode):
        return DescribedPartition(partition_index=asked.partition_index, error_code=found)
    answer.high_watermark = found
    return answer
