"""Produce: append batches to partitions that this broker leads.

With acks=0 there is no response; if anything failed the connection is closed instead, the only way to say so.
Each batch is checked before any lock is taken; a refused batch uses up no offset. Once the batches are in the
log, the connection's next produce may begin, because only a wait for replicas is left.

A batch that begins a transaction in its partition waits, without a thread, until the producer's coordinator
has said that the partition is in the transaction (``transactional_produce``). The
connection's next produce waits with it, so that batches keep their order.

Internal topics are closed to clients, as in Kafka (ReplicaManager.appendToLocalLog). Typed topics take rows
of their columns alone, from clients that know these.
"""

from functools import partial

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.handlers.producing.one_batch import append_one, append_taken, taken, writable
from sparklog.broker.handlers.producing.produce_answer import Results, answer, answer_one
from sparklog.broker.handlers.producing.transactional_produce import TransactionalBatch, verify
from sparklog.broker.partition.append_results import AppendResult, Refused
from sparklog.broker.waiting.joint_wait import Share, named_twice
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS
from sparklog.records.envelope import claims_transaction
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest


def handle(call: Call, request: ProduceRequest) -> None:
    lone = _lone_batch(request)
    if lone is not None:
        _handle_one(call, request, *lone)
    else:
        _handle_several(call, request)


def _lone_batch(request: ProduceRequest) -> tuple[TopicPartition, ProducePartition] | None:
    """The batch of a request that has one, in no transaction; None of any other request, and of one that
    ``_refusal`` refuses.
    """
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1 or request.acks not in ACKS:
        return None
    (data,) = topics[0].partition_data
    if data.records is None or claims_transaction(data.records):
        return None
    return TopicPartition(topics[0].name, data.index), data


def _handle_one(
    call: Call, request: ProduceRequest, topic_partition: TopicPartition, data: ProducePartition
) -> None:
    """As ``_handle_several``, for the most frequent request: no table of shares, no timer of its own."""
    call.broker.refusals.on_produce_request(call.context.connection_id)
    partition = writable(call, topic_partition)
    if isinstance(partition, Refused):
        answer(call, request, {topic_partition: partition})
    else:
        call.broker.appends.alone.run(
            partial(append_one, call, request, partition, data),
            partition.leader_append.forget,
            bounded_timeout_ms(request.timeout_ms),
            lambda result: call.carefully(lambda: answer_one(call, request, topic_partition, result)),
        )
    _let_go(call, request)
    call.exchange.let_next_begin()


def _handle_several(call: Call, request: ProduceRequest) -> None:
    refusal = _refusal(request)
    if refusal is not None:
        answer(call, request, dict.fromkeys(_asked(request), refusal))
        return
    call.broker.refusals.on_produce_request(call.context.connection_id)
    refused: Results = {}
    shares: list[Share[AppendResult]] = []
    transactional: list[TransactionalBatch] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            topic_partition = TopicPartition(topic.name, data.index)
            partition = writable(call, topic_partition)
            if isinstance(partition, Refused):
                refused[topic_partition] = partition
            elif data.records is not None and claims_transaction(data.records):
                batch = taken(call, request, partition, data)
                if isinstance(batch, Refused):
                    refused[topic_partition] = batch
                else:
                    transactional.append(TransactionalBatch(partition, batch))
            else:
                append = partial(append_one, call, request, partition, data)
                shares.append(Share(topic_partition, append, partition.leader_append.forget))
    if not transactional:
        _append(call, request, shares, refused)
        return

    def verified(failed: Results) -> None:
        for batch in transactional:
            if batch.topic_partition not in failed:
                append = partial(append_taken, call, request, batch.partition, batch.taken, guard=batch.guard)
                shares.append(Share(batch.topic_partition, append, batch.partition.leader_append.forget))
        call.carefully(lambda: _append(call, request, shares, {**refused, **failed}))

    verify(call, request.transactional_id or "", transactional, verified)


def _append(call: Call, request: ProduceRequest, shares: list[Share[AppendResult]], refused: Results) -> None:
    call.broker.appends.run(
        shares,
        bounded_timeout_ms(request.timeout_ms),
        lambda results: call.carefully(lambda: answer(call, request, results)),
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
