"""Logins at a listener, over real sockets: both forms of tokens, late refusals, ends of sessions."""

import gc
import logging
import os
import struct
import threading
import time

import pytest

from sparklog.core.security.login.plain import PlainServer, plain_token
from sparklog.core.security.login.scram import SHA_256, credential_of
from sparklog.core.security.login.scram_client import ScramClient
from sparklog.core.security.login.server_login import LoginTerms
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.login.listener_login import ClusterLogins
from sparklog.network.login.sessions import LoginSessions
from sparklog.network.reactor import Reactor
from sparklog.network.streams.inbound import FrameReceiver
from sparklog.wire.codec import decode_response, encode_request
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from sparklog.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from tests.network.frames import frame
from tests.waiting import PATIENCE_S, until

INVALID = "Authentication failed: Invalid username or password"
ALICE = plain_token("alice", "wonder")
DELAY_MS = 150
FRAMES_BYTES_MAX = 1_000


class AheadClock:
    def __init__(self):
        self.ahead_ms = 0

    def wall_ms(self):
        return SystemClock().wall_ms()

    def monotonic_ms(self):
        return SystemClock().monotonic_ms() + self.ahead_ms


@pytest.fixture
def start(cleanups, monkeypatch):
    """A server with logins that answers each request with the principal; and its users."""
    monkeypatch.setenv("ALICE", "wonder")

    def start_one(clock=None, **options):
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        given = {
            "listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.plain.without.tls": "true",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": module
            + ' required user_alice="${env:ALICE}";',
            "connection.failed.authentication.delay.ms": str(DELAY_MS),
            **{name.replace("_", "."): str(value) for name, value in options.items()},
        }
        config = BrokerConfig.parse(given)
        logins = ClusterLogins(config, ["SASL_PLAINTEXT"])
        reactor = Reactor(
            [Listener("127.0.0.1", 0, "SASL_PLAINTEXT", login=logins.of("SASL_PLAINTEXT"))],
            lambda exchange: exchange.reply([frame(exchange.context.principal.encode())]),
            clock=clock,
            frames_bytes_max=FRAMES_BYTES_MAX,
            login_ms=config.get_int("connections.login.timeout.ms"),
        )
        reactor.start()
        cleanups.actions.append(reactor.stop)
        return reactor, logins

    return start_one


class Client:
    def __init__(self, raw):
        self.raw = raw

    def send(self, message, version):
        self.raw.send_raw(encode_request(message, version, 7, "client"))

    def ask(self, message, version):
        self.send(message, version)
        return decode_response(message.API_KEY, version, self.raw.read_frame())[1]

    def handshake(self, mechanism="PLAIN", version=1):
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token, version=2):
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(self, token=ALICE):
        assert self.handshake().error_code is ErrorCode.none
        return self.token(token)

    def whoami(self):
        self.send(MetadataRequest(topics=[]), 9)
        return self.raw.read_frame()


@pytest.fixture
def client(start, connect):
    def new(reactor):
        return Client(connect(reactor))

    return new


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_login_in_requests_gives_the_connection_its_principal(start, client, version):
    reactor, _ = start()
    one = client(reactor)
    handshake = one.handshake()
    assert handshake.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert one.token(ALICE, version).error_code is ErrorCode.none
    assert one.whoami() == b"User:alice"


def test_a_login_by_bare_tokens(start, client):
    reactor, _ = start()
    one = client(reactor)
    one.handshake(version=0)
    assert one.raw.call(ALICE) == b""
    assert one.whoami() == b"User:alice"


def test_a_login_by_bare_tokens_that_fails_is_closed_without_a_word(start, client):
    reactor, _ = start()
    one = client(reactor)
    one.handshake(version=0)
    one.raw.send(plain_token("alice", "wrong"))
    assert one.raw.is_closed_by_peer()


@pytest.mark.parametrize("version", [0, 1], ids=["bare", "wrapped"])
def test_scram_in_both_forms(start, client, version):
    reactor, logins = start()
    salt = os.urandom(20)
    stored = credential_of(SHA_256, SHA_256.salted(b"secret", salt, 4_096), salt, 4_096)
    logins.users.replace_all({"bob": {"SCRAM-SHA-256": stored}})
    one = client(reactor)
    one.handshake("SCRAM-SHA-256", version)
    send = one.raw.call if version == 0 else lambda token: bytes(one.token(token).auth_bytes)
    side = ScramClient(SHA_256, "bob", lambda salt, n: SHA_256.salted(b"secret", salt, n), "nonce")
    side.check(send(side.final(send(side.first()))))
    assert one.whoami() == b"User:bob"


