"""A broker whose disk has less free than the floor: producers wait, and all else goes on."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from sparklog.cli.cluster.status.low_disks import low_disks
from sparklog.client.changes import ClusterChanges
from sparklog.testing import InProcessCluster
from tests.cluster.test_metrics import figures
from tests.waiting import until

pytestmark = pytest.mark.integration

FLOOR = "log.dirs.free.min.bytes"
MORE_THAN_ANY_DISK = 1 << 60


@pytest.fixture
def cluster(tmp_path):
    settings = {"metrics.port": "0", "min.insync.replicas": "2"}
    with InProcessCluster(tmp_path, settings=settings) as running:
        running.create_topic("t")
        yield running


def set_floor(cluster, broker, size_bytes) -> None:
    ClusterChanges(cluster.client).alter_broker_configs(broker, {FLOOR: str(size_bytes)})
    server = cluster.brokers[broker]
    until(lambda: server.body.parts.settings.now.get_int(FLOOR) == size_bytes, "the broker has its floor")


def is_refusing(server) -> list[float]:
    name = "log_directory_refuses_produces"
    return [value for line, value in figures(server).items() if line.startswith(name)]


def test_an_idempotent_producer_waits_for_room_and_loses_nothing(cluster) -> None:
    leader = cluster.wait_for_leader("t")
    set_floor(cluster, leader, MORE_THAN_ANY_DISK)
    reports = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    for number in range(100):
        producer.produce("t", str(number), partition=0, on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(1) == 100
    assert (reports, is_refusing(cluster.brokers[leader])) == ([], [1.0])
    set_floor(cluster, leader, 0)
    assert producer.flush(30) == 0
    assert reports == [None] * 100
    assert [int(record.value) for record in cluster.consume("t", at_least=100)] == list(range(100))
    assert is_refusing(cluster.brokers[leader]) == [0.0]


def test_status_finds_the_directory_below_its_floor_by_asking_its_broker(cluster) -> None:
    brokers = sorted(cluster.brokers)
    assert low_disks(cluster.client, brokers) == []
    set_floor(cluster, 2, MORE_THAN_ANY_DISK)
    (low,) = low_disks(cluster.client, brokers)
    assert (low.broker_id, low.floor_bytes) == (2, MORE_THAN_ANY_DISK)
    assert low.log_dir == cluster.brokers[2].body.parts.log_dirs.contents().popitem()[0].path
    assert 0 < low.free_bytes < MORE_THAN_ANY_DISK


def test_followers_and_coordinators_write_below_the_floor(cluster) -> None:
    cluster.produce("t", ["before"])
    leader = cluster.wait_for_leader("t")
    for broker in cluster.brokers:
        if broker != leader:
            set_floor(cluster, broker, MORE_THAN_ANY_DISK)
    cluster.produce("t", ["replicated"])
    set_floor(cluster, leader, MORE_THAN_ANY_DISK)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
    try:
        consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
        assert consumer.committed([TopicPartition("t", 0)], 10)[0].offset == 2
    finally:
        consumer.close()
    assert [record.value for record in cluster.consume("t")] == [b"before", b"replicated"]
