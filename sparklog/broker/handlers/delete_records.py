"""DeleteRecords: raise the log start of partitions that this broker leads (KIP-107).

What is below the new start can be read no more; whole segments below it go when retention is looked at next.
The answer waits for every live replica, so that no other leader brings the records back.
"""

from functools import partial

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.deletions import Delete, Results
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(call: Call, request: DeleteRecordsRequest) -> None:
    live = frozenset(call.broker.metadata.snapshot.brokers)
    refused: Results = {}
    wanted: list[tuple[Partition, Delete]] = []
    for topic in request.topics:
        for asked in topic.partitions:
            topic_partition = TopicPartition(topic.name, asked.partition_index)
            partition = call.partition(topic_partition)
            if isinstance(partition, ErrorCode):
                refused[topic_partition] = DeletionResult(partition)
            else:
                wanted.append((partition, partial(partition.delete_records, asked.offset, live)))
    call.broker.replicas.deletions.delete(
        refused,
        wanted,
        bounded_timeout_ms(request.timeout_ms),
        lambda results: call.carefully(lambda: _answer(call, request, results)),
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
