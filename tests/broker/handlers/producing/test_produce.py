"""Produce requests that are refused as a whole, and partitions that no client may write to."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

VALUES = [Record(value=b"a"), Record(value=b"b")]


@pytest.fixture
def leading(broker):
    broker.lead()
    return broker


def produce(broker, *topics, acks=-1):
    """The answers to one batch for each of ``topics``: names, or pairs of a name and a batch."""
    data = []
    for topic in topics:
        name, batch = (
            topic if isinstance(topic, tuple) else (topic, build_records_batch(VALUES, now_ms=1_000))
        )
        data.append(ProduceTopic(name=name, partition_data=[ProducePartition(index=0, records=batch)]))
    response = broker.call(ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=data))
    return [topic.partition_responses[0] for topic in response.responses]


def end_offset(broker):
    return broker.offset_at(-1).offset


def test_a_request_that_names_a_partition_twice_is_refused_and_nothing_is_appended(leading):
    answers = produce(leading, "quakes", "quakes")
    assert [answer.error_code for answer in answers] == [ErrorCode.invalid_request] * 2
    assert "named more than once" in answers[0].error_message
    assert end_offset(leading) == 0


def test_a_transactional_batch_without_a_transactional_id_is_refused(leading):
    """Nobody could end its transaction, and an open one stops compaction and readers of committed records."""
    batch = build_records_batch(
        VALUES, now_ms=1_000, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    answers = produce(leading, "absent", ("quakes", batch))
    assert [answer.error_code for answer in answers] == [ErrorCode.transactional_id_authorization_failed] * 2
    assert end_offset(leading) == 0


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_internal_topics_are_closed_to_clients(leading, topic):
    internal, other = produce(leading, topic, "quakes")
    assert internal.error_code is ErrorCode.invalid_topic_exception
    assert topic in internal.error_message
    assert (other.error_code, end_offset(leading)) == (ErrorCode.none, 2)


def test_a_bug_in_one_partition_closes_the_connection_and_leaves_nothing_waiting(leading):
    body = leading.server.body
    partition = body.replicas.partitions()[0]
    append = partition.leader_append.append

    def append_and_fail(*arguments, **options):
        append(*arguments, **options)
        raise KeyError("a bug")

    partition.leader_append.append = append_and_fail
    leading.lead(leader_epoch=1, isr=[1, 2])
    with pytest.raises(ConnectionError):
        produce(leading, "quakes")
    assert len(body.context.appends) == 0
    assert len(partition._replica.leader.produces) == 0
