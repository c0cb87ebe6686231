"""Asks the coordinator of a transactional id whether partitions are in its transaction (KIP-890).

A coordinator on this broker is asked in memory; another one by AddPartitionsToTxn 4, together with all other
transactions that it has to be asked about. Whoever asks waits for nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sparklog.broker.coordination.broker_batches import BrokerBatches, BrokerCalls
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.ports import Coordinators, Ports
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.core.transaction_coordinator.responses import PartitionAnswers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

Errors = Mapping[TopicPartition, ErrorCode]

TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.network_exception,
        ErrorCode.request_timed_out,
    }
)
"""Answers after which the producer is to send its batch again."""


@dataclass(frozen=True, slots=True)
class _Asked:
    request: VerifyPartitions
    answer: Callable[[Errors], None]


class TransactionVerifier:
    """The verifications of one broker."""

    def __init__(
        self,
        broker_id: BrokerId,
        metadata: MetadataCache,
        coordinators: Coordinators,
        ports: Ports,
        calls: BrokerCalls,
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._coordinators = coordinators
        self._batches: BrokerBatches[_Asked] = BrokerBatches(
            "transaction-verifications",
            calls,
            new_guard=ports.new_guard,
            request_of=_request,
            deliver=_deliver,
        )

    def verify(self, request: VerifyPartitions, answer: Callable[[Errors], None]) -> None:
        """``answer`` gets an error for each partition, the producer's error, or NONE to append; it is
        called before this returns, or later by another thread.
        """

        def answered(errors: Errors) -> None:
            answer({topic_partition: _of_a_produce(error) for topic_partition, error in errors.items()})

        leader = self._coordinator_of(request.transactional_id)
        if leader is None:
            answered(request.refused(ErrorCode.coordinator_not_available).errors)
        elif leader == self._broker_id:

            def from_here(response: PartitionAnswers) -> None:
                answered(response.errors)

            self._coordinators.submit(TRANSACTION_STATE_TOPIC, request, from_here)
        else:
            self._batches.put(leader, _Asked(request, answered))

    def _coordinator_of(self, transactional_id: str) -> BrokerId | None:
        topic = self._metadata.topic(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return None
        state = topic.partitions.get(partition_of(transactional_id, len(topic.partitions)))
        return None if state is None or state.leader < 0 else state.leader


def _of_a_produce(error: ErrorCode) -> ErrorCode:
    """The error in the words that producers of every version understand."""
    if error in TRY_AGAIN:
        return ErrorCode.not_enough_replicas
    return ErrorCode.invalid_producer_epoch if error is ErrorCode.producer_fenced else error


def _request(asked: list[_Asked]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=one.request.transactional_id,
                producer_id=one.request.producer_id,
                producer_epoch=one.request.producer_epoch,
                verify_only=True,
                topics=_topics(one.request),
            )
            for one in asked
        ]
    )


def _topics(request: VerifyPartitions) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, number in request.topic_partitions:
        if name not in topics:
            topic_id = request.topic_ids.get(name, NO_TOPIC_ID)
            topics[name] = AddPartitionsToTxnTopic(name=name, topic_id=topic_id)
        topics[name].partitions.append(number)
    return list(topics.values())


def _deliver(asked: list[_Asked], response: AddPartitionsToTxnResponse | None) -> None:
    """Results are in the order of the transactions: two producers may name the same transactional id."""
    results = [] if response is None else response.results_by_transaction
    is_answer = response is not None and response.error_code is ErrorCode.none and len(results) == len(asked)
    for number, one in enumerate(asked):
        errors = dict(one.request.refused(ErrorCode.network_exception).errors)
        if is_answer:
            for topic in results[number].topic_results:
                for partition in topic.results_by_partition:
                    topic_partition = TopicPartition(topic.name, partition.partition_index)
                    if topic_partition in errors:
                        errors[topic_partition] = partition.partition_error_code
        one.answer(errors)
