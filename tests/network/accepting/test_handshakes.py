"""A listener with TLS: who gets in with which principal, who is refused with which words, who is too slow."""

import errno
import logging
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from sparklog.network.accepting.handshakes import Handshakes
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from tests.network.frames import frame
from tests.network.tls_sides import ClientSide, ServerSide, client_certificate, stranger
from tests.waiting import until

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def answer_principal(exchange):
    exchange.reply([frame(exchange.context.principal.encode())])


def refusals(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def a_refusal(caplog):
    """The one line about a refused client, once it is there."""
    until(lambda: refusals(caplog), "a line in the log")
    (line,) = refusals(caplog)
    return line


@pytest.fixture
def start(start_reactor):
    """A reactor with TLS that answers with principals."""

    def start_one(handle=answer_principal, **options):
        settings = {name: options.pop(name) for name in ("login_ms", "idle_ms") if name in options}
        return start_reactor(handle, tls=options.pop("tls", None) or ServerSide(**options), **settings)

    return start_one


# Principals


@pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])
@pytest.mark.parametrize("client_auth", [ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED])
def test_the_principal_is_that_of_the_certificate(start, connect, version, client_auth):
    reactor = start(client_auth=client_auth, greatest=version)
    client = connect(reactor, tls=ClientSide(certificate=client_certificate("alice")))
    assert client.sock.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
    assert client.call(b"who am I?") == b"User:alice"


def test_without_a_certificate_that_was_only_asked_for_the_principal_is_anonymous(start, connect):
    client = connect(start(client_auth=ssl.CERT_OPTIONAL), tls=ClientSide())
    assert client.call(b"who am I?") == b"User:ANONYMOUS"


def test_listeners_in_the_clear_and_with_tls_live_in_one_reactor(start_reactor, connect):
    encrypted = start_reactor(answer_principal, tls=ServerSide(client_auth=ssl.CERT_REQUIRED))
    open_one = start_reactor(answer_principal)
    alice = connect(encrypted, tls=ClientSide(certificate=client_certificate("alice")))
    assert connect(open_one).call(b"?") == b"User:ANONYMOUS"
    assert alice.call(b"?") == b"User:alice"


# Refusals


def test_a_client_without_the_certificate_that_is_required_sees_the_alert(start, connect, caplog):
    client = connect(start(client_auth=ssl.CERT_REQUIRED), tls=ClientSide())
    client.send(b"a request on its way while the server refuses")
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate required"):
        client.read_frame()
    assert "listener L0, TLS: it has no certificate, which ssl.client.auth asks for" in a_refusal(caplog)


def test_a_certificate_of_a_stranger_is_refused(start, connect, caplog):
    certificate = stranger().issue_cert("mallory@example.org", common_name="alice")
    client = connect(start(client_auth=ssl.CERT_REQUIRED), tls=ClientSide(certificate=certificate))
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown ca"):
        client.call(b"who am I?")
    assert "its certificate is not accepted: unable to get local issuer certificate" in a_refusal(caplog)


def test_a_certificate_without_a_usable_name_is_refused(start, connect, caplog):
    reactor = start(client_auth=ssl.CERT_REQUIRED, refused=("alice",))
    client = connect(reactor, tls=ClientSide(certificate=client_certificate("alice")))
    assert client.is_closed_by_peer()
    assert "its certificate gives no principal: alice is refused" in a_refusal(caplog)
    until(lambda: reactor.connections == 0)


def test_a_client_that_does_not_trust_the_broker_is_named_in_the_log(start, connect, caplog):
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(start(), tls=ClientSide(trusted=stranger()))
    assert "it does not know the authority of this broker's certificate" in a_refusal(caplog)


def test_bytes_in_the_clear_are_refused_with_one_line_however_often_they_come(start, connect, caplog):
    reactor = start()
    for _ in range(20):
        client = connect(reactor, tls=None)
        client.send(b"\0\x12\0\3\0\0\0\0\0\4test")
        assert client.is_closed_by_peer()
    assert "it sent bytes in the clear to a port with TLS; set security.protocol=SSL" in a_refusal(caplog)
    assert connect(reactor, tls=ClientSide()).call(b"?") == b"User:ANONYMOUS"
    reactor.stop()
    assert "19 more connections from 127.0.0.1 refused" in refusals(caplog)[-1]


