"""Questions about transactions, and their ends from outside (KIP-664).

The coordinators of transactional ids know which transactions there are; the leaders of partitions know which
producers have one open there. An end from outside aborts: the coordinator does it when a newer producer takes
the transactional id over, and a leader does it alone in its partition when it is sent a marker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.coordinator import Coordinator, ask_when_ready
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import is_of_a_write
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.transactions.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from sparklog.wire.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from sparklog.wire.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

FIRST_COORDINATOR_EPOCH: Final = 0
"""The coordinator epoch of an abort if the partition has had no marker of that producer yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    transaction_state: str
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transactional id with its latest transaction, or an app with its open atomic write.

    ``start_ms`` by the wall clock, -1 if no transaction has begun. ``partitions`` are those of the
    transaction that is open or being ended, sorted.
    """

    transactional_id: str
    coordinator: Node
    producer_id: int
    producer_epoch: int
    transaction_state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]

    @property
    def is_write(self) -> bool:
        """Whether it is an atomic write: ``producer_id`` is then that of one of its members."""
        return is_of_a_write(self.producer_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducer:
    """A producer that a partition's leader remembers.

    ``coordinator_epoch`` is that of its last marker there, -1 without one. ``last_timestamp_ms`` is the
    timestamp of its last batch. ``open_since`` is the first offset of its open transaction; -1 without one.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    open_since: int


class TransactionAdmin:
    """Stateless over a ``ClusterClient``; as safe to share between threads as that is."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    def list_transactions(
        self, states: Sequence[str] = (), producer_ids: Sequence[int] = ()
    ) -> list[TransactionListing]:
        """The transactional ids of all live brokers, sorted; those in these states, and of these producers.

        None given: all. An atomic write that is open is listed under its app id, once for each of the
        ``producer_ids`` that is a member of it, else once. KafkaError or OSError if a broker does not answer,
        because the list would lack its transactions.
        """
        request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
        found: dict[tuple[str, int], TransactionListing] = {}
        brokers = self._cluster.metadata([], max_age_ms=0).brokers
        for broker_id in sorted(brokers):
            response: ListTransactionsResponse = ask_when_ready(
                self._cluster, brokers[broker_id], request, lambda answer: answer.error_code, "transactions"
            )
            for one in response.transaction_states:
                found[one.transactional_id, one.producer_id] = TransactionListing(
                    transactional_id=one.transactional_id,
                    producer_id=one.producer_id,
                    transaction_state=one.transaction_state,
                    coordinator=broker_id,
                )
        return [found[ids] for ids in sorted(found)]

    def start_times(self, listings: Iterable[TransactionListing]) -> dict[str, int]:
        """When the transaction of each of these began, by the wall clock in milliseconds.

        One that has ended meanwhile, or whose coordinator has moved, is left out. KafkaError or OSError if a
        broker does not answer.
        """
        by_coordinator: dict[int, list[str]] = {}
        for one in listings:
            ids = by_coordinator.setdefault(one.coordinator, [])
            if one.transactional_id not in ids[-1:]:  # a write is listed once for each member asked for
                ids.append(one.transactional_id)
        started: dict[str, int] = {}
        for broker_id, ids in by_coordinator.items():
            response: DescribeTransactionsResponse = self._cluster.call_broker(
                broker_id, DescribeTransactionsRequest(transactional_ids=ids)
            )
            for found in response.transaction_states:
                if found.error_code is ErrorCode.none and found.transaction_start_time_ms >= 0:
                    started[found.transactional_id] = found.transaction_start_time_ms
        return started

    def describe(self, transactional_id: str) -> TransactionDescription | None:
        """The transactional id; None if its coordinator knows none of that name. KafkaError."""
        coordinator = self._coordinator(transactional_id)
        response: DescribeTransactionsResponse = coordinator.call(
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            lambda answer: answer.transaction_states[0].error_code,
        )
        (found,) = response.transaction_states
        if found.error_code is ErrorCode.transactional_id_not_found:
            return None
        if found.error_code is not ErrorCode.none:
            raise KafkaError(found.error_code, f"transactional id {transactional_id!r} cannot be described")
        return TransactionDescription(
            transactional_id=transactional_id,
            coordinator=coordinator.find(),
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            transaction_state=found.transaction_state,
            timeout_ms=found.transaction_timeout_ms,
            start_ms=found.transaction_start_time_ms,
            partitions=tuple(
                sorted(TopicPartition(one.topic, number) for one in found.topics for number in one.partitions)
            ),
        )

    def producers(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """What each partition's leader remembers of its producers; KafkaError if one does not answer."""
        return self._cluster.call_leaders(topic_partitions, _describe_producers, _described_producers)

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        """Take the transactional id over: its producer is fenced, and its open transaction is aborted.

        Returns once every partition has its marker. Whoever initialises an id that does not exist makes it,
        so ask ``describe`` first. ``timeout_ms``: the time-out of its transactions from now on. KafkaError.
        """
        response: InitProducerIdResponse = self._coordinator(transactional_id).call(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms),
            lambda answer: answer.error_code,
        )
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, f"transactional id {transactional_id!r} was not fenced")

    def abort_in_partition(
        self, topic_partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Have the partition's leader write the marker of an abort, whatever a coordinator knows. KafkaError.

        ``coordinator_epoch`` -1: none is known, and the first one is taken, which is never newer than a real
        one.
        """
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[
                WritableTxnMarkerTopic(
                    name=topic_partition.topic, partition_indexes=[topic_partition.partition]
                )
            ],
            coordinator_epoch=max(coordinator_epoch, FIRST_COORDINATOR_EPOCH),
        )
        self._cluster.call_leaders(
            [topic_partition], lambda _: WriteTxnMarkersRequest(markers=[marker]), _written_markers
        )

    def _coordinator(self, transactional_id: str) -> Coordinator:
        return Coordinator(self._cluster, transactional_id, TRANSACTION_KEY)


def _describe_producers(leaders: Mapping[TopicPartition, KnownLeader]) -> DescribeProducersRequest:
    topics: dict[str, DescribeProducersTopic] = {}
    for topic, number in leaders:
        topics.setdefault(topic, DescribeProducersTopic(name=topic)).partition_indexes.append(number)
    return DescribeProducersRequest(topics=list(topics.values()))


def _described_producers(
    response: DescribeProducersResponse,
) -> dict[TopicPartition, Answer[list[PartitionProducer]]]:
    return {
        TopicPartition(topic.name, one.partition_index): (
            one.error_code,
            [
                PartitionProducer(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    coordinator_epoch=producer.coordinator_epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp_ms=producer.last_timestamp,
                    open_since=producer.current_txn_start_offset,
                )
                for producer in one.active_producers
            ],
        )
        for topic in response.topics
        for one in topic.partitions
    }


def _written_markers(response: WriteTxnMarkersResponse) -> dict[TopicPartition, Answer[None]]:
    return {
        TopicPartition(topic.name, one.partition_index): (one.error_code, None)
        for marker in response.markers
        for topic in marker.topics
        for one in topic.partitions
    }
