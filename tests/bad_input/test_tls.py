"""Certificates, keys and connections of TLS that cannot work: each side says what is wrong, and serves on."""

import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.tls_settings import tls_settings_of_client
from sparklog.network.dialing.connector import Connector
from sparklog.network.listener_tls import connector_to
from sparklog.network.tls.from_settings import client_side
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from tests.certificates import Authority
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

ALL_SSL = {"listeners": "SSL://:0", "security.inter.broker.protocol": "SSL"}
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC"
OWNER = r"(CN=\w+),OU=.*?,O=trustme v[\d.]+"


def readable(error: object) -> str:
    """A text without what differs from run to run: dates, names that trustme makes, and how many connections
    a line of the log is about.
    """
    text = re.sub(r"^\d+ more connections", "connection", str(error))
    return re.sub(OWNER, r"\1", re.sub(DATE, "2024-01-31 12:00 UTC", text))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.issue("broker", "127.0.0.1")
    made.issue("client")
    return made


@pytest.fixture(scope="module")
def cluster(authority: Authority) -> Iterator[InProcessCluster]:
    settings = {**ALL_SSL, **authority.settings(authority.root / "broker.pem", client_auth="required")}
    with InProcessCluster(brokers=1, settings=settings) as running:
        running.create_topic("t")
        yield running


@pytest.fixture(autouse=True)
def _it_serves_on(cluster: InProcessCluster) -> Iterator[None]:
    yield
    cluster.produce("t", ["one more"])


def start(settings: Mapping[str, str], root: Path) -> None:
    BrokerServer(
        BrokerOptions(
            broker_id=BrokerId(1),
            host="127.0.0.1",
            log_dirs=(str(root / "logs"),),
            zookeeper="127.0.0.1:1",
            config=BrokerConfig.parse({**ALL_SSL, **settings}),
        )
    )


CERTIFICATES = [
    ("an expired certificate", ("127.0.0.1",), {"not_after": NOW - DAY}),
    (
        "a certificate that is not valid yet",
        ("127.0.0.1",),
        {"not_before": NOW + DAY, "not_after": NOW + 9 * DAY},
    ),
    ("a certificate without the advertised host", ("broker-1.example.org", "10.0.0.7"), {}),
]


@pytest.mark.parametrize(("wrong", "hosts", "terms"), CERTIFICATES, ids=[row[0] for row in CERTIFICATES])
def test_a_certificate_that_clients_would_refuse(
    wrong: str,
    hosts: tuple[str, ...],
    terms: dict[str, Any],
    authority: Authority,
    case: Case,
    refused: Refused,
    tmp_path: Path,
) -> None:
    key_store = authority.issue("wrong", *hosts, **terms)
    error = refused(lambda: start(authority.settings(key_store), tmp_path))
    case(wrong, "broker's start", readable(error), "", {key_store: "broker.pem"})


def test_a_certificate_that_other_brokers_would_refuse(
    authority: Authority, case: Case, refused: Refused, tmp_path: Path
) -> None:
    others = Authority(tmp_path / "others")
    key_store = authority.root / "broker.pem"
    settings = authority.settings(key_store) | {"ssl.truststore.location": str(others.file)}
    error = refused(lambda: start(settings, tmp_path))
    case(
        "a trust store without the brokers' own authority",
        "broker's start",
        error,
        "",
        {key_store: "broker.pem"},
    )


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def wrong_key(authority: Authority, path: Path) -> dict[str, str]:
    key, chain = (authority.issue(name).read_text().partition("-----BEGIN CERT") for name in ("a", "b"))
    path.write_text(key[0] + chain[1] + chain[2])
    return {}


def encrypted_key(authority: Authority, path: Path) -> dict[str, str]:
    openssl("pkey", "-aes256", "-passout", "pass:right", "-in", authority.issue("a"), "-out", path)
    with path.open("a") as file:
        _, begin, chain = (authority.root / "a.pem").read_text().partition("-----BEGIN CERT")
        file.write(begin + chain)
    return {}


def encrypted_store(authority: Authority, path: Path) -> dict[str, str]:
    openssl("pkcs12", "-export", "-passout", "pass:right", "-in", authority.issue("a"), "-out", path)
    return {"ssl.keystore.password": "${env:WRONG}"}


def jks(authority: Authority, path: Path) -> dict[str, str]:
    path.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x00")
    return {}


def nothing(authority: Authority, path: Path) -> dict[str, str]:
    return {}


KEY_STORES = [
    ("a key that is not the certificate's", wrong_key),
    ("an encrypted key, and no password", encrypted_key),
    ("another password than the key store's", encrypted_store),
    ("a key store of Java's own kind", jks),
    ("a key store that is not there", nothing),
]