@pytest.mark.parametrize(
    "nonsense", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x15\x03\x03\0\2\2\x2a"]
)
def test_what_is_no_greeting_is_refused(start, connect, caplog, nonsense):
    reactor = start()
    client = connect(reactor, tls=None)
    client.send_raw(nonsense)
    client.sock.shutdown(socket.SHUT_WR)
    while client.sock.recv(1 << 10):  # an alert, perhaps
        pass
    assert "listener L0, TLS: " in a_refusal(caplog)
    until(lambda: reactor.connections == 0)


def test_a_connection_without_a_byte_is_nothing_to_speak_of(start, connect, caplog):
    reactor = start()
    connect(reactor, tls=None).close()
    until(lambda: reactor.connections == 0)
    assert refusals(caplog) == []


def test_a_client_that_leaves_in_the_middle_is_noted(start, connect, caplog):
    reactor = start()
    client = connect(reactor, tls=None)
    client.send_raw(greeting()[:50])
    client.close()
    assert "it left in the middle of its handshake" in a_refusal(caplog)
    until(lambda: reactor.connections == 0)


def greeting():
    """What a client says first."""
    outgoing = ssl.MemoryBIO()
    session = ClientSide().context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def test_settings_that_cannot_be_used_cost_their_connections_alone(start, connect, caplog):
    class Broken(ServerSide):
        def context(self):
            raise OSError("the key store is gone")

    broken = start(tls=Broken())
    assert connect(broken, tls=None).is_closed_by_peer()
    assert "its TLS settings cannot be used" in caplog.text
    until(lambda: broken.connections == 0)


# Time


@pytest.mark.parametrize("says", [b"", b"half"], ids=["silent", "half-way"])
def test_a_handshake_that_does_not_go_on_is_ended(start, connect, caplog, says):
    reactor = start(login_ms=200)
    client = connect(reactor, tls=None)
    client.send_raw(says and greeting()[:100])
    assert client.is_closed_by_peer()
    assert "its handshake has not ended within 200 ms" in a_refusal(caplog)
    until(lambda: reactor.connections == 0)


def test_a_client_that_drips_its_greeting_has_no_more_time_than_others(start, connect):
    reactor = start(login_ms=300)
    said = drip(connect(reactor, tls=None), greeting())
    assert 0 < said < len(greeting())
    until(lambda: reactor.connections == 0)


def drip(client, data):
    """How many bytes of ``data`` were taken, one each 20 ms, before the peer closed the connection."""
    client.sock.settimeout(0.02)
    for said, byte in enumerate(data):
        try:
            client.send_raw(bytes([byte]))
            if client.sock.recv(1) == b"":
                return said
        except TimeoutError:
            continue
        except ConnectionError:
            return said
    return len(data)


def test_clients_that_stop_half_way_hold_up_no_other(start, connect):
    reactor = start()
    for _ in range(40):
        connect(reactor, tls=None).send_raw(greeting()[:100])
    assert connect(reactor, tls=ClientSide()).call(b"?") == b"User:ANONYMOUS"


def test_a_stop_ends_handshakes_that_are_under_way(start, connect):
    reactor = start()
    clients = [connect(reactor, tls=None) for _ in range(5)]
    for client in clients:
        client.send_raw(greeting()[:100])
    until(lambda: reactor.connections == 5)
    reactor.stop()
    assert all(client.is_closed_by_peer() for client in clients)
    assert reactor.connections == 0


def test_a_client_that_is_refused_and_stays_is_closed_soon(start, connect):
    reactor = start()
    client = connect(reactor, tls=None)
    client.send(b"in the clear")
    assert client.is_closed_by_peer()
    assert reactor.connections == 1  # it may still be sending, and is to see the end of our bytes first
    until(lambda: reactor.connections == 0)


