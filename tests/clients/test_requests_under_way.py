"""librdkafka with five requests under way, the first of which is refused a moment before the ISR is whole."""

import pytest
from confluent_kafka import Producer

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

TOPIC = "quakes"


def let_the_isr_grow_after_the_first_refusal(cluster, leader, follower):
    """Before the leader looks at the next request. Returns what becomes of each: epoch, sequence, error."""
    answers = []
    partition = cluster.brokers[leader]._replicas.get(TopicPartition(TOPIC, 0))
    append = partition.append_as_leader

    def append_and_wait(records, batches, acks, token):
        result = append(records, batches, acks, token)
        header = batches[0][1]
        answers.append((header.producer_epoch, header.base_sequence, result.error))
        if len(answers) == 1:
            cluster.revive(follower)
            cluster.wait_for_isr(TOPIC, 2)
        return result

    partition.append_as_leader = append_and_wait
    return answers


@pytest.mark.parametrize("is_known", [True, False], ids=["known to the log", "new"])
def test_a_producer_keeps_its_epoch_and_every_record_is_there_once_and_in_order(is_known):
    delivered, errors = [], []
    with InProcessCluster(brokers=2, settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic(TOPIC)
        cluster.wait_for_isr(TOPIC, 2)
        leader = cluster.wait_for_leader(TOPIC)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "batch.num.messages": 1,
                "linger.ms": 50,
                "error_cb": lambda error: errors.append(error) if error.fatal() else None,
            }
        )

        def produce(*values):
            for value in values:
                producer.produce(
                    TOPIC,
                    value,
                    on_delivery=lambda error, message: delivered.append((error, message.value())),
                )
            assert producer.flush(30) == 0

        if is_known:
            produce(b"known")
        cluster.kill(3 - leader)
        cluster.wait_for_isr(TOPIC, 1)
        answers = let_the_isr_grow_after_the_first_refusal(cluster, leader, 3 - leader)
        values = [b"%d" % number for number in range(5)]
        produce(*values)
        expected = [b"known", *values] if is_known else values
        assert answers[0][2] is ErrorCode.not_enough_replicas
        assert errors == []
        assert delivered == [(None, value) for value in expected]
        assert [record.value for record in cluster.consume(TOPIC, at_least=len(expected))] == expected
    assert {epoch for epoch, _, _ in answers} == {0}
    assert {error for *_, error in answers} == {ErrorCode.not_enough_replicas, ErrorCode.none}
