"""AddPartitionsToTxn: partitions that a producer is about to write to, or that a broker wants to verify.

All or nothing: if one partition does not exist, it is named, and the others get OPERATION_NOT_ATTEMPTED. So
with partitions of internal topics, which are closed to clients: a group's partition is added by
AddOffsetsToTxn.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.transaction_calls import ask, error_of_version, is_too_long
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import AddPartitions, VerifyPartitions
from sparklog.core.transaction_coordinator.responses import Answer, PartitionAnswers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_BATCHED_VERSION = 4

Errors = Mapping[TopicPartition, ErrorCode]
Answerer = Callable[[Errors], None]


def handle(call: Call, request: AddPartitionsToTxnRequest) -> None:
    if call.version >= FIRST_BATCHED_VERSION:
        _handle_many(call, request.transactions)
        return
    topic_partitions = _topic_partitions(request.v3_and_below_topics)
    problem = _problem(call, request.v3_and_below_transactional_id, topic_partitions)
    if problem is not None:
        call.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(problem)))
        return

    def response(answer: Answer) -> AddPartitionsToTxnResponse:
        errors = dict.fromkeys(topic_partitions, error_of_version(call, answer.error))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors))

    addition = AddPartitions(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        _topics(call, topic_partitions),
        call.context.connection_id,
    )
    ask(call, addition, response)


def _handle_many(call: Call, transactions: Sequence[AddPartitionsToTxnTransaction]) -> None:
    """Results in the order of the transactions."""
    results: dict[int, Errors] = {}
    guard = call.broker.new_guard()

    def keep(number: int, errors: Errors) -> None:
        with guard:
            results[number] = errors
            if len(results) < len(transactions):
                return
        call.carefully(answer)

    def answer() -> None:
        call.reply(
            AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResult(
                        transactional_id=transaction.transactional_id, topic_results=_results(results[number])
                    )
                    for number, transaction in enumerate(transactions)
                ]
            )
        )

    if not transactions:
        answer()
    for number, transaction in enumerate(transactions):
        _ask_one(call, transaction, partial(keep, number))


def _ask_one(call: Call, transaction: AddPartitionsToTxnTransaction, answer: Answerer) -> None:
    topic_partitions = _topic_partitions(transaction.topics)
    identity = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    coordinators = call.broker.coordinators
    if transaction.verify_only:

        def verified(response: PartitionAnswers) -> None:
            answer(response.errors)

        topic_ids = {topic.name: topic.topic_id for topic in transaction.topics}
        request = VerifyPartitions(*identity, topic_partitions, topic_ids)
        coordinators.submit(TRANSACTION_STATE_TOPIC, request, verified)
        return
    problem = _problem(call, transaction.transactional_id, topic_partitions)
    if problem is not None:
        answer(problem)
        return

    def added(response: Answer) -> None:
        answer(dict.fromkeys(topic_partitions, response.error))

    coordinators.submit(
        TRANSACTION_STATE_TOPIC, AddPartitions(*identity, topics=_topics(call, topic_partitions)), added
    )


def _problem(
    call: Call, transactional_id: str, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode] | None:
    """The errors of a request that changes nothing, whatever the coordinator knows."""
    if is_too_long(transactional_id):
        return dict.fromkeys(topic_partitions, ErrorCode.invalid_request)
    metadata, problems = call.broker.metadata, {}
    for topic_partition in topic_partitions:
        if topic_partition.topic in INTERNAL_TOPICS:
            problems[topic_partition] = ErrorCode.topic_authorization_failed
        elif metadata.partition(topic_partition) is None:
            problems[topic_partition] = ErrorCode.unknown_topic_or_partition
    if not problems:
        return None
    return dict.fromkeys(topic_partitions, ErrorCode.operation_not_attempted) | problems


def _topic_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    """The partitions, each once."""
    named = (TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)
    return tuple(dict.fromkeys(named))


def _topics(call: Call, topic_partitions: Iterable[TopicPartition]) -> tuple[TransactionTopic, ...]:
    numbers: dict[str, list[int]] = {}
    for name, number in topic_partitions:
        numbers.setdefault(name, []).append(number)
    return tuple(
        TransactionTopic(name, call.broker.metadata.topic_id(name), tuple(sorted(of_topic)))
        for name, of_topic in numbers.items()
    )


def _results(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, number), error in errors.items():
        topic = topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name))
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
        )
    return list(topics.values())