def test_who_comes_after_the_end_is_closed(cleanups):
    closed = []
    handshakes = Handshakes(
        name="late",
        handshake_ms=1_000,
        clock=SystemClock(),
        welcome=lambda *_: None,
        on_refused=lambda *_: None,
        on_closed=lambda address, listener: closed.append((address, listener)),
    )
    handshakes.start()
    handshakes.stop()
    near, far = socket.socketpair()
    cleanups.actions += [near.close, far.close]
    handshakes.adopt(near, "10.0.0.1", Listener("127.0.0.1", 0, "L0", ServerSide()))
    assert far.recv(1) == b""
    assert closed == [("10.0.0.1", "L0")]


def test_a_connection_that_cannot_be_watched_ends_no_other(cleanups, monkeypatch):
    closed, welcomed = [], threading.Event()
    handshakes = Handshakes(
        name="full",
        handshake_ms=60_000,
        clock=SystemClock(),
        welcome=lambda stream, *_: (cleanups.actions.append(stream.close), welcomed.set()),
        on_refused=lambda *_: None,
        on_closed=lambda address, listener: closed.append((address, listener)),
    )
    cleanups.actions.append(handshakes.stop)
    register, is_full = handshakes._selector.register, True

    def register_if_possible(*terms):
        if is_full:
            raise OSError(errno.ENOSPC, "no more descriptors can be watched")
        return register(*terms)

    monkeypatch.setattr(handshakes._selector, "register", register_if_possible)
    listener = Listener("127.0.0.1", 0, "L0", ServerSide())
    near, far = socket.socketpair()
    cleanups.actions += [near.close, far.close]
    near.setblocking(False)
    far.send(b"in the clear")
    handshakes.adopt(near, "10.0.0.1", listener)
    handshakes.start()
    until(lambda: closed == [("10.0.0.1", "L0")])
    is_full = False
    near, far = socket.socketpair()
    cleanups.actions += [near.close, far.close]
    near.setblocking(False)
    handshakes.adopt(near, "10.0.0.2", listener)
    far.settimeout(20)
    with ClientSide().context().wrap_socket(far, server_hostname="localhost") as client:
        assert client.version() is not None
        assert welcomed.wait(20)


# New keys, and a new handshake, in the middle


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl's s_client")
def test_a_client_may_change_its_keys_and_ask_for_new_ones(start_reactor):
    reactor = start_reactor(tls=ServerSide())
    with openssl_client(reactor.ports[0], "-tls1_3") as client:
        for number in range(3):
            for command in (b"k\n", b"K\n"):
                client.say(command)
                client.hear(b"KEYUPDATE\n")
                client.say(frame(b"after %d" % number))
                client.hear(frame(b"after %d" % number))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl's s_client")
def test_a_new_handshake_in_the_middle_is_refused(start_reactor):
    """It costs the server much more than the client. (TLS 1.3 has none.)"""
    reactor = start_reactor(tls=ServerSide())
    with openssl_client(reactor.ports[0], "-tls1_2") as client:
        client.say(frame(b"before"))
        client.hear(frame(b"before"))
        client.say(b"R\n")
        client.hear(b"RENEGOTIATING\n")
        until(lambda: reactor.connections == 0)


class openssl_client:  # noqa: N801 (a context manager)
    """OpenSSL's own client, which obeys letters at the start of what it is given."""

    def __init__(self, port, version):
        self.program = subprocess.Popen(
            [
                "openssl",
                "s_client",
                version,
                "-connect",
                f"127.0.0.1:{port}",
                "-brief",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.heard = bytearray()
        self.arrived = threading.Condition()
        self.reader = threading.Thread(target=self._read)

    def __enter__(self):
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.program.stdin.close()
        self.program.kill()
        self.program.wait()
        self.reader.join()
        self.program.stdout.close()

    def _read(self):
        while chunk := self.program.stdout.read1():
            with self.arrived:
                self.heard += chunk
                self.arrived.notify_all()

    def say(self, data):
        """OpenSSL looks for a letter at the start of each read: wait for its word before more is said."""
        self.program.stdin.write(data)
        self.program.stdin.flush()

    def hear(self, expected):
        with self.arrived:
            assert self.arrived.wait_for(lambda: expected in self.heard, 60), bytes(self.heard)
            del self.heard[: self.heard.index(expected) + len(expected)]
