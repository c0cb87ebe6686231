"""A cluster that speaks TLS: among its brokers, with its controller, with its clients, under load."""

import re
import socket
import threading
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from sparklog.model.errors import ConfigError, ErrorCode
from sparklog.network.dialing.connection import Connection
from sparklog.network.listener_tls import connector_to, inter_broker_client
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from tests.certificates import Authority
from tests.waiting import until

ALL_SSL = {"listeners": "SSL://:0", "security.inter.broker.protocol": "SSL"}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def settings(authority):
    """Of brokers that speak nothing but TLS, and know each other by their certificates."""
    return {**ALL_SSL, **authority.settings(authority.issue("broker"), client_auth="required")}


def now():
    return datetime.now(UTC)


def certificate_shown(config, port):
    """What a broker shows to another broker that connects now."""
    context = inter_broker_client(config).context()
    with (
        socket.create_connection(("127.0.0.1", port)) as sock,
        context.wrap_socket(sock, server_hostname="127.0.0.1") as shown,
    ):
        return shown.getpeercert(binary_form=True)


def test_brokers_replicate_and_fail_over_by_tls_alone(tmp_path, settings):
    with InProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "2"})
        cluster.produce("t", ["a", "b"])
        leader = cluster.wait_for_leader("t")
        cluster.kill(leader)
        cluster.wait_for_leader("t", other_than=leader)
        cluster.produce("t", ["c"])
        assert [record.value for record in cluster.consume("t", at_least=3)] == [b"a", b"b", b"c"]


def test_the_controller_speaks_the_protocol_of_the_brokers_listener(tmp_path, settings):
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        controller = cluster.controller.active_controller()
        address = {"host": controller.host, "port": controller.port, "client_id": "stranger"}
        with (
            Connection.open(**address, timeout_ms=10_000) as in_the_clear,
            pytest.raises(ConnectionError, match=r"if this is a port with TLS, set security.protocol=SSL"),
        ):
            in_the_clear.call(ApiVersionsRequest(), timeout_ms=10_000)
        as_a_broker = connector_to(cluster.config, "SSL").open(**address, timeout_ms=10_000)
        with as_a_broker:
            answer = as_a_broker.call(ApiVersionsRequest(), timeout_ms=10_000)
        assert answer.error_code is ErrorCode.none


def test_clients_may_have_tls_while_brokers_are_among_themselves_in_the_clear(tmp_path, authority):
    settings = {
        "listeners": "CLIENTS://:0,BROKERS://:0",
        "listener.security.protocol.map": "CLIENTS:SSL,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "listener.name.clients.ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.location": str(authority.file),
    }
    with InProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", ["a"])
        assert [record.value for record in cluster.consume("t", at_least=1)] == [b"a"]


def test_certificates_are_replaced_under_load_and_no_connection_is_lost(
    tmp_path, authority, settings, caplog
):
    """Connections that are open go on, and new ones see the new certificate."""
    with InProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "2"})
        nodes = [broker.node for broker in cluster.brokers.values()]
        dial = connector_to(cluster.config, "SSL").open
        held = [dial(node.host, node.port, client_id="held", timeout_ms=10_000) for node in nodes]
        sent, is_over = [], threading.Event()

        def load():
            while not is_over.is_set():
                cluster.produce("t", [str(len(sent))])
                sent.append(len(sent))

        with caplog.at_level("WARNING"):
            loading = threading.Thread(target=load)
            loading.start()
            try:
                for _ in range(3):
                    rotate(cluster, authority, sent)
            finally:
                is_over.set()
                loading.join()
            for connection in held:
                assert len(connection.call(MetadataRequest(topics=[]), timeout_ms=10_000).brokers) == 3
                connection.close()
            assert not caplog.records
        values = [int(record.value) for record in cluster.consume("t", at_least=len(sent))]
        assert values == sent


def rotate(cluster, authority, sent):
    """Replace the certificate, and wait until each broker shows it, and the load has gone on."""
    ports = [broker.node.port for broker in cluster.brokers.values()]

    def shown():
        return {certificate_shown(cluster.config, port) for port in ports}

    before, count = shown(), len(sent)
    authority.issue("broker")
    until(lambda: not before & shown(), "brokers that show the new certificate")
    until(lambda: len(sent) > count, lambda: f"more than {count} records")


@pytest.mark.parametrize(
    ("hosts", "terms", "why"),
    [
        ((), {"not_after": now() - timedelta(days=1)}, "has expired on .* renew it"),
        (
            (),
            {"not_before": now() + timedelta(days=1), "not_after": now() + timedelta(days=9)},
            "is not valid before .* wait, or set this machine's clock",
        ),
        (
            ("kafka.example.org",),
            {},
            "is for kafka.example.org, and not for 127.0.0.1, which the broker advertises",
        ),
    ],
)
def test_a_broker_does_not_start_with_a_certificate_that_its_clients_would_refuse(
    tmp_path, authority, hosts, terms, why
):
    settings = {**ALL_SSL, **authority.settings(authority.issue("broker", *hosts, **terms))}
    cluster = InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings)
    with pytest.raises(ConfigError, match=why):
        cluster.start()


def test_a_certificate_for_no_host_serves_where_brokers_do_not_compare_names(tmp_path, authority):
    key_store = authority.issue("broker", "kafka.example.org")
    settings = {
        **ALL_SSL,
        **authority.settings(key_store),
        "ssl.endpoint.identification.algorithm": "",
    }
    with InProcessCluster(tmp_path / "cluster", brokers=2, settings=settings) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "2"})
        cluster.produce("t", ["a"])


def test_metrics_and_the_log_say_when_a_certificate_expires(tmp_path, authority, caplog):
    end = (now() + timedelta(days=20)).replace(microsecond=0)
    settings = {
        **ALL_SSL,
        "metrics.port": "0",
        **authority.settings(authority.issue("broker", not_after=end)),
    }
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        for server, listener in ((cluster.brokers[1], "SSL"), (cluster.controller, "CONTROLLER")):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics") as page:
                text = page.read().decode()
            metric = rf'certificate_expiry_milliseconds{{listener="{listener}"}} (\S+)$'
            assert float(re.search(metric, text, re.MULTILINE)[1]) == end.timestamp() * 1_000
            assert (
                f"listener {listener}: the certificate expires on {end:%Y-%m-%d %H:%M:%S} UTC" in caplog.text
            )
