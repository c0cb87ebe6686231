"""DeleteRecords: raise the log start of partitions that this broker leads (KIP-107).

Records below the new start cannot be read any more, and the next round of retention deletes whole segments
below it. The answer waits for all live replicas, so that the records do not return with another leader.
Internal topics are refused, because coordinators would lose what they hold.
"""

from functools import partial

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.waiting.joint_wait import Share, named_twice
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

Results = dict[TopicPartition, DeletionResult]


def handle(call: Call, request: DeleteRecordsRequest) -> None:
    asked = [
        (TopicPartition(topic.name, partition.partition_index), partition.offset)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if named_twice(topic_partition for topic_partition, _ in asked):
        # A partition that is named twice is refused: nothing says which of the two offsets is meant.
        invalid = DeletionResult(ErrorCode.invalid_request)
        _answer(call, request, {topic_partition: invalid for topic_partition, _ in asked})
        return
    live = frozenset(call.broker.metadata.snapshot.brokers)
    refused: Results = {}
    shares: list[Share[DeletionResult]] = []
    for topic_partition, offset in asked:
        partition = call.partition(topic_partition)
        if topic_partition.topic in INTERNAL_TOPICS:
            refused[topic_partition] = DeletionResult(ErrorCode.invalid_topic_exception)
        elif isinstance(partition, ErrorCode):
            refused[topic_partition] = DeletionResult(partition)
        else:
            delete = partial(partition.delete_records, offset, live)
            shares.append(Share(topic_partition, delete, partition.forget_deletion))
    call.broker.deletions.run(
        shares,
        bounded_timeout_ms(request.timeout_ms),
        lambda results: call.carefully(lambda: _answer(call, request, results)),
        refused=refused,
    )


def _answer(call: Call, request: DeleteRecordsRequest, results: Results) -> None:
    topics = [
        DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[
                _result(asked.partition_index, results[TopicPartition(topic.name, asked.partition_index)])
                for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    call.reply(DeleteRecordsResponse(topics=topics))


def _result(index: int, result: DeletionResult) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=result.low_watermark, error_code=result.error
    )
