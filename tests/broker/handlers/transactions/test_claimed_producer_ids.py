"""A producer id that a request without a transactional id names is never given again."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.broker.handlers.transactions.conftest import TIMEOUT_MS

NONE = ErrorCode.none


def identity_of(wire, producer_id=-1, producer_epoch=-1, version=None):
    request = InitProducerIdRequest(producer_id=producer_id, producer_epoch=producer_epoch)
    answer = wire.call(1, request, version)
    assert answer.error_code is NONE
    return answer.producer_id, answer.producer_epoch


def send(wire, topic_partition, identity, sequence, *values):
    batch = build_records_batch(
        [Record(value=value) for value in values],
        now_ms=1_000,
        producer_id=identity[0],
        producer_epoch=identity[1],
        base_sequence=sequence,
    )
    data = [ProducePartition(index=topic_partition.partition, records=batch)]
    topics = [ProduceTopic(name=topic_partition.topic, partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=topics)
    leader = wire.cluster.wait_for_leader(*topic_partition)
    return wire.call(leader, request).responses[0].partition_responses[0]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("named", ["a living producer's", "a transactional producer's", "nobody's"])
def test_the_answer_is_a_fresh_id_in_epoch_zero(wire, producer, version, named):
    owner = {
        "a living producer's": identity_of(wire),
        "a transactional producer's": (producer.producer_id, producer.producer_epoch),
        "nobody's": (9_999_999, 0),
    }[named]
    before = identity_of(wire)
    given = identity_of(wire, *owner, version=version)
    assert given[1] == 0
    assert given[0] not in {owner[0], before[0]}


@pytest.mark.bug("B83", "records", "A producer id that a request names is given to whoever names it.")
def test_four_producers_that_name_the_same_identity_lose_no_record(cluster, wire):
    """As @platformatic/kafka does, which names 0/0 for each of its idempotent producers."""
    topic_partition = TopicPartition("claimed", 0)
    cluster.create_topic("claimed")
    identities = [identity_of(wire, 0, 0) for _ in range(4)]
    values = {f"{number}/{nth}".encode() for number in range(4) for nth in range(5)}
    for nth in range(5):
        for number, identity in enumerate(identities):
            answer = send(wire, topic_partition, identity, nth, f"{number}/{nth}".encode())
            assert answer.error_code is NONE
    assert {record.value for record in cluster.consume("claimed", at_least=20)} == values


@pytest.mark.bug("B83")
def test_the_owner_of_a_named_id_writes_on(cluster, wire):
    topic_partition = TopicPartition("owned", 0)
    cluster.create_topic("owned")
    owner = identity_of(wire)
    assert send(wire, topic_partition, owner, 0, b"a").error_code is NONE
    other = identity_of(wire, *owner)
    assert send(wire, topic_partition, other, 0, b"b").error_code is NONE
    assert send(wire, topic_partition, owner, 1, b"c").error_code is NONE
    assert [record.value for record in cluster.consume("owned", at_least=3)] == [b"a", b"b", b"c"]