@pytest.mark.parametrize(("wrong", "make"), KEY_STORES, ids=[row[0] for row in KEY_STORES])
def test_a_key_store_that_cannot_be_used(
    wrong: str,
    make: Callable[[Authority, Path], dict[str, str]],
    authority: Authority,
    case: Case,
    refused: Refused,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WRONG", "wrong")
    path = tmp_path / "broker.pem"
    settings = {**authority.settings(path), **make(authority, path)}
    error = refused(lambda: start(settings, tmp_path))
    case(wrong, "broker's start", error, "", {tmp_path: "/etc/sparklog"})


def dial(cluster: InProcessCluster, connector: Connector, host: str = "127.0.0.1") -> None:
    node = cluster.brokers[1].node
    with connector.open(host, node.port, client_id="bad-input", timeout_ms=10_000) as connection:
        connection.call(MetadataRequest(topics=[]), timeout_ms=10_000)


def client_of(cluster: InProcessCluster, **more: str) -> Connector:
    """A client with the brokers' settings, but for ``more``: without ``ssl.``, with ``_`` for each dot."""
    given = {name: str(value) for name, value in cluster.config.given.items() if name.startswith("ssl.")}
    changed = {f"ssl.{name.replace('_', '.')}": text for name, text in more.items()}
    return connector_to(BrokerConfig.parse({**ALL_SSL, **given, **changed}), "SSL")


def test_an_authority_that_the_client_does_not_know(
    cluster: InProcessCluster, case: Case, refused: Refused, tmp_path: Path
) -> None:
    others = Authority(tmp_path)
    error = refused(lambda: dial(cluster, client_of(cluster, truststore_location=str(others.file))))
    text = re.sub(r"authority \(.*?\) that", "authority (CN=Our authority) that", str(error))
    port = {cluster.brokers[1].node.port: "9092"}
    case("an authority that the client does not know", "sparklog's client", text, "", port)


def test_a_host_that_the_certificate_does_not_name(
    cluster: InProcessCluster, case: Case, refused: Refused
) -> None:
    error = refused(lambda: dial(cluster, client_of(cluster), "localhost"))
    port = {cluster.brokers[1].node.port: "9092"}
    case("a host that the certificate does not name", "sparklog's client", error, "", port)


def test_a_client_without_a_certificate(
    cluster: InProcessCluster,
    authority: Authority,
    case: Case,
    refused: Refused,
    logged: Callable[[str], str],
) -> None:
    """The broker speaks last in a handshake of TLS 1.3: the client's first request fails."""
    trusting = tls_settings_of_client({"ssl.truststore.location": str(authority.file)})
    error = refused(lambda: dial(cluster, Connector(client_side(trusting))))
    port = {cluster.brokers[1].node.port: "9092"}
    wrong = "no certificate, where `ssl.client.auth` is `required`"
    case(wrong, "sparklog's client", error, "", port)
    case(wrong, "broker's log", readable(logged("it has no certificate")))


def test_a_client_in_the_clear_at_a_port_with_tls(
    cluster: InProcessCluster, case: Case, refused: Refused, logged: Callable[[str], str]
) -> None:
    error = refused(lambda: dial(cluster, Connector()))
    wrong = "a client in the clear at a port with TLS"
    case(wrong, "sparklog's client", error, "", {cluster.brokers[1].node.port: "9092"})
    case(wrong, "broker's log", readable(logged("it sent bytes in the clear to a port with TLS")))


def test_a_client_with_tls_at_a_port_in_the_clear(
    cluster: InProcessCluster, brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    error = refused(lambda: dial(brokers, client_of(cluster)))
    port = {brokers.brokers[1].node.port: "9092"}
    case("a client with TLS at a port in the clear", "sparklog's client", error, "", port)


def test_a_client_that_leaves_in_the_middle_of_its_handshake(
    cluster: InProcessCluster, case: Case, logged: Callable[[str], str]
) -> None:
    with socket.create_connection(("127.0.0.1", cluster.brokers[1].node.port)) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
    wrong = "a client that leaves in the middle of its handshake"
    case(wrong, "broker's log", readable(logged("it left in the middle")), "one that stays has ten seconds")


def test_a_key_store_of_which_only_half_is_written(
    cluster: InProcessCluster,
    authority: Authority,
    case: Case,
    logged: Callable[[str], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path, whole = authority.root / "broker.pem", (authority.root / "broker.pem").read_text()
    connector = client_of(cluster, keystore_location=str(authority.root / "client.pem"))
    path.write_text(whole[: len(whole) // 3])
    try:
        until(lambda: dial(cluster, connector) or "until this is mended" in caplog.text, "a warning")
    finally:
        path.write_text(whole)
    case(
        "a key store of which only half is written",
        "broker's log",
        logged("until this is mended"),
        "move a whole file into its place",
        {path: "broker.pem"},
    )
