"""What partitions and ends do to a transactional id: a new state, or the error that the client gets."""

from collections.abc import Iterable
from dataclasses import replace

from sparklog.core.transaction_coordinator.records import TransactionTopic, TransactionValue
from sparklog.core.transaction_coordinator.requests import (
    AddPartitions,
    EndTransaction,
    MarkersWritten,
    VerifyPartitions,
)
from sparklog.core.transaction_coordinator.responses import PartitionAnswers
from sparklog.core.transaction_coordinator.states import ENDING, TransactionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition


def producer_error(
    value: TransactionValue | None, request: AddPartitions | VerifyPartitions | EndTransaction
) -> ErrorCode:
    """Why a producer may do nothing with the transactional id, if it is not its present one."""
    if value is None or value.producer_id != request.producer_id:
        return ErrorCode.invalid_producer_id_mapping
    if value.producer_epoch != request.producer_epoch:
        return ErrorCode.producer_fenced
    return ErrorCode.none


def with_partitions(
    value: TransactionValue | None, request: AddPartitions, now_ms: int
) -> TransactionValue | ErrorCode:
    """The transaction with the request's partitions; ``ErrorCode.none`` if it has them already."""
    error = producer_error(value, request)
    if value is None or error is not ErrorCode.none:
        return error
    if value.state in ENDING:
        return ErrorCode.concurrent_transactions
    is_open = value.state is TransactionState.ONGOING
    topics = merged(value.topics if is_open else (), request.topics)
    if is_open and topics == value.topics:
        return ErrorCode.none
    return replace(
        value,
        state=TransactionState.ONGOING,
        topics=topics,
        start_ms=value.start_ms if is_open else now_ms,
        last_update_ms=now_ms,
    )


def merged(
    present: Iterable[TransactionTopic], added: Iterable[TransactionTopic]
) -> tuple[TransactionTopic, ...]:
    """Both, by name. Of a topic that was made again under its name, only the partitions of the new one."""
    partitions: dict[str, tuple[TopicId, set[int]]] = {
        topic.name: (topic.topic_id, set(topic.partitions)) for topic in present
    }
    for topic in added:
        known = partitions.get(topic.name)
        if known is None or known[0] != topic.topic_id:
            partitions[topic.name] = (topic.topic_id, set(topic.partitions))
        else:
            known[1].update(topic.partitions)
    return tuple(
        TransactionTopic(name, topic_id, tuple(sorted(numbers)))
        for name, (topic_id, numbers) in sorted(partitions.items())
    )


def verified(value: TransactionValue | None, request: VerifyPartitions) -> PartitionAnswers:
    error = producer_error(value, request)
    if value is None or error is not ErrorCode.none:
        return request.refused(error)
    if value.state in ENDING:
        return request.refused(ErrorCode.concurrent_transactions)
    return found_in(value.topics, request)


def found_in(topics: Iterable[TransactionTopic], request: VerifyPartitions) -> PartitionAnswers:
    """INVALID_TXN_STATE for partitions that are not in the transaction's topics."""
    known = {one: topic.topic_id for topic in topics for one in topic.topic_partitions}

    def is_in(topic_partition: TopicPartition) -> bool:
        ids = {
            known.get(topic_partition, NO_TOPIC_ID),
            request.topic_ids.get(topic_partition.topic, NO_TOPIC_ID),
        }
        return topic_partition in known and len(ids - {NO_TOPIC_ID}) <= 1

    return PartitionAnswers(
        {
            topic_partition: ErrorCode.none if is_in(topic_partition) else ErrorCode.invalid_txn_state
            for topic_partition in request.topic_partitions
        }
    )


def ended(
    value: TransactionValue | None, request: EndTransaction, now_ms: int
) -> TransactionValue | ErrorCode:
    """The decision to end the open transaction; ``ErrorCode.none`` if it has ended that way already."""
    error = producer_error(value, request)
    if value is None or error is not ErrorCode.none:
        return error
    if value.state is TransactionState.ONGOING:
        return replace(value, state=prepare_state(request.is_commit), last_update_ms=now_ms)
    if value.state is prepare_state(request.is_commit):
        return ErrorCode.concurrent_transactions
    if value.state is complete_state(request.is_commit):
        return ErrorCode.none
    return ErrorCode.invalid_txn_state


def completed(
    value: TransactionValue | None, request: MarkersWritten, now_ms: int
) -> TransactionValue | None:
    """The transaction after its last marker; None if the markers are not those that it waits for."""
    is_awaited = (
        value is not None
        and value.state is prepare_state(request.is_commit)
        and value.producer_id == request.producer_id
        and value.producer_epoch == request.producer_epoch
    )
    if value is None or not is_awaited:
        return None
    return replace(value, state=complete_state(request.is_commit), topics=(), last_update_ms=now_ms)


def prepare_state(is_commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT


def complete_state(is_commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