def test_a_wrong_password_is_answered_after_the_delay_and_the_connection_ends(start, client, caplog):
    reactor, _ = start()
    one = client(reactor)
    one.handshake()
    began = time.monotonic()
    answer = one.token(plain_token("alice", "wrong"))
    assert (time.monotonic() - began) * 1_000 >= DELAY_MS
    assert (answer.error_code, answer.error_message) == (ErrorCode.sasl_authentication_failed, INVALID)
    assert one.raw.is_closed_by_peer()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.endswith(f"refused: listener SASL_PLAINTEXT, login: {INVALID}")


def test_a_refusal_that_waits_holds_no_thread(start, client):
    """One processor and two handlers, and four refusals that wait."""
    reactor, _ = start(connection_failed_authentication_delay_ms=2_000)
    refused = [client(reactor) for _ in range(4)]
    for one in refused:
        one.handshake()
        one.send(SaslAuthenticateRequest(auth_bytes=plain_token("alice", "wrong")), 2)
    began = time.monotonic()
    other = client(reactor)
    other.log_in()
    assert other.whoami() == b"User:alice"
    assert time.monotonic() - began < 1.5


def test_a_mechanism_that_is_off_is_named_with_those_that_are_on(start, client):
    reactor, _ = start()
    one = client(reactor)
    answer = one.handshake("GSSAPI")
    assert answer.error_code is ErrorCode.unsupported_sasl_mechanism
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert one.raw.is_closed_by_peer()


def test_versions_may_be_asked_for_first(start, client):
    reactor, _ = start()
    one = client(reactor)
    one.raw.send_raw(encode_request(ApiVersionsRequest(), 3, 7, "client"))
    assert one.raw.read_frame() == b"User:ANONYMOUS"
    one.log_in()
    assert one.whoami() == b"User:alice"


@pytest.mark.parametrize("after", ["nothing", "versions", "handshake"])
def test_any_other_request_before_the_login_ends_the_connection(start, client, after):
    reactor, _ = start()
    one = client(reactor)
    if after == "versions":
        one.raw.call(encode_request(ApiVersionsRequest(), 3, 7, "client")[4:])
    if after == "handshake":
        one.handshake()
    one.send(MetadataRequest(topics=[]), 9)
    assert one.raw.is_closed_by_peer()


def test_requests_before_the_login_are_small(start, client):
    reactor, _ = start(sasl_server_max_receive_size=1_024)
    one = client(reactor)
    one.raw.send_raw(struct.pack(">i", 1_025))
    assert one.raw.is_closed_by_peer()
    other = client(reactor)
    other.log_in()
    assert other.raw.call(encode_request(MetadataRequest(topics=[]), 9, 1, "x" * 2_000)[4:]) == b"User:alice"


@pytest.mark.parametrize(
    "nonsense", [struct.pack(">i", 1 << 30), frame(b"\0\x12\0\3\0\0\0\7\xff\xff")], ids=["size", "versions"]
)
def test_the_nonsense_of_strangers_is_logged_once_for_an_address_and_counted_then(
    start, client, caplog, nonsense
):
    reactor, _ = start()
    for _ in range(5):
        one = client(reactor)
        one.raw.send_raw(nonsense)
        assert one.raw.is_closed_by_peer()
    reactor.stop()
    first, rest = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert first.startswith("connection from 127.0.0.1 refused: listener SASL_PLAINTEXT, login: ")
    assert rest.startswith("4 more connections from 127.0.0.1 refused: ")


def test_who_takes_too_long_is_closed_and_who_is_in_stays(start, client):
    reactor, _ = start(connections_login_timeout_ms=400)
    inside, slow, silent = client(reactor), client(reactor), client(reactor)
    inside.log_in()
    slow.handshake()
    assert slow.raw.is_closed_by_peer()
    assert silent.raw.is_closed_by_peer()
    assert inside.whoami() == b"User:alice"


def test_a_stranger_who_has_gone_leaves_no_memory_until_the_login_would_be_late(start, client):
    reactor, _ = start(connections_login_timeout_ms=600_000)
    before = {id(one) for one in gc.get_objects() if isinstance(one, FrameReceiver)}
    for _ in range(3):
        one = client(reactor)
        one.raw.send_raw(struct.pack(">i", 500_000) + b"x" * 400_000)
        one.raw.close()
    until(lambda: reactor.connections == 0)

    def are_left():
        gc.collect()
        return any(isinstance(one, FrameReceiver) and id(one) not in before for one in gc.get_objects())

    until(lambda: not are_left())


