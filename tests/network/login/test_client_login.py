"""Our clients' logins, over real sockets: refusals that no retry can mend, and sessions that are renewed."""

import pytest

from sparklog.core.security.login.scram import SHA_256, credential_of
from sparklog.model.errors import ConfigError, ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from sparklog.model.settings.login_settings import ClientLoginSettings
from sparklog.model.settings.secrets import Secret
from sparklog.network.acceptor import Listener
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.peer_refused import LoginRefused
from sparklog.network.login import present_users
from sparklog.network.login.client_login import ClientLogin
from sparklog.network.login.listener_login import ClusterLogins
from sparklog.network.reactor import Reactor
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataResponse
from sparklog.wire.messages.security.sasl_authenticate import SaslAuthenticateResponse
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SALT = b"0123456789abcdef0123"


def answer_principal(exchange):
    header = decode_request(exchange.frame).header
    response = MetadataResponse(cluster_id=exchange.context.principal)
    exchange.reply(encode_response(response, header.api_version, header.correlation_id))


@pytest.fixture
def start(cleanups, monkeypatch):
    monkeypatch.setenv("ALICE", "wonder")

    def start_one(handle=answer_principal, **options):
        given = {
            "listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.plain.without.tls": "true",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                PLAIN_MODULE + ' required user_alice="${env:ALICE}";'
            ),
            "connection.failed.authentication.delay.ms": "0",
            **{name.replace("_", "."): str(value) for name, value in options.items()},
        }
        logins = ClusterLogins(BrokerConfig.parse(given), ["SASL_PLAINTEXT"])
        stored = credential_of(SHA_256, SHA_256.salted(b"wonder", SALT, 4_096), SALT, 4_096)
        logins.users.replace_all({"alice": {"SCRAM-SHA-256": stored}})
        login = logins.of("SASL_PLAINTEXT")
        reactor = Reactor([Listener("127.0.0.1", 0, "SASL_PLAINTEXT", login=login)], handle)
        reactor.start()
        cleanups.actions.append(reactor.stop)
        return reactor

    return start_one


@pytest.fixture
def connect_as(cleanups):
    def open_one(reactor, mechanism="PLAIN", user="alice", password="wonder", login=None):
        connection = Connection.open(
            "127.0.0.1",
            reactor.ports[0],
            client_id="test",
            timeout_ms=20_000,
            login=login or login_of(mechanism, user, password),
        )
        cleanups.actions.append(connection.close)
        return connection

    return open_one


def login_of(mechanism="PLAIN", user="alice", password="wonder"):
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    jaas = f'{module} required username="{user}" password="{password}";'
    return ClientLogin(ClientLoginSettings(mechanism, Secret(jaas, "sasl.jaas.config")))


def whoami(connection):
    return connection.call(MetadataRequest(topics=[]), version=9, timeout_ms=20_000).cluster_id


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_connection_is_logged_in_when_it_is_open(start, connect_as, mechanism):
    assert whoami(connect_as(start(), mechanism)) == "User:alice"


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (
            "PLAIN",
            "the login is refused: Authentication failed: Invalid username or password "
            r"\(user 'alice', PLAIN\)",
        ),
        ("SCRAM-SHA-256", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "does not take the mechanism SCRAM-SHA-512; there are PLAIN, SCRAM-SHA-256"),
    ],
)
def test_a_refused_login_is_refused_for_good(start, connect_as, mechanism, why):
    with pytest.raises(LoginRefused, match=why):
        connect_as(start(), mechanism, password="wrong")


def test_a_salted_password_is_paid_for_once(start, connect_as, monkeypatch):
    reactor, login, salted = start(), login_of("SCRAM-SHA-256"), []
    salt_once = type(SHA_256).salted
    monkeypatch.setattr(type(SHA_256), "salted", lambda *terms: salted.append(terms) or salt_once(*terms))
    assert [whoami(connect_as(reactor, login=login)) for _ in range(3)] == ["User:alice"] * 3
    assert len(salted) == 1


def test_a_salted_password_is_not_shown(start, connect_as):
    login = login_of("SCRAM-SHA-256")
    connect_as(start(), login=login)
    assert repr(login._salted) == "_Salted(********)"


def test_what_a_hostile_broker_says_of_a_login_is_short_and_one_line():
    def ask(message, version):
        if isinstance(message, SaslHandshakeRequest):
            return SaslHandshakeResponse()
        error = ErrorCode.sasl_authentication_failed
        return SaslAuthenticateResponse(error_code=error, error_message="x\nERROR all is lost" * 1_000)

    with pytest.raises(LoginRefused) as refused:
        login_of().log_in(ask)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_login_without_user_and_password_does_not_begin():
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config: it has no password; add it"):
        ClientLogin(
            ClientLoginSettings("PLAIN", Secret(f"{PLAIN_MODULE} required username=a;", "sasl.jaas.config"))
        )


def test_a_session_is_renewed_between_requests(start, connect_as, monkeypatch):
    connection = connect_as(start(connections_max_reauth_ms=60_000), "SCRAM-SHA-256")
    logins = []
    log_in = ClientLogin.log_in
    monkeypatch.setattr(ClientLogin, "log_in", lambda self, ask: logins.append(1) or log_in(self, ask))
    assert whoami(connection) == "User:alice"
    assert logins == []
    assert connection._login_due is not None
    connection._login_due = 0.0
    assert whoami(connection) == "User:alice"
    assert logins == [1]


def test_requests_that_wait_for_answers_are_answered_before_the_session_is_renewed(
    start, connect_as, cleanups
):
    """A parked request is on its way when the session's time comes; the next one logs in anew first."""
    parked = []

    def park_first(exchange):
        if not parked:
            parked.append(exchange)
        else:
            answer_principal(exchange)

    connection = connect_as(start(park_first, connections_max_reauth_ms=60_000))
    first = connection.send(MetadataRequest(topics=[]), 9)
    connection._login_due = 0.0
    with pytest.raises(TimeoutError):
        first.result(200)
    answer_principal(parked[0])
    assert whoami(connection) == "User:alice"
    assert first.result(20_000).cluster_id == "User:alice"


def test_a_user_who_is_gone_ends_the_connection_at_the_next_login(start, connect_as, monkeypatch):
    monkeypatch.setattr(present_users, "KEPT_S", 0.0)
    connection = connect_as(start(connections_max_reauth_ms=60_000))
    monkeypatch.setenv("ALICE", "another")
    connection._login_due = 0.0
    with pytest.raises(LoginRefused, match="the login is refused"):
        whoami(connection)
    assert not connection.is_open
