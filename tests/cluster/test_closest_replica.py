"""Consumers read from the replica in their rack (KIP-392), and from the leader where that is of no use."""

import time

import confluent_kafka
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.reader import read_range
from sparklog.core.replication.read_replica import RACK_AWARE_SELECTOR
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

TP = TopicPartition("t", 0)
RACKS = {1: "a", 2: "b", 3: "c"}
VALUES = [b"%03d" % number for number in range(200)]
WAIT_S = 30


class Watched:
    """A cluster whose replicas count the bytes that consumers get of them."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.served = dict.fromkeys(RACKS, 0)
        cluster.create_topic("t")
        cluster.wait_for_isr("t", 3)
        self.leader = cluster.wait_for_leader("t")
        self.other = next(broker for broker in RACKS if broker != self.leader)
        for broker in RACKS:
            self.watch(broker)

    def watch(self, broker):
        partition = self.cluster.brokers[broker].body.replicas.get(TP)
        read = partition.reads.read

        def counting(request, **how):
            result = read(request, **how)
            if request.follower is None:
                self.served[broker] += result.size_bytes
            return result

        partition.reads.read = counting

    def who_served(self):
        return {broker for broker, size in self.served.items() if size}

    def produce(self):
        for start in range(0, len(VALUES), 20):
            self.cluster.produce("t", VALUES[start : start + 20])

    def read(self, rack):
        with ClusterClient(self.cluster.bootstrap_servers, client_rack=rack) as client:
            batches = read_range(client, TP, 0, len(VALUES), timeout_ms=20_000, max_bytes=500)
            return [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.fixture
def watched(tmp_path):
    settings = {"replica.selector.class": RACK_AWARE_SELECTOR, "replica.fetch.wait.max.ms": "100"}
    with InProcessCluster(tmp_path, racks=RACKS, settings=settings) as cluster:
        yield Watched(cluster)


@pytest.mark.scenario("S17", "A consumer names its rack and a replica there serves it (KIP-392).")
def test_a_reader_reads_from_the_replica_in_its_rack(watched):
    watched.produce()
    assert watched.read(RACKS[watched.other]) == VALUES
    assert watched.who_served() == {watched.other}


@pytest.mark.parametrize("rack", ["", "nowhere"])
def test_a_reader_in_no_rack_of_the_cluster_reads_from_the_leader(watched, rack):
    watched.produce()
    assert watched.read(rack) == VALUES
    assert watched.who_served() == {watched.leader}


def test_a_reader_in_the_leader_s_rack_reads_from_the_leader(watched):
    watched.produce()
    assert watched.read(RACKS[watched.leader]) == VALUES
    assert watched.who_served() == {watched.leader}


def test_a_reader_goes_back_to_the_leader_when_the_replica_near_it_dies(watched):
    watched.produce()
    with ClusterClient(watched.cluster.bootstrap_servers, client_rack=RACKS[watched.other]) as client:
        batches = read_range(client, TP, 0, len(VALUES), timeout_ms=20_000, max_bytes=500)
        values = next(batches).column("value").to_pylist()
        watched.cluster.kill(watched.other)
        for batch in batches:
            values += batch.column("value").to_pylist()
    assert values == VALUES
    assert watched.leader in watched.who_served()


def test_a_topic_s_racks_are_in_its_metadata(watched):
    metadata = watched.cluster.client.metadata(["t"], max_age_ms=0)
    assert {int(broker.id): broker.rack for broker in metadata.brokers.values()} == RACKS


def consume_with_librdkafka(watched, rack):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": watched.cluster.bootstrap_servers,
            "group.id": "nobody",
            "client.rack": rack,
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    values, deadline = [], time.monotonic() + WAIT_S
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        while len(values) < len(VALUES) and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append(message.value())
    finally:
        consumer.close()
    return values


@pytest.mark.scenario("S17")
def test_librdkafka_reads_from_the_replica_in_its_rack(watched):
    watched.produce()
    assert consume_with_librdkafka(watched, RACKS[watched.other]) == VALUES
    assert watched.who_served() == {watched.other}


def test_without_the_selector_everybody_reads_from_the_leader(tmp_path):
    with InProcessCluster(tmp_path, racks=RACKS) as cluster:
        watched = Watched(cluster)
        watched.produce()
        assert watched.read(RACKS[watched.other]) == VALUES
        assert watched.who_served() == {watched.leader}
