"""Which open transactions hang, while coordinators move and transactions end in between."""

from typing import Any

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from sparklog.client.transactions.hanging import hanging_transactions
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.discovery.find_coordinator import Coordinator, FindCoordinatorResponse
from sparklog.wire.messages.transactions import describe_transactions as describe
from sparklog.wire.messages.transactions import list_transactions as listing
from sparklog.wire.messages.transactions.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResponse,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)

PLACE = TopicPartition("t", 0)
PRODUCER = 7
NODES = {BrokerId(number): Node(BrokerId(number), "127.0.0.1", number) for number in (1, 2)}


class ScriptedCluster(ClusterClient):
    """Two brokers. ``leaders``: who leads the coordinators' partition, at each look at it.

    ``knows``: whether the listing has the transaction, at each listing. ``still_open``: whether the partition
    has it, at each look. ``loads``: answers of coordinators that are not ready.
    """

    def __init__(self, *, leaders: list[int], knows: list[bool], still_open: list[bool], loads: int = 0):
        super().__init__("127.0.0.1:1")
        self.leaders, self.knows, self.still_open, self.loads = leaders, knows, still_open, loads
        self.listings = 0

    def metadata(self, topics: Any = None, *, max_age_ms: int | None = None) -> ClusterMetadata:
        if TRANSACTION_STATE_TOPIC not in (topics or ()):
            return ClusterMetadata(brokers=NODES)
        leader = BrokerId(_next(self.leaders))
        partition = PartitionMetadata(0, leader, 1, (1, 2), (1, 2))
        topic = TopicMetadata(TRANSACTION_STATE_TOPIC, NO_TOPIC_ID, {0: partition}, is_internal=True)
        return ClusterMetadata(brokers=NODES, topics={TRANSACTION_STATE_TOPIC: topic})

    def call_leaders(self, topic_partitions: Any, build: Any, read: Any, **_: Any) -> Any:
        if not list(topic_partitions):
            return {}
        producer = ActiveProducer(
            producer_id=PRODUCER,
            producer_epoch=0,
            last_timestamp=1_000,
            coordinator_epoch=-1,
            current_txn_start_offset=3 if _next(self.still_open) else -1,
        )
        partition = DescribeProducersPartitionResponse(partition_index=0, active_producers=[producer])
        topic = DescribeProducersTopicResponse(name="t", partitions=[partition])
        return {where: value for where, (_, value) in read(DescribeProducersResponse(topics=[topic])).items()}

    def call_any(self, message: Any, error_of: Any = None, *, timeout_ms: int | None = None) -> Any:
        found = Coordinator(key=message.coordinator_keys[0], node_id=1, host="127.0.0.1", port=1)
        return FindCoordinatorResponse(coordinators=[found])

    def call_endpoint(self, endpoint: Any, message: Any, deadline: Any) -> Any:
        if isinstance(message, describe.DescribeTransactionsRequest):
            state = describe.TransactionState(
                transactional_id="id",
                transaction_state="Ongoing",
                producer_id=PRODUCER,
                topics=[describe.TopicData(topic="t", partitions=[0])],
            )
            return describe.DescribeTransactionsResponse(transaction_states=[state])
        if self.loads:
            self.loads -= 1
            return listing.ListTransactionsResponse(error_code=ErrorCode.coordinator_load_in_progress)
        self.listings += endpoint.port == 1
        if endpoint.port != 1 or not _next(self.knows):
            return listing.ListTransactionsResponse()
        state = listing.TransactionState(
            transactional_id="id", producer_id=PRODUCER, transaction_state="Ongoing"
        )
        return listing.ListTransactionsResponse(transaction_states=[state])


def _next(script: list[Any]) -> Any:
    return script.pop(0) if len(script) > 1 else script[0]


def found_in(cluster: ScriptedCluster) -> list[Any]:
    with cluster:
        return hanging_transactions(cluster, [PLACE], 900_000, 1_000_000)


def test_what_no_coordinator_knows_hangs() -> None:
    (found,) = found_in(ScriptedCluster(leaders=[1], knows=[False], still_open=[True]))
    assert (found.topic_partition, found.producer.producer_id, found.producer.open_since) == (PLACE, 7, 3)


def test_what_a_coordinator_knows_does_not_hang() -> None:
    assert found_in(ScriptedCluster(leaders=[1], knows=[True], still_open=[True])) == []


def test_coordinators_that_moved_between_the_questions_are_asked_again() -> None:
    """Neither the old nor the new broker listed the transaction, as each was asked while it did not lead."""
    cluster = ScriptedCluster(leaders=[2, 1, 1], knows=[False, True], still_open=[True])
    assert found_in(cluster) == []
    assert cluster.listings == 2


def test_a_transaction_that_ends_meanwhile_does_not_hang() -> None:
    assert found_in(ScriptedCluster(leaders=[1], knows=[False], still_open=[True, False])) == []


def test_a_coordinator_that_loads_is_asked_until_it_has_loaded() -> None:
    assert found_in(ScriptedCluster(leaders=[1], knows=[True], still_open=[True], loads=3)) == []


def test_nothing_is_said_while_a_partition_of_the_coordinators_has_no_leader() -> None:
    with pytest.raises(KafkaError, match="__transaction_state-0 has no leader"):
        found_in(ScriptedCluster(leaders=[-1], knows=[False], still_open=[True]))
