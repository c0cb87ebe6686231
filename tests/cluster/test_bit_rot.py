"""A bit flips in a batch that was written well: on a leader with company, and on one that is alone."""

import os

import pytest

from sparklog.client.errors import ProduceFailed
from sparklog.client.producer import BatchProducer
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = TopicPartition("t", 0)
VALUES = [b"%02d" % number for number in range(10)]
WAIT_S = 30


def log_path(cluster, broker):
    return cluster.root / f"broker-{broker}" / "0" / "t-0" / f"{0:020d}.log"


def rot(cluster, broker, batch):
    """Flip a bit in the last byte of one of the batches, which are all of one size."""
    path = log_path(cluster, broker)
    size = path.stat().st_size // len(VALUES)
    with open(path, "r+b") as file:
        file.seek(size * (batch + 1) - 1)
        last = file.read(1)
        file.seek(size * (batch + 1) - 1)
        file.write(bytes([last[0] ^ 1]))


def produce_all(cluster):
    for value in VALUES:
        cluster.produce("t", [value])


def test_a_leader_with_a_rotten_batch_hands_over_and_gets_it_back(tmp_path):
    with InProcessCluster(tmp_path) as cluster:
        cluster.create_topic("t")
        cluster.wait_for_isr("t", 3)
        leader = cluster.wait_for_leader("t")
        newcomer = next(broker for broker in cluster.brokers if broker != leader)
        cluster.kill(newcomer)
        produce_all(cluster)
        rot(cluster, leader, 4)
        cluster.revive(newcomer)
        successor = cluster.wait_for_leader("t", other_than=leader)
        assert successor != newcomer, "it had not even caught up"
        cluster.wait_for_isr("t", 3)
        assert [record.value for record in cluster.consume("t", at_least=10)] == VALUES
        until(
            lambda: len({log_path(cluster, one).read_bytes() for one in cluster.brokers}) == 1,
            "copies that do not differ",
        )


def test_a_corrupt_log_that_is_the_only_one_serves_what_is_before_the_damage(tmp_path):
    with InProcessCluster(tmp_path, brokers=1) as cluster:
        cluster.create_topic("t")
        produce_all(cluster)
        cluster.kill(1)
        rot(cluster, 1, 6)
        cluster.revive(1)
        cluster.wait_for_leader("t")
        assert [record.value for record in cluster.consume("t", at_least=6)] == VALUES[:6]
        with BatchProducer(cluster.client, timeout_ms=500) as producer:
            producer.send(TP, build_records_batch([Record(value=b"refused")], now_ms=1_000))
            with pytest.raises(ProduceFailed):
                producer.flush()
        assert os.path.getsize(log_path(cluster, 1)) % len(VALUES) == 0, "nothing was cut"
