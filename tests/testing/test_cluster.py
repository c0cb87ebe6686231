"""A cluster in this process as a user of ``sparklog.testing`` has it: ZooKeeper in memory."""

import socket
import threading
import time

import pytest

from sparklog.model.errors import ConfigError, SparklogError
from sparklog.testing import InProcessCluster, Record

pytestmark = pytest.mark.integration

START_CPU_SECONDS_MAX = 1.0


@pytest.fixture
def own(tmp_path):
    with InProcessCluster(tmp_path) as cluster:
        yield cluster


def values(cluster: InProcessCluster, topic: str, at_least: int) -> list[bytes | None]:
    return [record.value for record in cluster.consume(topic, at_least=at_least)]


def test_a_start_takes_less_than_a_second_of_processor_time() -> None:
    """The best of three: the first loads modules."""
    seconds = []
    for _ in range(3):
        before = time.process_time()
        with InProcessCluster():
            seconds.append(time.process_time() - before)
    assert min(seconds) < START_CPU_SECONDS_MAX


def test_records_come_back_with_keys_offsets_and_partitions(own) -> None:
    own.create_topic("events", partitions=2)
    own.produce("events", ["a", b"b", ("key", "c"), ("key", None)], partition=1)
    own.produce("events", ["d"], partition=0)
    records = own.consume("events")
    assert [(r.partition, r.offset, r.key, r.value) for r in records] == [
        (0, 0, None, b"d"),
        (1, 0, None, b"a"),
        (1, 1, None, b"b"),
        (1, 2, b"key", b"c"),
        (1, 3, b"key", None),
    ]
    assert isinstance(records[0], Record)
    assert abs(records[0].timestamp_ms - time.time() * 1_000) < 60_000


def test_consume_waits_until_there_are_enough(own) -> None:
    own.create_topic("events")
    assert own.consume("events") == []
    late = threading.Timer(0.05, own.produce, ("events", ["a", "b"]))
    late.start()
    assert values(own, "events", 2) == [b"a", b"b"]
    late.join()


def test_other_processes_reach_its_brokers_by_tcp(own) -> None:
    for address in own.bootstrap_servers.split(","):
        host, _, port = address.partition(":")
        socket.create_connection((host, int(port)), timeout=5).close()


def test_a_killed_leader_is_replaced_and_comes_back_in_sync(own) -> None:
    own.create_topic("events", configs={"min.insync.replicas": "2"})
    own.produce("events", ["a"])
    leader = own.wait_for_leader("events")
    own.kill(leader)
    assert own.wait_for_leader("events", other_than=leader) != leader
    own.produce("events", ["b"])
    own.revive(leader)
    own.wait_for_isr("events", 3)
    assert values(own, "events", 2) == [b"a", b"b"]


def test_a_broker_that_is_shut_down_hands_over_what_it_leads(own) -> None:
    own.create_topic("events")
    leader = own.wait_for_leader("events")
    own.shut_down(leader)
    assert own.wait_for_leader("events", other_than=leader) != leader


def test_a_cluster_stops_and_starts_over_its_data(tmp_path) -> None:
    cluster = InProcessCluster(tmp_path)
    with cluster:
        cluster.create_topic("events")
        cluster.produce("events", ["a"])
        servers = cluster.bootstrap_servers
    with cluster:
        assert cluster.bootstrap_servers == servers
        assert values(cluster, "events", 1) == [b"a"]


def test_a_temporary_cluster_leaves_neither_files_nor_threads() -> None:
    before = set(threading.enumerate())
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic("events")
        cluster.produce("events", ["a"])
        root = cluster.root
        assert root.is_dir()
    assert not root.exists()
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]


def test_a_start_that_fails_leaves_no_thread(tmp_path) -> None:
    before = set(threading.enumerate())
    (tmp_path / "broker-2").write_text("in the way")
    with pytest.raises((SparklogError, OSError), match="broker-2"), InProcessCluster(tmp_path):
        pass
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]


def test_a_real_zookeeper_has_an_address_and_one_in_memory_has_none(own, tmp_path) -> None:
    with pytest.raises(SparklogError, match="zookeeper='real'"):
        _ = own.zookeeper
    with InProcessCluster(tmp_path / "real", brokers=1, zookeeper="real") as real:
        host, _, port = real.zookeeper.partition(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        real.create_topic("events")
        real.produce("events", ["a"])
    with InProcessCluster(tmp_path / "real", brokers=1, zookeeper="real") as again:
        assert values(again, "events", 1) == [b"a"]


def test_what_makes_no_sense_is_refused_with_the_remedy(own) -> None:
    with pytest.raises(ConfigError, match="brokers=0: a cluster has at least 1"):
        InProcessCluster(brokers=0)
    with pytest.raises(ConfigError, match="zookeeper='etcd': must be 'memory' or 'real'"):
        InProcessCluster(zookeeper="etcd")
    with pytest.raises(SparklogError, match=r"no broker 7: this cluster has \[1, 2, 3\]"):
        own.kill(7)


def test_a_broker_that_ended_by_itself_is_named_with_its_reason_and_revived(own) -> None:
    own.brokers[2].life.fail("for a test")
    assert own.brokers[2].wait_stopped(10)
    assert own.failures == {2: "for a test"}
    own.revive(2)
    assert own.failures == {}
    own.create_topic("events")
