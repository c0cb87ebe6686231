"""Logins that go wrong: what our client says, what the broker's log has, and that the broker serves on."""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sparklog.client.security.connecting import connector_of
from sparklog.core.security.login.plain import plain_token
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from sparklog.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

TIMEOUT_MS = 20_000
SESSION_MS = 1_500
USERS = {"alice": "wonder", "bob": "builder"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with pytest.MonkeyPatch.context() as patch:
        for user, password in USERS.items():
            patch.setenv(f"PASSWORD_{user}", password)
        users = " ".join(f'user_{user}="${{env:PASSWORD_{user}}}"' for user in USERS)
        settings = {
            "listeners": "PLAINTEXT://:0,CLIENTS://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.plain.without.tls": "true",
            "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
            "connection.failed.authentication.delay.ms": "0",
            "connections.max.reauth.ms": str(SESSION_MS),
            "connections.login.timeout.ms": "1000",
        }
        with InProcessCluster(brokers=1, settings=settings) as running:
            running.create_topic("t")
            yield running


@pytest.fixture(autouse=True)
def _it_serves_on(cluster: InProcessCluster) -> Iterator[None]:
    yield
    cluster.produce("t", ["one more"])


def port_of(cluster: InProcessCluster, listener: str = "CLIENTS") -> int:
    return cluster.brokers[1].ports[listener]


def dial(cluster: InProcessCluster, listener: str = "CLIENTS", **changed: str) -> Connection:
    """As alice, by PLAIN, but for what is ``changed``."""
    terms = {"mechanism": "PLAIN", "user": "alice", "password": "wonder"} | changed
    jaas = f'{PLAIN_MODULE} required username="{terms["user"]}" password="{terms["password"]}";'
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": terms["mechanism"],
        "sasl.jaas.config": jaas,
    }
    connector = connector_of(properties)
    port = port_of(cluster, listener)
    return connector.open("127.0.0.1", port, client_id="bad-login", timeout_ms=TIMEOUT_MS)


REFUSED = [
    ("a wrong password", "CLIENTS", {"password": "guess"}),
    ("an unknown user", "CLIENTS", {"user": "nobody"}),
    ("a wrong password of SCRAM", "CLIENTS", {"mechanism": "SCRAM-SHA-512"}),
    ("a mechanism that is off", "CLIENTS", {"mechanism": "SCRAM-SHA-256"}),
    ("a login where nobody logs in", "PLAINTEXT", {}),
]


@pytest.mark.parametrize(("wrong", "listener", "changed"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_login_is_refused(
    wrong: str,
    listener: str,
    changed: dict[str, str],
    cluster: InProcessCluster,
    case: Case,
    refused: Refused,
) -> None:
    error = refused(lambda: dial(cluster, listener, **changed))
    case(wrong, "sparklog's client", error, "", {port_of(cluster, listener): "9092"})


def in_the_clear(cluster: InProcessCluster) -> Connection:
    port = port_of(cluster)
    return Connection.open("127.0.0.1", port, client_id="bad-login", timeout_ms=TIMEOUT_MS)


def no_login(connection: Connection) -> None:
    connection.call(MetadataRequest(topics=[]), version=9, timeout_ms=TIMEOUT_MS)


def log_in(connection: Connection, user: str = "alice") -> None:
    connection.call(SaslHandshakeRequest(mechanism="PLAIN"), version=1, timeout_ms=TIMEOUT_MS)
    send_token(connection, user)


def send_token(connection: Connection, user: str = "alice") -> None:
    token = plain_token(user, USERS[user])
    connection.call(SaslAuthenticateRequest(auth_bytes=token), version=2, timeout_ms=TIMEOUT_MS)


def token_twice(connection: Connection) -> None:
    log_in(connection)
    send_token(connection)


def token_first(connection: Connection) -> None:
    send_token(connection)


def another_user(connection: Connection) -> None:
    log_in(connection)
    log_in(connection, "bob")


def another_mechanism(connection: Connection) -> None:
    log_in(connection)
    connection.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), version=1, timeout_ms=TIMEOUT_MS)


def nothing(_: Connection) -> None:
    """And then it is silent."""


HUNG_UP_ON = [
    ("a client that does not log in", no_login, "give it `security.protocol` and `sasl.…`"),
    ("a message of a login before its time", token_first, ""),
    ("a message of a login twice", token_twice, ""),
    ("another user at a new login", another_user, ""),
    ("another mechanism at a new login", another_mechanism, ""),
    ("a login that takes too long", nothing, "see `connections.login.timeout.ms`"),
]


@pytest.mark.parametrize(("wrong", "do", "remedy"), HUNG_UP_ON, ids=[row[0] for row in HUNG_UP_ON])
def test_a_client_is_hung_up_on(
    wrong: str,
    do: Callable[[Connection], None],
    remedy: str,
    cluster: InProcessCluster,
    case: Case,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with in_the_clear(cluster) as connection, contextlib.suppress(ConnectionError):
        do(connection)
        until(connection.has_peer_left)
    case(wrong, "broker's log", line_in(caplog), remedy)


def test_a_request_after_the_end_of_the_session(
    cluster: InProcessCluster, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    with in_the_clear(cluster) as connection:
        log_in(connection)

        def has_ended() -> bool:
            try:
                connection.call(MetadataRequest(topics=[]), version=9, timeout_ms=TIMEOUT_MS)
            except ConnectionError:
                return True
            return False

        until(has_ended)
    case("a request after the end of the session", "broker's log", line_in(caplog))


def line_in(caplog: pytest.LogCaptureFixture) -> str:
    """The last line about a refused client, however many it is about."""

    def lines() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.WARNING and "login: " in record.getMessage()
        ]

    until(lambda: lines() != [], "a line in the log")
    return re.sub(r"^\d+ more connections", "connection", lines()[-1])
