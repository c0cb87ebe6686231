"""Brokers with two listeners: a client gets the addresses of the one it asked, and brokers have their own."""

import socket
import subprocess

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from sparklog.cli.command import DONE
from sparklog.cli.main import main
from sparklog.client.cluster import ClusterClient
from sparklog.client.records_producer import Producer
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.integration

SETTINGS = {
    "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
    "advertised.listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://localhost:0",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}
LISTENERS = ("INTERNAL", "EXTERNAL")
TIMEOUT_MS = 10_000


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=3, settings=SETTINGS) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "3"})
        cluster.wait_for_isr("t", 3)
        yield cluster


def addresses(cluster, listener):
    endpoints = [server.broker.endpoints[listener] for server in cluster.brokers.values()]
    return {f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints}


def ask(cluster, listener, request, version=None):
    endpoint = cluster.brokers[1].broker.endpoints[listener]
    with Connection.open(endpoint.host, endpoint.port, client_id="test", timeout_ms=TIMEOUT_MS) as connection:
        return connection.call(request, version=version, timeout_ms=TIMEOUT_MS)


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_client_is_given_the_addresses_of_its_listener(cluster, listener):
    bootstrap = next(iter(addresses(cluster, listener)))
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10)
    known = {f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()}
    assert known == addresses(cluster, listener)
    assert not known & addresses(cluster, "EXTERNAL" if listener == "INTERNAL" else "INTERNAL")


@pytest.mark.parametrize("listener", LISTENERS)
def test_kcat_writes_and_reads_through_each_listener(cluster, listener):
    bootstrap, topic = ",".join(addresses(cluster, listener)), f"kcat-{listener.lower()}"
    cluster.create_topic(topic)
    write = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-X", "acks=all"]
    subprocess.run(write, input=b"one\ntwo\n", check=True, timeout=60)
    read = ["kcat", "-C", "-q", "-e", "-o", "beginning", "-b", bootstrap, "-t", topic]
    assert subprocess.run(read, capture_output=True, check=True, timeout=60).stdout == b"one\ntwo\n"


def test_a_producer_of_librdkafka_reaches_every_leader_through_its_listener(cluster):
    cluster.create_topic("spread", partitions=6)
    delivered = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": next(iter(addresses(cluster, "EXTERNAL"))), "acks": "all"}
    )
    for partition in range(6):
        producer.produce(
            "spread", b"x", partition=partition, on_delivery=lambda error, _: delivered.append(error)
        )
    assert producer.flush(30) == 0
    assert delivered == [None] * 6


@pytest.mark.parametrize("listener", LISTENERS)
def test_admin_clients_see_the_cluster_at_their_listener(cluster, listener):
    response = ask(cluster, listener, DescribeClusterRequest())
    assert {f"{one.host}:{one.port}" for one in response.brokers} == addresses(cluster, listener)


def test_brokers_and_the_controller_call_each_other_through_the_brokers_listener_alone(monkeypatch):
    called, opened = set(), Connection.open

    def recording(host, port, **how):
        called.add((how["client_id"].partition("-")[0], port))
        return opened(host, port, **how)

    monkeypatch.setattr(Connection, "open", recording)
    with InProcessCluster(brokers=2, settings=SETTINGS) as cluster:
        cluster.create_topic("t", partitions=4, configs={"min.insync.replicas": "2"})
        cluster.produce("t", ["acknowledged by both replicas"])
        inside = {server.ports["INTERNAL"] for server in cluster.brokers.values()}
        assert {port for caller, port in called if caller == "controller"} == inside
        assert {port for caller, port in called if caller == "broker"} - {cluster.controller.port} == inside


def test_a_leader_without_the_listener_of_a_client_is_said_to_lack_it():
    """A broker of other settings, as in the middle of a rolling change."""
    inside = {**SETTINGS, "listeners": "INTERNAL://127.0.0.1:0", "advertised.listeners": ""}
    with InProcessCluster(brokers=2, settings=SETTINGS) as changing:
        changing.create_topic("led-by-2")
        changing.wait_for_isr("led-by-2", 2)
        before = changing.config
        changing.shut_down(2)
        changing.config = BrokerConfig.parse(inside)
        changing.revive(2)
        changing.wait_for_isr("led-by-2", 2)
        changing.shut_down(1)
        changing.config = before
        changing.revive(1)
        changing.wait_for_isr("led-by-2", 2)
        assert _known(changing, "INTERNAL") == ([1, 2], ErrorCode.none, 2)
        assert _known(changing, "EXTERNAL") == ([1], ErrorCode.listener_not_found, -1)
        assert _known(changing, "EXTERNAL", version=5) == ([1], ErrorCode.leader_not_available, -1)


def _known(cluster, listener, version=None):
    """The brokers, and the error and leader of the topic's partition, as broker 1 says at ``listener``."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="led-by-2")], allow_auto_topic_creation=False)
    response = ask(cluster, listener, request, version)
    (partition,) = response.topics[0].partitions
    return sorted(one.node_id for one in response.brokers), partition.error_code, partition.leader_id


def test_an_ipv6_address_stands_in_brackets_and_clients_take_it(tmp_path, capsys):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"IPv6 is switched off: {error}")
    with InProcessCluster(tmp_path, brokers=1, settings={"listeners": "PLAINTEXT://[::1]:0"}) as cluster:
        (server,) = cluster.brokers.values()
        assert cluster.bootstrap_servers == f"[::1]:{server.node.port}"
        cluster.create_topic("t")
        with ClusterClient(cluster.bootstrap_servers) as client, Producer(client) as producer:
            producer.send("t", b"one")
        assert (
            AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=10).topics["t"]
        )
        assert main(["status", "--bootstrap-server", cluster.bootstrap_servers]) == DONE
    shown = capsys.readouterr().out
    assert f" at [::1]:{server.node.port}\n" in shown
    assert f"  [::1]:{server.node.port}  " in shown
