"""Requests that no client should send: each is refused for itself, and leaves nothing behind."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.transactions.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from sparklog.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.handlers.transactions.conftest import TransactionalProducer

NONE = ErrorCode.none
T0, T1 = (TopicPartition("t", number) for number in range(2))


def described(producer):
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
    broker_id = producer.wire.coordinator(producer.transactional_id)
    return producer.wire.call(broker_id, request).transaction_states[0].transaction_state


def test_a_batch_of_an_epoch_that_nobody_has_keeps_no_others_out(wire, producer):
    other = TransactionalProducer(wire, producer.transactional_id)
    other.producer_id, other.producer_epoch = producer.producer_id, producer.producer_epoch + 1
    producer.add(T0)
    assert other.send(T0, b"x", patient=False).error_code is ErrorCode.invalid_producer_epoch
    assert producer.send(T0, b"in it", patient=False).error_code is NONE


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_in_no_clients_transaction(producer, topic):
    internal = TopicPartition(topic, 0)
    assert producer.add(T0, internal) == {
        T0: ErrorCode.operation_not_attempted,
        internal: ErrorCode.topic_authorization_failed,
    }
    assert described(producer) == "Empty"


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (5, -1), (-1, -1)])
def test_offsets_of_no_producer_are_refused(producer, producer_id, producer_epoch):
    producer.add_offsets("pipeline")
    producer.producer_id, producer.producer_epoch = producer_id, producer_epoch
    told = producer.commit_offsets("pipeline", {T0: 5})
    expected = "invalid_producer_id_mapping" if producer_id < 0 else "invalid_producer_epoch"
    assert {error.name for error in told.values()} == {expected}


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (5, -1)])
def test_a_marker_of_no_producer_is_refused_and_takes_no_offset(cluster, wire, producer_id, producer_epoch):
    leader = cluster.wait_for_leader(*T1)
    partition = cluster.brokers[leader].body.replicas.get(T1)
    before = partition.log_end_offset
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[1])]
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=topics,
        coordinator_epoch=0,
    )
    told = wire.call(leader, WriteTxnMarkersRequest(markers=[marker]))
    assert told.markers[0].topics[0].partitions[0].error_code is ErrorCode.invalid_request
    assert partition.log_end_offset == before


@pytest.mark.parametrize(("name", "code"), [("no such topic", 17), ("absent", 3), ("", 17)])
def test_producers_of_what_is_not_there_are_not_described(wire, name, code):
    topics = [DescribeProducersTopic(name=name, partition_indexes=[0])]
    told = wire.call(1, DescribeProducersRequest(topics=topics)).topics[0].partitions[0]
    assert told.error_code.value == code
    assert told.error_message


@pytest.mark.parametrize("transactional_id", [None, "payments"])
@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 5), (5, -1)])
def test_half_an_identity_is_none(wire, transactional_id, producer_id, producer_epoch):
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    assert wire.call(1, request).error_code is ErrorCode.invalid_request


def test_offsets_of_no_transactional_id_are_refused(producer):
    producer.transactional_id = ""
    told = producer.commit_offsets("pipeline", {T0: 5})
    assert set(told.values()) == {ErrorCode.invalid_request}
