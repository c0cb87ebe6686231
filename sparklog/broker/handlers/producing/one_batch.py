"""One batch of a produce: whether a client may append to its partition, its check, and its append."""

from sparklog.broker.call import Call
from sparklog.broker.conversion.intake import Intake, prepared
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import AppendResult, Refused
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.verification import VerificationGuard
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.records.validate import RefusedBatch
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest


def writable(call: Call, topic_partition: TopicPartition) -> Partition | Refused:
    """The partition that a client may append to, or why it may not."""
    if topic_partition.topic in INTERNAL_TOPICS:
        message = f"only the cluster itself writes to {topic_partition.topic}"
        return Refused(ErrorCode.invalid_topic_exception, message)
    partition = call.partition(topic_partition)
    if isinstance(partition, ErrorCode):
        return Refused(partition)
    if partition.lacks_columns:
        message = f"the leader does not know the columns of topic '{topic_partition.topic}' yet"
        return Refused(ErrorCode.unknown_topic_or_partition, message)
    return partition


def append_one(
    call: Call, request: ProduceRequest, partition: Partition, data: ProducePartition, token: int
) -> AppendResult:
    """Check the batch for one partition, give it its topic's codec and time, and append it."""
    batch = taken(call, request, partition, data)
    if isinstance(batch, Refused):
        return batch
    return append_taken(call, request, partition, batch, token)


def taken(
    call: Call, request: ProduceRequest, partition: Partition, data: ProducePartition
) -> Intake | Refused:
    """The batch as it may be appended, or why its topic does not take it."""
    sent = memoryview(b"") if data.records is None else memoryview(data.records)
    batch = prepared(
        sent,
        call.topic_config(partition.topic_partition.topic),
        version=call.version,
        payload_kinds=request.payload_kinds,
        now_ms=call.broker.clock.wall_ms(),
        columns=partition.columns,
    )
    if isinstance(batch, RefusedBatch):
        return Refused(batch.error, batch.message, batch.record_errors)
    if batch.converted:
        call.broker.conversions.count_produced(batch.converted)
    return batch


def append_taken(
    call: Call,
    request: ProduceRequest,
    partition: Partition,
    batch: Intake,
    token: int,
    guard: VerificationGuard | None = None,
) -> AppendResult:
    connection = call.context.connection_id
    append = AppendRequest(
        batch.records,
        batch.accepted.batches,
        request.acks,
        after_refusal=call.broker.refusals.has_refused(connection, partition.topic_partition),
        guard=guard,
        connection=connection,
    )
    return partition.leader_append.append(append, token)
