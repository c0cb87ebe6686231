"""Two brokers, and a producer of transactions that sends each request by itself."""

import itertools
import time

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.network.dialing.connection import Connection
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing.cluster import InProcessCluster
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
)
from sparklog.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest
from sparklog.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TIMEOUT_MS = 5_000
WAIT_S = 20.0
ids = itertools.count(1)

RETRIED = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_enough_replicas,
    }
)
"""What clients answer by sending the request again."""


class Wire:
    """Connections to the brokers of a cluster."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.connections = {}

    def to(self, broker_id):
        if broker_id not in self.connections:
            node = self.cluster.brokers[broker_id].node
            self.connections[broker_id] = Connection.open(
                node.host, node.port, client_id="test", timeout_ms=TIMEOUT_MS
            )
        return self.connections[broker_id]

    def call(self, broker_id, request, version=None):
        return self.to(broker_id).call(request, version=version, timeout_ms=TIMEOUT_MS)

    def coordinator(self, key, key_type=TRANSACTION_KEY):
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            (found,) = self.call(1, request).coordinators
            if found.error_code is ErrorCode.none:
                return found.node_id
        raise AssertionError(found)

    def close(self):
        for connection in self.connections.values():
            connection.close()


class TransactionalProducer:
    """One transactional id. Methods return error codes; retriable ones only with ``patient=False``."""

    def __init__(self, wire, transactional_id=None):
        self.wire = wire
        self.transactional_id = transactional_id or f"id-{next(ids)}"
        self.producer_id, self.producer_epoch = -1, -1
        self.sequences = {}

    def call(self, request, version=None, *, to=None, error_of, patient=True):
        deadline = time.monotonic() + WAIT_S
        while True:
            broker_id = self.wire.coordinator(self.transactional_id) if to is None else to
            answer = self.wire.call(broker_id, request, version)
            error = error_of(answer)
            if not patient or error not in RETRIED:
                return answer, error
            assert time.monotonic() < deadline, error

    @property
    def identity(self):
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    def init(self, *, timeout_ms=60_000, version=None, keeps_identity=False, patient=True):
        identity = {}
        if keeps_identity:
            identity = {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms, **identity
        )
        answer, error = self.call(
            request, version, error_of=lambda answer: answer.error_code, patient=patient
        )
        if error is ErrorCode.none:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return error

    def add(self, *partitions, version=3, patient=True):
        """The errors by partition, or the one that all of them share."""
        topics = {}
        for name, number in partitions:
            topics.setdefault(name, []).append(number)
        request = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in self.identity.items()},
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=n, partitions=p) for n, p in topics.items()],
        )

        def errors(answer):
            return {
                TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            }

        def shared(answer):
            found = set(errors(answer).values())
            return found.pop() if len(found) == 1 else None

        answer, error = self.call(request, version, error_of=shared, patient=patient)
        return errors(answer) if error is None else error

    def batch(self, topic_partition, *values, **changes):
        fields = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "base_sequence": self.sequences.get(topic_partition, 0),
            "is_transactional": True,
        }
        return build_records_batch(
            [Record(value=value) for value in values], now_ms=1_000, **{**fields, **changes}
        )

    def send(self, topic_partition, *values, patient=True, version=None, **changes):
        """The answer about one partition."""
        batch = self.batch(topic_partition, *values, **changes)
        data = [ProducePartition(index=topic_partition.partition, records=batch)]
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=TIMEOUT_MS,
            topic_data=[ProduceTopic(name=topic_partition.topic, partition_data=data)],
        )  # fmt: skip
        leader = self.wire.cluster.wait_for_leader(*topic_partition)
        answer, _ = self.call(
            request, version, to=leader, patient=patient,
            error_of=lambda answer: answer.responses[0].partition_responses[0].error_code,
        )  # fmt: skip
        told = answer.responses[0].partition_responses[0]
        if told.error_code is ErrorCode.none:
            self.sequences[topic_partition] = self.sequences.get(topic_partition, 0) + len(values)
        return told

    def end(self, *, commits, version=3, patient=True):
        request = EndTxnRequest(**self.identity, committed=commits)
        return self.call(request, version, error_of=lambda answer: answer.error_code, patient=patient)[1]

    def add_offsets(self, group_id, *, version=3):
        request = AddOffsetsToTxnRequest(**self.identity, group_id=group_id)
        return self.call(request, version, error_of=lambda answer: answer.error_code)[1]

    def commit_offsets(self, group_id, offsets, *, version=3, **membership):
        """The errors by partition."""
        topics = {}
        for (name, number), offset in offsets.items():
            topics.setdefault(name, []).append(
                TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            )
        request = TxnOffsetCommitRequest(
            **self.identity, group_id=group_id, **membership,
            topics=[TxnOffsetCommitRequestTopic(name=n, partitions=p) for n, p in topics.items()],
        )  # fmt: skip
        to = self.wire.coordinator(group_id, GROUP_KEY)

        def errors(answer):
            return {
                TopicPartition(topic.name, partition.partition_index): partition.error_code
                for topic in answer.topics
                for partition in topic.partitions
            }

        def any_retried(answer):
            return next((error for error in errors(answer).values() if error in RETRIED), None)

        return errors(self.call(request, version, to=to, error_of=any_retried)[0])


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic("t", partitions=4)
        yield cluster


@pytest.fixture
def wire(cluster):
    wire = Wire(cluster)
    yield wire
    wire.close()


@pytest.fixture
def producer(wire):
    """Initialised, under an id of its own."""
    producer = TransactionalProducer(wire)
    assert producer.init() is ErrorCode.none
    return producer
