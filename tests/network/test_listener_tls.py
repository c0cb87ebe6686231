"""Which listeners speak TLS, what dials them, and which certificates keep a broker from starting."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import WallMs
from sparklog.network.dialing.connector import IN_THE_CLEAR
from sparklog.network.listener_tls import (
    advertised_hosts,
    check_certificates,
    connector_to,
    inter_broker_client,
    inter_broker_connector,
    inter_broker_server,
    tls_of_listeners,
)
from sparklog.network.timer import ThreadTimer
from sparklog.network.tls.expiry_watch import ExpiryWatch
from tests.certificates import Authority

TWO_LISTENERS = {
    "listeners": "CLIENTS://:0,BROKERS://:0",
    "listener.security.protocol.map": "CLIENTS:SSL,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}
NOW_MS = WallMs(int(datetime.now(UTC).timestamp() * 1_000))


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def config(authority, listeners=TWO_LISTENERS, **more):
    key_store = authority.root / "broker.pem"
    return BrokerConfig.parse({**listeners, **authority.settings(key_store), **more})


def test_each_listener_speaks_the_protocol_of_its_name(authority):
    authority.issue("broker")
    parsed = config(authority)
    assert list(tls_of_listeners(parsed)) == ["CLIENTS"]
    assert connector_to(parsed, "CLIENTS") is not IN_THE_CLEAR
    assert connector_to(parsed, "BROKERS") is IN_THE_CLEAR


def test_what_a_cluster_says_to_itself_follows_the_brokers_listener(authority):
    authority.issue("broker")
    in_the_clear = config(authority)
    assert inter_broker_server(in_the_clear) is inter_broker_client(in_the_clear) is None
    assert inter_broker_connector(in_the_clear) is IN_THE_CLEAR
    by_tls = config(authority, TWO_LISTENERS | {"inter.broker.listener.name": "CLIENTS"})
    assert inter_broker_client(by_tls).checks_host_names
    assert inter_broker_server(by_tls).principal_of(None) == "User:ANONYMOUS"
    assert inter_broker_connector(by_tls) is not IN_THE_CLEAR


def test_a_broker_is_dialled_where_it_advertises_itself_or_else_at_its_own_host(authority):
    listeners = {
        **TWO_LISTENERS,
        "listeners": "CLIENTS://0.0.0.0:0,BROKERS://:0",
        "advertised.listeners": "CLIENTS://kafka.example.org:0,BROKERS://:0",
    }
    assert advertised_hosts(config(authority, listeners), "10.0.0.1") == {
        "CLIENTS": ("kafka.example.org",),
        "BROKERS": ("10.0.0.1",),
    }


def test_all_problems_are_named_with_their_listeners(authority):
    authority.issue("broker", not_after=datetime.now(UTC) - timedelta(hours=1))
    theirs = authority.issue("other", "kafka.example.org")
    both = {
        **TWO_LISTENERS,
        "listener.security.protocol.map": "CLIENTS:SSL,BROKERS:SSL",
        "listener.name.clients.ssl.keystore.location": str(theirs),
    }
    hosts = {"CLIENTS": ("127.0.0.1",), "BROKERS": ("127.0.0.1",)}
    with pytest.raises(ConfigError) as refused:
        check_certificates(config(authority, both), hosts, NOW_MS)
    clients, brokers = str(refused.value).split("; listener BROKERS: ")
    assert clients.startswith("listener CLIENTS: ")
    assert "is for kafka.example.org, and not for 127.0.0.1" in clients
    assert "has expired on" in brokers


def test_a_certificate_of_which_brokers_would_not_accept_each_other_s_is_refused(authority, tmp_path):
    authority.issue("broker")
    others = Authority(tmp_path / "others")
    listeners = TWO_LISTENERS | {"inter.broker.listener.name": "CLIENTS"}
    strange = config(authority, listeners, **{"ssl.truststore.location": str(others.file)})
    with pytest.raises(ConfigError, match=r"listener CLIENTS: .* brokers would not accept this certificate"):
        check_certificates(strange, {"CLIENTS": ("127.0.0.1",)}, NOW_MS)
    assert check_certificates(config(authority, listeners), {"CLIENTS": ("127.0.0.1",)}, NOW_MS) == []


def test_a_certificate_that_soon_expires_is_worth_a_warning_at_each_look(authority, caplog):
    authority.issue("broker", not_after=datetime.now(UTC) + timedelta(days=29))
    parsed = config(authority)
    (warning,) = check_certificates(parsed, {"CLIENTS": ("127.0.0.1",)}, NOW_MS)
    assert warning.startswith("listener CLIENTS: the certificate expires on ")

    class Days:
        """Passes the time when it is asked."""

        def after(self, delay_ms, action):
            self.delay_ms, self.pass_one = delay_ms, action

    class Clock:
        def wall_ms(self):
            return NOW_MS

    days = Days()
    watch = ExpiryWatch("broker", tls_of_listeners(parsed), Clock())
    watch.start(days)
    assert days.delay_ms == 24 * 3_600_000
    assert caplog.text.count("listener CLIENTS: the certificate expires on") == 1
    days.pass_one()
    assert caplog.text.count("listener CLIENTS: the certificate expires on") == 2
    authority.issue("broker")
    with ThreadTimer() as timer:
        ExpiryWatch("broker", tls_of_listeners(parsed), Clock()).start(timer)
    assert caplog.text.count("listener CLIENTS: the certificate expires on") == 2


def test_a_cluster_in_the_clear_imports_nothing_of_tls():
    """Start time."""
    program = """
import sys
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.listener_tls import (
    advertised_hosts, check_certificates, inter_broker_connector, inter_broker_server, tls_of_listeners
)
config = BrokerConfig.parse({})
assert check_certificates(config, advertised_hosts(config, "127.0.0.1"), 0) == []
assert "sparklog.wire.codec" not in sys.modules
assert (tls_of_listeners(config), inter_broker_server(config)) == ({}, None)
inter_broker_connector(config)
import sparklog.network.reactor
import sparklog_runtime.broker_process.broker_task
import sparklog_runtime.supervision.supervisor
heavy = ("ssl", "cryptography", "sparklog.network.tls", "sparklog.network.streams.tls_stream")
assert not [name for name in sys.modules if name in heavy]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
