"""What a start asks its brokers, and at which listener."""

import socket
from types import SimpleNamespace

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, INTERNAL_TOPICS
from sparklog.model.settings.config import BrokerConfig
from sparklog.testing import InProcessCluster
from sparklog_runtime.start.asked_brokers import AskedBrokers
from tests.cluster.test_atomic_writes import Writing

TWO_LISTENERS = {
    "listeners": "PLAINTEXT://:0,INTERNAL://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}


@pytest.fixture
def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return port


def at(broker, **listeners):
    """A broker's process, as the supervisor knows it."""
    return SimpleNamespace(listeners={**broker.addresses, **listeners})


def test_brokers_that_cannot_be_asked_know_nothing(closed_port):
    silent = SimpleNamespace(listeners={"PLAINTEXT": f"127.0.0.1:{closed_port}"})
    assert not AskedBrokers(BrokerConfig.parse({})).know([silent], [1])


def test_a_broker_that_is_not_registered_yet_knows_nothing():
    assert not AskedBrokers(BrokerConfig.parse({})).know([SimpleNamespace(listeners={})], [1])


def test_brokers_are_asked_at_their_own_listener(tmp_path, closed_port):
    with InProcessCluster(tmp_path, brokers=1, settings=TWO_LISTENERS) as cluster:
        asked = AskedBrokers(cluster.config)
        broker = cluster.brokers[1]
        assert asked.know([at(broker, PLAINTEXT=f"127.0.0.1:{closed_port}")], [1])
        assert not asked.know([at(broker, INTERNAL=f"127.0.0.1:{closed_port}")], [1])
        assert not asked.know([at(broker)], [1, 2])


@pytest.mark.integration
def test_the_first_atomic_write_after_a_start_needs_no_broker_that_is_down_by_then(tmp_path):
    with InProcessCluster(tmp_path) as cluster:
        cluster.create_topic("t", partitions=3)
        AskedBrokers(cluster.config).have_internal_topics(at(cluster.brokers[1]))
        for topic in INTERNAL_TOPICS:
            cluster.wait_for_isr(topic, 3)
        cluster.kill(2)
        with ClusterClient(cluster.bootstrap_servers) as client:
            cluster.wait_for_isr("t", 2)
            writing = Writing(client)
            assert writing.commit(writing.identity(), writing.finished(writing.identity(), b"paid"))
            assert writing.visible() == [b"paid"]


@pytest.mark.integration
def test_internal_topics_for_which_brokers_are_missing_are_left_to_later_starts(tmp_path, caplog):
    """A broker that tries would warn."""
    with InProcessCluster(tmp_path, brokers=1) as cluster, caplog.at_level("WARNING"):
        needs_three = {
            "transaction.state.log.replication.factor": "3",
            "offsets.topic.replication.factor": "1",
        }
        AskedBrokers(BrokerConfig.parse(needs_three)).have_internal_topics(at(cluster.brokers[1]))
        cluster.wait_for_isr(GROUP_OFFSETS_TOPIC, 1)
        assert cluster.admin.list_topics(include_internal=True) == [GROUP_OFFSETS_TOPIC]
        assert not caplog.records


def test_internal_topics_are_not_waited_for(closed_port):
    silent = SimpleNamespace(listeners={"PLAINTEXT": f"127.0.0.1:{closed_port}"})
    AskedBrokers(BrokerConfig.parse({})).have_internal_topics(silent)
