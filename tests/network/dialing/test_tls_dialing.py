"""Connections over TLS: which brokers are accepted, and what the error says of all others."""

import datetime
import socket
import ssl
import threading

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sparklog.model.cluster_facts import Node
from sparklog.network.dialing.connector import Connector
from sparklog.network.dialing.peer_connections import PeerConnections
from sparklog.network.dialing.peer_refused import TlsRefused
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsResponse
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataResponse
from tests.network.tls_sides import ClientSide, ServerSide, authority, client_certificate, stranger

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def serve(exchange):
    """ApiVersions and Metadata, whose cluster is named by the client's principal."""
    header = decode_request(exchange.frame).header
    if header.api_key == 18:
        keys = [ApiVersion(api_key=key, min_version=0, max_version=high) for key, high in ((18, 3), (3, 9))]
        message = ApiVersionsResponse(api_keys=keys)
    else:
        message = MetadataResponse(cluster_id=exchange.context.principal)
    exchange.reply(encode_response(message, header.api_version, header.correlation_id))


@pytest.fixture
def start(start_reactor):
    """The port of a broker with this side of TLS; None for one in the clear."""
    return lambda side: start_reactor(serve, tls=side).ports[0]


@pytest.fixture
def dial(cleanups):
    def open_to(port, tls=None, host="localhost", timeout_ms=20_000):
        connection = Connector(tls).open(host, port, client_id="test", timeout_ms=timeout_ms)
        cleanups.actions.append(connection.close)
        return connection

    return open_to


def ask(connection):
    return connection.call(MetadataRequest(), timeout_ms=20_000).cluster_id


def refused(dial, port, tls, host="localhost"):
    """The text of the refusal."""
    with pytest.raises(TlsRefused) as caught:
        ask(dial(port, tls, host))
    return str(caught.value)


@pytest.fixture
def plays(cleanups):
    """A port on which ``play`` gets each accepted socket, on a thread of its own."""

    def start_one(play):
        server = socket.create_server(("127.0.0.1", 0))
        accepted = []

        def accept():
            while True:
                try:
                    accepted.append(server.accept()[0])
                except OSError:
                    return
                play(accepted[-1])

        thread = threading.Thread(target=accept)
        thread.start()

        def end():
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for sock in (server, *accepted):
                sock.close()

        cleanups.actions.append(end)
        return server.getsockname()[1]

    return start_one


# Accepted


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_broker_is_accepted_by_name_and_by_address(start, dial, host):
    assert ask(dial(start(ServerSide()), ClientSide(), host)) == "User:ANONYMOUS"


def test_a_client_is_known_by_its_certificate(start, dial):
    port = start(ServerSide(client_auth=ssl.CERT_REQUIRED))
    assert ask(dial(port, ClientSide(certificate=client_certificate("bob")))) == "User:bob"


def test_a_name_that_is_not_to_be_checked_is_not(start, dial):
    port = start(ServerSide(certificate=authority().issue_cert("broker-1.example.org")))
    assert ask(dial(port, ClientSide(checks_host_names=False))) == "User:ANONYMOUS"


def test_brokers_call_each_other_over_tls(start, cleanups):
    port = start(ServerSide(client_auth=ssl.CERT_REQUIRED))
    peers = PeerConnections(
        client_id="broker-2", connector=Connector(ClientSide(certificate=client_certificate("broker-2")))
    )
    cleanups.actions.append(peers.close)
    node = Node(1, "localhost", port)
    for _ in range(2):
        peers.call(node, MetadataRequest(), timeout_ms=20_000)
        assert not peers.has_ended(node, 1_000)


# Refused for good


def test_another_name_is_refused_with_the_names_that_the_certificate_has(start, dial):
    port = start(ServerSide(certificate=authority().issue_cert("broker-1.example.org", "10.1.2.3")))
    text = refused(dial, port, ClientSide())
    assert f"cannot connect to localhost:{port} over TLS" in text
    assert "its certificate is for broker-1.example.org, 10.1.2.3, not for localhost" in text
    assert "not for 127.0.0.1" in refused(dial, port, ClientSide(), "127.0.0.1")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            x509.SubjectAlternativeName([x509.DNSName("other\n\x1b[31mplanted")]),
            "for other??[31mplanted, not",
        ),
        (
            x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, bytes.fromhex("3007a3053003020100")),
            "is for other names, not",
        ),
    ],
    ids=["control characters", "a kind that cannot be read"],
)
def test_whatever_names_a_certificate_has_it_is_refused_in_plain_words(start, dial, names, words):
    key = ec.generate_private_key(ec.SECP256R1())
    owner = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    serial = x509.random_serial_number()
    builder = x509.CertificateBuilder(owner, owner, key.public_key(), serial, NOW - DAY, NOW + DAY)
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    shown = trustme.LeafCert(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
        [],
    )
    client = ClientSide()
    client.context().load_verify_locations(
        cadata=certificate.public_bytes(serialization.Encoding.PEM).decode()
    )
    text = refused(dial, start(ServerSide(certificate=shown)), client)
    assert words in text
    assert text.isprintable()


