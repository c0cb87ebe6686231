"""A cluster whose brokers, controller and clients log in, by each mechanism, in the clear and over TLS."""

import json
import os

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import SecurityRefused
from sparklog.client.security.connecting import connector_of
from sparklog.core.controller.state.entity_changes import notify_of
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, credential_of, credential_text
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from sparklog.model.zookeeper import Create, Delete
from sparklog.network.listener_tls import inter_broker_connector
from sparklog.testing import InProcessCluster
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from sparklog.wire.messages.admin.create_topics import CreateTopicsRequest
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from tests.certificates import Authority
from tests.closed_files import write_closed
from tests.waiting import until

PASSWORDS = {"broker": "of the brokers", "alice": "wonder,land="}


@pytest.fixture
def as_user(monkeypatch):
    """Names users' passwords to the environment, from which brokers have them."""
    for user, password in PASSWORDS.items():
        monkeypatch.setenv(f"PASSWORD_OF_{user.upper()}", password)


def reference(user):
    return f"${{env:PASSWORD_OF_{user.upper()}}}"


def settings_of(mechanism, protocol):
    if mechanism == "PLAIN":
        of_users = " ".join(f'user_{user}="{reference(user)}"' for user in PASSWORDS)
        jaas = f'{PLAIN_MODULE} required username=broker password="{reference("broker")}" {of_users};'
    else:
        jaas = f'{SCRAM_MODULE} required username=broker password="{reference("broker")}";'
    return {
        "listeners": f"{protocol}://:0",
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": mechanism,
        "sasl.plain.without.tls": "true",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config": jaas,
        "connection.failed.authentication.delay.ms": "0",
    }


def zookeeper_of(cluster):
    return MemoryZooKeeper(cluster._memory, operation_timeout_ms=10_000).start(10_000)


def user_node(password):
    salt = os.urandom(20)
    stored = {
        name: credential_text(credential_of(one, one.salted(password.encode(), salt, 4_096), salt, 4_096))
        for name, one in SCRAM_MECHANISMS.items()
    }
    return json.dumps({"version": 1, "config": stored}).encode()


def add_users(cluster):
    with zookeeper_of(cluster) as zookeeper:
        zookeeper.ensure_path("/config/users")
        zookeeper.multi([Create(f"/config/users/{user}", user_node(PASSWORDS[user])) for user in PASSWORDS])


def client_properties(mechanism, password=PASSWORDS["alice"], protocol="SASL_PLAINTEXT"):
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="alice" password="{password}";',
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_brokers_and_clients_log_in(tmp_path, as_user, mechanism):
    cluster = InProcessCluster(
        tmp_path / "cluster", brokers=2, settings=settings_of(mechanism, "SASL_PLAINTEXT")
    )
    add_users(cluster)
    with cluster:
        cluster.create_topic("t", replication_factor=2)
        cluster.produce("t", ["a"])
        cluster.wait_for_isr("t", 2)
        servers = cluster.bootstrap_servers
        with ClusterClient(servers, connector=connector_of(client_properties(mechanism))) as alice:
            alice.reach(10_000)
        refused = connector_of(client_properties(mechanism, password="wrong"))
        with (
            ClusterClient(servers, connector=refused) as guesser,
            pytest.raises(SecurityRefused, match="the login is refused: Authentication failed"),
        ):
            guesser.reach(10_000)


def test_a_login_over_tls(tmp_path, as_user):
    authority = Authority(tmp_path)
    tls = authority.settings(authority.issue("broker"))
    cluster = InProcessCluster(
        tmp_path / "cluster", brokers=1, settings={**settings_of("SCRAM-SHA-512", "SASL_SSL"), **tls}
    )
    add_users(cluster)
    with cluster:
        properties = {
            **client_properties("SCRAM-SHA-512", protocol="SASL_SSL"),
            "ssl.truststore.location": tls["ssl.truststore.location"],
        }
        with ClusterClient(cluster.bootstrap_servers, connector=connector_of(properties)) as alice:
            alice.reach(10_000)


def test_the_controller_asks_brokers_to_log_in(tmp_path, as_user):
    cluster = InProcessCluster(
        tmp_path / "cluster", brokers=1, settings=settings_of("PLAIN", "SASL_PLAINTEXT")
    )
    with cluster:
        controller = cluster.controller.active_controller()
        address = {"host": controller.host, "port": controller.port, "client_id": "x", "timeout_ms": 10_000}
        command = CreateTopicsRequest(topics=[], timeout_ms=1_000)
        with inter_broker_connector(cluster.config).open(**address) as broker:
            assert broker.call(command, version=7, timeout_ms=10_000).topics == []
        with connector_of({}).open(**address) as stranger:
            stranger.call(ApiVersionsRequest(), version=3, timeout_ms=10_000)
            with pytest.raises(ConnectionError, match="if clients log in at this port, set security"):
                stranger.call(command, version=7, timeout_ms=10_000)


def test_a_user_who_is_added_or_deleted_elsewhere_gets_in_or_out_at_once(tmp_path, as_user):
    """As another tool does it: the node, and a notification."""
    cluster = InProcessCluster(
        tmp_path / "cluster", brokers=1, settings=settings_of("SCRAM-SHA-256", "SASL_PLAINTEXT")
    )
    add_users(cluster)
    notification = notify_of("/config/users/alice")
    with cluster, zookeeper_of(cluster) as zookeeper:
        node = cluster.brokers[1].node
        dial = connector_of(client_properties("SCRAM-SHA-256")).open
        alice = dial(node.host, node.port, client_id="alice", timeout_ms=10_000)
        zookeeper.multi([Delete("/config/users/alice"), notification])
        until(alice.has_peer_left)
        zookeeper.multi([Create("/config/users/alice", user_node(PASSWORDS["alice"])), notification])
        until(lambda: _gets_in(dial, node))
        assert zookeeper.children("/config/changes") == [
            "config_change_0000000000",
            "config_change_0000000001",
        ]


def _gets_in(dial, node):
    try:
        dial(node.host, node.port, client_id="alice", timeout_ms=10_000).close()
    except ConnectionError:
        return False
    return True


def test_a_user_of_plain_who_is_removed_from_the_file_is_disconnected_and_no_other(tmp_path):
    secrets = tmp_path / "secrets.properties"
    write_closed(secrets, "broker=b\nalice=a\nbob=c\n")
    settings = settings_of("PLAIN", "SASL_PLAINTEXT")
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    named = {user: f"${{file:{secrets}:{user}}}" for user in ("broker", "alice", "bob")}
    of_users = " ".join(f'user_{user}="{reference}"' for user, reference in named.items())
    settings[name] = f'{PLAIN_MODULE} required username=broker password="{named["broker"]}" {of_users};'
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        node = cluster.brokers[1].node
        where = {"host": node.host, "port": node.port, "timeout_ms": 10_000}
        alice = connector_of(client_properties("PLAIN", password="a")).open(client_id="alice", **where)
        bobs = client_properties("PLAIN", password="c")
        bobs["sasl.jaas.config"] = bobs["sasl.jaas.config"].replace('"alice"', '"bob"')
        bob = connector_of(bobs).open(client_id="bob", **where)
        secrets.write_text("broker=b\nbob=c\n")
        until(alice.has_peer_left)
        with pytest.raises(ConnectionError, match="Invalid username or password"):
            connector_of(client_properties("PLAIN", password="a")).open(client_id="alice", **where)
        assert not bob.has_peer_left()
        cluster.create_topic("t")
        bob.close()