def test_a_login_that_completes_after_its_connection_has_ended_leaves_no_session(start, client):
    reactor, logins = start(connections_login_timeout_ms=100)
    settings, has_begun, has_ended = logins.of("SASL_PLAINTEXT"), threading.Event(), threading.Event()

    def slow_users():
        has_begun.set()
        has_ended.wait(PATIENCE_S)
        return {"alice": "wonder"}

    settings.terms = LoginTerms({"PLAIN": lambda _: PlainServer(slow_users)}, {})
    entered = []
    settings.sessions.enter = lambda *terms: (
        entered.append(terms) or LoginSessions.enter(settings.sessions, *terms)
    )
    one = client(reactor)
    one.handshake()
    one.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
    assert has_begun.wait(PATIENCE_S)
    assert one.raw.is_closed_by_peer()
    has_ended.set()
    until(lambda: entered)
    until(lambda: not settings.sessions._by_credential)


def test_a_session_ends_at_its_time_unless_the_user_logs_in_anew(start, client):
    clock = AheadClock()
    reactor, _ = start(clock, connections_max_reauth_ms=1_000)
    one = client(reactor)
    assert one.log_in().session_lifetime_ms == 1_000
    assert one.log_in().session_lifetime_ms == 1_000
    assert one.whoami() == b"User:alice"
    clock.ahead_ms = 1_001
    assert one.log_in().error_code is ErrorCode.none
    assert one.whoami() == b"User:alice"
    clock.ahead_ms = 2_002
    one.send(MetadataRequest(topics=[]), 9)
    assert one.raw.is_closed_by_peer()


def test_a_deleted_credential_closes_what_it_has_opened_and_nothing_else(start, client):
    reactor, logins = start()
    salt = os.urandom(20)
    stored = credential_of(SHA_256, SHA_256.salted(b"secret", salt, 4_096), salt, 4_096)
    logins.users.replace_all({"alice": {"SCRAM-SHA-256": stored}})
    by_plain, by_scram = client(reactor), client(reactor)
    by_plain.log_in()
    by_scram.handshake("SCRAM-SHA-256")
    side = ScramClient(SHA_256, "alice", lambda salt, n: SHA_256.salted(b"secret", salt, n), "nonce")
    first = bytes(by_scram.token(side.first()).auth_bytes)
    side.check(bytes(by_scram.token(side.final(first)).auth_bytes))
    for user, mechanism in logins.users.replace_all({}):
        logins.on_gone(user, mechanism)
    assert by_scram.raw.is_closed_by_peer()
    assert by_plain.whoami() == b"User:alice"
    until(lambda: reactor.connections == 1)


def test_a_file_of_users_that_is_gone_lets_nobody_in_and_says_so(start, client, monkeypatch, caplog):
    reactor, _ = start(connection_failed_authentication_delay_ms=0)
    monkeypatch.delenv("ALICE")
    answer = client(reactor).log_in()
    assert answer.error_message == INVALID
    assert (
        "nobody can log in by PLAIN: listener.name.sasl_plaintext.plain.sasl.jaas.config: ${env:ALICE}"
        in caplog.text
    )


def test_frames_that_strangers_announce_hold_no_budget(start, client):
    """Each announces more than the whole budget, and sends nothing of it."""
    reactor, _ = start()
    strangers = [client(reactor) for _ in range(5)]
    for stranger in strangers:
        stranger.raw.send_raw(struct.pack(">i", 100_000))
    alice = client(reactor)
    alice.log_in()
    assert alice.whoami() == b"User:alice"
    until(lambda: reactor.frames_bytes == 0)
    strangers[0].raw.close()
    until(lambda: reactor.connections == 5)
    assert reactor.frames_bytes == 0
    assert alice.whoami() == b"User:alice"


def test_the_frame_of_a_user_is_charged_and_credited(start, client):
    reactor, _ = start()
    alice = client(reactor)
    alice.log_in()
    alice.raw.send_raw(struct.pack(">i", 500) + bytes(100))
    until(lambda: reactor.frames_bytes == 500)
    alice.raw.close()
    until(lambda: reactor.frames_bytes == 0)


def test_failed_logins_are_counted_by_listener(start, client):
    reactor, _ = start()
    assert reactor.connections_failed == {}
    for _ in range(2):
        assert client(reactor).log_in(plain_token("alice", "wrong")).error_code is not ErrorCode.none
    client(reactor).log_in()
    assert reactor.connections_failed == {("SASL_PLAINTEXT", "login"): 2}
