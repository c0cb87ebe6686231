"""librdkafka with five requests under way, of which the first is refused and the second would not be: the ISR
has grown, the broker has heard that it leads, or a bit flipped on the way of the first."""

import pytest
from confluent_kafka import Producer

from sparklog.broker.conversion import intake
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.validate import check_produced
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

TOPIC = "quakes"


VALUES = [b"%d" % number for number in range(5)]


class Producing:
    """A producer with a request for each record, and what became of them."""

    def __init__(self, cluster):
        self.delivered, self.errors = [], []
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "batch.num.messages": 1,
                "linger.ms": 50,
                "error_cb": lambda error: self.errors.append(error) if error.fatal() else None,
            }
        )

    def __call__(self, *values):
        for value in values:
            self._producer.produce(
                TOPIC,
                value,
                on_delivery=lambda error, message: self.delivered.append((error, message.value())),
            )
        assert self._producer.flush(30) == 0


def watch(cluster, leader):
    """What becomes of each batch that comes to the log: epoch, sequence, error."""
    answers = []
    partition = cluster.brokers[leader].body.replicas.get(TopicPartition(TOPIC, 0))
    append = partition.leader_append.append

    def append_and_note(request, token):
        result = append(request, token)
        header = request.batches[0][1]
        answers.append((header.producer_epoch, header.base_sequence, result.error))
        return result

    partition.leader_append.append = append_and_note
    return answers


def all_are_there_once_and_in_order(cluster, produce, expected):
    assert produce.errors == []
    assert produce.delivered == [(None, value) for value in expected]
    assert [record.value for record in cluster.consume(TOPIC, at_least=len(expected))] == expected


def let_the_isr_grow_after_the_first_refusal(cluster, leader, follower):
    """Before the leader looks at the next request. Returns what becomes of each."""
    answers = watch(cluster, leader)
    partition = cluster.brokers[leader].body.replicas.get(TopicPartition(TOPIC, 0))
    append = partition.leader_append.append

    def append_and_wait(request, token):
        result = append(request, token)
        if len(answers) == 1:
            cluster.revive(follower)
            cluster.wait_for_isr(TOPIC, 2)
        return result

    partition.leader_append.append = append_and_wait
    return answers


@pytest.mark.bug("B63")
@pytest.mark.parametrize("is_known", [True, False], ids=["known to the log", "new"])
def test_a_producer_keeps_its_epoch_and_every_record_is_there_once_and_in_order(is_known):
    with InProcessCluster(brokers=2, settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic(TOPIC)
        cluster.wait_for_isr(TOPIC, 2)
        leader = cluster.wait_for_leader(TOPIC)
        produce = Producing(cluster)
        if is_known:
            produce(b"known")
        cluster.kill(3 - leader)
        cluster.wait_for_isr(TOPIC, 1)
        answers = let_the_isr_grow_after_the_first_refusal(cluster, leader, 3 - leader)
        produce(*VALUES)
        assert answers[0][2] is ErrorCode.not_enough_replicas
        all_are_there_once_and_in_order(cluster, produce, [b"known", *VALUES] if is_known else VALUES)
    assert {epoch for epoch, _, _ in answers} == {0}
    assert {error for *_, error in answers} == {ErrorCode.not_enough_replicas, ErrorCode.none}


def hear_of_the_role_after_the_first_request(cluster, leader, monkeypatch):
    """As where metadata comes from a broker that heard of it earlier."""
    body, tp = cluster.brokers[leader].body, TopicPartition(TOPIC, 0)
    replicas, refusals = body.replicas, body.context.refusals
    partition, note = replicas._partitions.pop(tp), refusals.note

    def hear(*refusal):
        note(*refusal)
        replicas._partitions[tp] = partition

    monkeypatch.setattr(refusals, "note", hear)


@pytest.mark.bug("B64")
def test_a_new_producer_that_writes_before_its_leader_has_a_replica_loses_nothing(monkeypatch):
    with InProcessCluster(brokers=1) as cluster:
        cluster.create_topic(TOPIC)
        leader = cluster.wait_for_leader(TOPIC)
        answers = watch(cluster, leader)
        hear_of_the_role_after_the_first_request(cluster, leader, monkeypatch)
        produce = Producing(cluster)
        produce(*VALUES)
        all_are_there_once_and_in_order(cluster, produce, VALUES)
    assert {epoch for epoch, _, _ in answers} == {0}
    assert {error for *_, error in answers} == {ErrorCode.not_enough_replicas, ErrorCode.none}


@pytest.mark.bug("B64")
@pytest.mark.parametrize("is_known", [True, False], ids=["known to the log", "new"])
def test_a_producer_of_whose_first_request_a_bit_flips_keeps_its_epoch_and_loses_nothing(
    is_known, monkeypatch
):
    with InProcessCluster(brokers=1) as cluster:
        cluster.create_topic(TOPIC)
        leader = cluster.wait_for_leader(TOPIC)
        produce = Producing(cluster)
        if is_known:
            produce(b"known")
        answers = watch(cluster, leader)
        flipped = []

        def flip_a_bit_of_the_first(records, **rules):
            if not flipped:
                flipped.append(len(records))
                records = bytearray(records)
                records[-1] ^= 1
            return check_produced(records, **rules)

        monkeypatch.setattr(intake, "check_produced", flip_a_bit_of_the_first)
        produce(*VALUES)
        assert flipped
        all_are_there_once_and_in_order(cluster, produce, [b"known", *VALUES] if is_known else VALUES)
    assert {epoch for epoch, _, _ in answers} == {0}
    assert {error for *_, error in answers} == {ErrorCode.not_enough_replicas, ErrorCode.none}
