"""A secured cluster in this process: its users, their rights, and certificates renewed under load."""

import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from sparklog.authority.folder import renew_folder
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.testing import ClusterUser, InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with InProcessCluster(tmp_path_factory.mktemp("secure"), brokers=2, secure=True) as running:
        yield running


def values(user: ClusterUser, topic: str, at_least: int = 0) -> list[bytes | None]:
    return [record.value for record in user.consume(topic, at_least=at_least)]


def test_two_teams_have_topics_that_the_other_cannot_see(cluster) -> None:
    alice, bob = cluster.as_user("alice"), cluster.as_user("bob")
    cluster.allow("alice", "all", topic="sales-", prefixed=True)
    cluster.allow("bob", "all", topic="stock-", prefixed=True)
    alice.create_topic("sales-orders")
    bob.create_topic("stock-moves")
    alice.produce("sales-orders", ["a", "b"])
    assert values(alice, "sales-orders", 2) == [b"a", b"b"]
    assert list(alice.admin.list_topics()) == ["sales-orders"]
    assert list(bob.admin.list_topics()) == ["stock-moves"]
    with pytest.raises(SparklogError, match="TOPIC_AUTHORIZATION_FAILED"):
        bob.produce("sales-orders", ["c"])
    assert values(alice, "sales-orders", 2) == [b"a", b"b"]


def test_a_rule_binds_when_the_call_returns(cluster) -> None:
    cluster.create_topic("granted")
    carol = cluster.as_user("carol")
    for operation in ("write", "read"):
        cluster.allow("carol", operation, topic="granted")
        if operation == "write":
            carol.produce("granted", ["x"])
    assert values(carol, "granted", 1) == [b"x"]


def test_a_user_stays_the_same_and_other_clients_take_its_properties(cluster) -> None:
    dave = cluster.as_user('da"ve')
    assert cluster.as_user('da"ve') is dave
    cluster.create_topic("of-dave")
    cluster.allow('da"ve', "write", topic="of-dave")
    password = dave.properties["sasl.jaas.config"].rpartition("password=")[2].strip('";')
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers, "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": dave.name, "sasl.password": password,
            "ssl.ca.location": dave.properties["ssl.truststore.location"],
        }
    )  # fmt: skip
    producer.produce("of-dave", b"from librdkafka")
    assert producer.flush(30) == 0
    assert [one.value for one in cluster.consume("of-dave", at_least=1)] == [b"from librdkafka"]


def test_options_for_spark_are_the_properties_by_its_connectors_names(cluster) -> None:
    alice = cluster.as_user("alice")
    assert alice.options == {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        **{f"kafka.{name}": text for name, text in alice.properties.items()},
    }


def test_nobody_is_let_in_without_a_login(cluster) -> None:
    port = int(cluster.bootstrap_servers.split(",")[0].rpartition(":")[2])
    with ClusterClient(f"127.0.0.1:{port}") as stranger, pytest.raises(ClusterUnavailable):
        stranger.reach(1_000)


def test_what_makes_no_sense_is_refused_with_the_remedy(cluster) -> None:
    with pytest.raises(ConfigError, match="give topic=, group= or transactional_id="):
        cluster.allow("alice", "read")
    with pytest.raises(ConfigError, match="'look' is no operation; there are all, read"):
        cluster.allow("alice", "look", topic="t")
    with InProcessCluster(brokers=1) as insecure:
        with pytest.raises(SparklogError, match="give it secure=True"):
            insecure.as_user("alice")
        with pytest.raises(SparklogError, match="give it secure=True"):
            insecure.allow("alice", "read", topic="t")


def test_a_secured_cluster_stops_and_starts_over_its_data(tmp_path) -> None:
    cluster = InProcessCluster(tmp_path, brokers=1, secure=True)
    for _ in range(2):
        with cluster:
            cluster.allow("alice", "all", topic="kept")
            alice = cluster.as_user("alice")
            if not alice.admin.list_topics():
                alice.create_topic("kept")
                alice.produce("kept", ["a"])
    with cluster:
        assert values(cluster.as_user("alice"), "kept", 1) == [b"a"]


def shown_by(port: int) -> str:
    """The certificate that a broker shows now."""
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_certificates_are_renewed_under_load_and_no_record_is_lost(cluster) -> None:
    cluster.create_topic("load", partitions=2, configs={"min.insync.replicas": "2"})
    alice = cluster.as_user("alice")
    cluster.allow("alice", "read", "write", topic="load")
    is_renewed, sent, failed = threading.Event(), [], []

    def write() -> None:
        try:
            while not is_renewed.is_set():
                alice.produce("load", [str(len(sent))])
                sent.append(len(sent))
        except SparklogError as error:
            failed.append(error)

    writing = threading.Thread(target=write)
    writing.start()
    ports = [port for broker in cluster.brokers.values() for port in broker.ports.values()]
    before = {port: shown_by(port) for port in ports}
    until(lambda: len(sent) > 10, "records before the renewal")
    hosts = {"broker.pem": ("127.0.0.1",), "admin.pem": ()}
    renew_folder(cluster.root / "security", hosts, datetime.now(UTC))
    until(lambda: all(shown_by(port) != before[port] for port in ports), "new certificates", 10)
    at_renewal = len(sent)
    until(lambda: len(sent) > at_renewal + 10 or failed != [], "records after the renewal")
    is_renewed.set()
    writing.join()
    assert failed == []
    found = sorted(int(record.value or b"-1") for record in alice.consume("load", at_least=len(sent)))
    assert found == sent
    cluster.wait_for_isr("load", 2)