def test_an_expired_certificate_is_refused_with_its_date(start, dial):
    certificate = authority().issue_cert("localhost", not_before=NOW - 9 * DAY, not_after=NOW - 2 * DAY)
    text = refused(dial, start(ServerSide(certificate=certificate)), ClientSide())
    assert f"its certificate expired on {NOW - 2 * DAY:%Y-%m-%d %H:%M} UTC: give the broker a new one" in text


def test_a_certificate_that_is_not_valid_yet_is_refused_with_its_date(start, dial):
    certificate = authority().issue_cert("localhost", not_before=NOW + 2 * DAY, not_after=NOW + 9 * DAY)
    text = refused(dial, start(ServerSide(certificate=certificate)), ClientSide())
    assert f"is valid from {NOW + 2 * DAY:%Y-%m-%d %H:%M} UTC on: compare the clocks" in text


def test_an_unknown_authority_is_refused_with_its_name(start, dial):
    text = refused(dial, start(ServerSide(certificate=stranger().issue_cert("localhost"))), ClientSide())
    assert "its certificate is from an authority (" in text
    assert "O=Strangers" in text
    assert "put the authority's certificate into ssl.truststore.location" in text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_certificate_that_the_broker_asks_for_is_named(start, dial, version):
    """In TLS 1.3 that shows at the first answer only."""
    port = start(ServerSide(client_auth=ssl.CERT_REQUIRED, greatest=version))
    assert "set ssl.keystore.location" in refused(dial, port, ClientSide())


def test_a_certificate_that_the_broker_does_not_trust_is_refused(start, dial):
    certificate = stranger().issue_cert("alice@example.org", common_name="alice")
    port = start(ServerSide(client_auth=ssl.CERT_REQUIRED))
    text = refused(dial, port, ClientSide(certificate=certificate))
    assert "it does not know the authority of this side's certificate" in text


def test_no_version_in_common_is_named(start, dial):
    side = ClientSide()
    side.context().minimum_version = ssl.TLSVersion.TLSv1_3
    text = refused(dial, start(ServerSide(greatest=ssl.TLSVersion.TLSv1_2)), side)
    assert "compare ssl.enabled.protocols" in text


def test_no_cipher_suite_in_common_is_named(start, dial):
    served, used = ServerSide(greatest=ssl.TLSVersion.TLSv1_2), ClientSide()
    served.context().set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    used.context().set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    assert "ssl.cipher.suites" in refused(dial, start(served), used)


def test_a_broker_in_the_clear_is_recognized_by_its_answer(start, dial):
    text = refused(dial, start(None), ClientSide())
    assert "it speaks no TLS, and answers in the clear: set security.protocol=PLAINTEXT" in text


def test_a_port_of_another_protocol_is_recognized(plays, dial):
    port = plays(lambda sock: sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"))
    assert "it speaks no TLS: set security.protocol=PLAINTEXT" in refused(dial, port, ClientSide())


# Refused for now


def test_a_peer_that_hangs_up_may_be_tried_again(plays, dial):
    port = plays(lambda sock: sock.shutdown(socket.SHUT_RDWR))
    with pytest.raises(
        ConnectionError, match=f"localhost:{port} over TLS: it closed the connection"
    ) as caught:
        dial(port, ClientSide())
    assert not isinstance(caught.value, TlsRefused)


def test_a_silent_peer_is_left_in_time(plays, dial):
    with pytest.raises(ConnectionError, match="did not end the handshake in time: is this a port with TLS"):
        dial(plays(lambda sock: None), ClientSide(), timeout_ms=200)


def test_nobody_at_home_is_nobody_at_home_with_tls_too(dial):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match=f"cannot connect to localhost:{port}"):
        dial(port, ClientSide())


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_can_be_no_name_is_an_ordinary_connection_error(dial, host):
    with pytest.raises(ConnectionError, match="cannot be a host name"):
        dial(9092, ClientSide(), host)


# The other way round, and mistakes of ours


def test_a_client_in_the_clear_gets_a_hint_at_a_port_with_tls(start, dial):
    with pytest.raises(ConnectionError, match=r"if this is a port with TLS, set security\.protocol=SSL"):
        ask(dial(start(ServerSide())))


def test_a_context_that_does_not_check_what_is_to_be_checked_is_never_used(start, dial):
    side = ClientSide(checks_host_names=False)
    side.checks_host_names = True
    with pytest.raises(ValueError, match="the context does not check them"):
        dial(start(ServerSide()), side)


def test_a_context_that_cannot_be_made_opens_no_connection(plays, dial):
    accepted = []

    class Broken(ClientSide):
        def context(self):
            raise OSError("the key store is gone")

    with pytest.raises(OSError, match="the key store is gone"):
        dial(plays(accepted.append), Broken())
    assert accepted == []


def test_tickets_of_the_server_are_no_sign_that_it_has_left(start, dial):
    connection = dial(start(ServerSide()), ClientSide())
    threading.Event().wait(0.05)  # they arrive after the handshake, and nothing tells
    for _ in range(3):
        assert not connection.has_peer_left()
    assert ask(connection) == "User:ANONYMOUS"
