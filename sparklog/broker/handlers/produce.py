"""Produce: append batches to partitions that this broker leads.

With acks=0 there is no response; if anything failed the connection is closed instead, the only way to say so.
Each batch is checked before any lock is taken; a refused batch uses up no offset. Once the batches are in the
log, the connection's next produce may begin, because only a wait for replicas is left.

A batch that begins a transaction in its partition waits, without a thread, until the producer's coordinator
has said that the partition is in the transaction (``broker/handlers/transactional_produce``). The
connection's next produce waits with it, so that batches keep their order.

Internal topics are closed to clients, as in Kafka (ReplicaManager.appendToLocalLog). Typed topics take rows
of their columns alone, from clients that know these.
"""

from functools import partial
from typing import Final

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.conversion.intake import Intake, prepared
from sparklog.broker.handlers.transactional_produce import TransactionalBatch, verify
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import Appended, AppendResult, HeldUp, LateRequest, Refused
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.joint_wait import Share, named_twice
from sparklog.core.producers.verification import VerificationGuard
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.kafka_numbers import ACKS
from sparklog.records.envelope import claims_transaction
from sparklog.records.validate import RefusedBatch
from sparklog.wire.messages.data.produce import (
    BatchIndexAndErrorMessage,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)

SENT_AGAIN: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.corrupt_message,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
    }
)
"""Answers upon which clients send a batch again; it may be in the log, but a change of leader may cut it."""

Results = dict[TopicPartition, AppendResult]


def handle(call: Call, request: ProduceRequest) -> None:
    refusal = _refusal(request)
    if refusal is not None:
        _answer(call, request, dict.fromkeys(_asked(request), refusal))
        return
    call.broker.refusals.on_produce_request(call.context.connection_id)
    refused: Results = {}
    shares: list[Share[AppendResult]] = []
    transactional: list[TransactionalBatch] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            topic_partition = TopicPartition(topic.name, data.index)
            partition = _writable(call, topic_partition)
            if isinstance(partition, Refused):
                refused[topic_partition] = partition
            elif data.records is not None and claims_transaction(data.records):
                taken = _taken(call, request, partition, data)
                if isinstance(taken, Refused):
                    refused[topic_partition] = taken
                else:
                    transactional.append(TransactionalBatch(partition, taken))
            else:
                append = partial(_append_one, call, request, partition, data)
                shares.append(Share(topic_partition, append, partition.leader_append.forget))
    if not transactional:
        _append(call, request, shares, refused)
        return

    def verified(failed: Results) -> None:
        for batch in transactional:
            if batch.topic_partition not in failed:
                append = partial(
                    _append_taken, call, request, batch.partition, batch.taken, guard=batch.guard
                )
                shares.append(Share(batch.topic_partition, append, batch.partition.leader_append.forget))
        call.carefully(lambda: _append(call, request, shares, {**refused, **failed}))

    verify(call, request.transactional_id or "", transactional, verified)


def _append(call: Call, request: ProduceRequest, shares: list[Share[AppendResult]], refused: Results) -> None:
    call.broker.appends.run(
        shares,
        bounded_timeout_ms(request.timeout_ms),
        lambda results: call.carefully(lambda: _answer(call, request, results)),
        refused=refused,
    )
    _let_go(call, request)
    call.exchange.let_next_begin()


def _refusal(request: ProduceRequest) -> Refused | None:
    """Why nothing of the request is appended, whatever its batches are."""
    if request.acks not in ACKS:
        message = f"acks={request.acks}: must be 0, 1 or -1 (all)"
        return Refused(ErrorCode.invalid_required_acks, message)
    if request.transactional_id is None and any(
        data.records is not None and claims_transaction(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    ):
        message = "a transactional batch in a request without transactional.id: set it, or write without"
        return Refused(ErrorCode.transactional_id_authorization_failed, message)
    twice = named_twice(_asked(request))
    if twice:
        message = f"{twice[0]} is named more than once: send one batch per partition and request"
        return Refused(ErrorCode.invalid_request, message)
    return None


def _writable(call: Call, topic_partition: TopicPartition) -> Partition | Refused:
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


def _append_one(
    call: Call, request: ProduceRequest, partition: Partition, data: ProducePartition, token: int
) -> AppendResult:
    """Check the batch for one partition, give it its topic's codec and time, and append it."""
    taken = _taken(call, request, partition, data)
    if isinstance(taken, Refused):
        return taken
    return _append_taken(call, request, partition, taken, token)


def _taken(
    call: Call, request: ProduceRequest, partition: Partition, data: ProducePartition
) -> Intake | Refused:
    """The batch as it may be appended, or why its topic does not take it."""
    sent = memoryview(b"") if data.records is None else memoryview(data.records)
    taken = prepared(
        sent,
        call.topic_config(partition.topic_partition.topic),
        version=call.version,
        payload_kinds=request.payload_kinds,
        now_ms=call.broker.clock.wall_ms(),
        columns=partition.columns,
    )
    if isinstance(taken, RefusedBatch):
        return Refused(taken.error, taken.message, taken.record_errors)
    if taken.converted:
        call.broker.conversions.count_produced(taken.converted)
    return taken


def _append_taken(
    call: Call,
    request: ProduceRequest,
    partition: Partition,
    taken: Intake,
    token: int,
    guard: VerificationGuard | None = None,
) -> AppendResult:
    connection = call.context.connection_id
    append = AppendRequest(
        taken.records,
        taken.accepted.batches,
        request.acks,
        after_refusal=call.broker.refusals.has_refused(connection, partition.topic_partition),
        guard=guard,
        connection=connection,
    )
    return partition.leader_append.append(append, token)


def _let_go(call: Call, request: ProduceRequest) -> None:
    """Everything is in the log or refused: a request that waits for followers must not keep its bytes."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None
    call.exchange.frame = memoryview(b"")


def _asked(request: ProduceRequest) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, data.index)
        for topic in request.topic_data
        for data in topic.partition_data
    ]


def _answer(call: Call, request: ProduceRequest, results: Results) -> None:
    if any(isinstance(result, LateRequest) for result in results.values()):
        call.exchange.close()
        return
    if request.acks == 0:
        if any(result.error is not ErrorCode.none for result in results.values()):
            call.exchange.close()
        else:
            call.no_reply()
        return
    for topic_partition, result in results.items():
        if result.error in SENT_AGAIN and not isinstance(result, HeldUp):
            call.broker.refusals.note(call.context.connection_id, topic_partition)
    call.reply(
        ProduceResponse(
            responses=[
                ProduceTopicResponse(
                    name=topic.name,
                    partition_responses=[
                        _partition(results[TopicPartition(topic.name, data.index)], data.index)
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )
    )


def _partition(result: AppendResult, index: int) -> ProducePartitionResponse:
    if isinstance(result, Appended):
        return ProducePartitionResponse(
            index=index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
    record_errors = result.record_errors if isinstance(result, Refused) else ()
    return ProducePartitionResponse(
        index=index,
        error_code=result.error,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=result.message or None,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=n, batch_index_error_message=why)
            for n, why in record_errors
        ],
    )
