"""A real ZooKeeper that speaks TLS and nothing else, and what its clients are told."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificates

from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings
from sparklog.model.zookeeper import AccessRefused, ConnectionLost
from sparklog.model.zookeeper_access import NodeAccess
from sparklog.zookeeper.configured_session import new_session, tls_of
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.embedded_tls import EmbeddedTls
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from sparklog_runtime.start.reachable import zookeeper_problems
from tests.certificates import Authority

pytestmark = pytest.mark.integration

TIMEOUT_MS = 15_000
IMPATIENT_MS = 300
PATIENCES_MS = (IMPATIENT_MS, 2_000, TIMEOUT_MS)
"""A handshake on a busy machine may take longer than the first; the reason is known once it has failed."""
NO_REASON = "check that it runs there and that the address is right"
PASSWORD = "of-the-store"


def settings_of(**given: str) -> ZooKeeperSettings:
    named = {f"zookeeper.ssl.{name.replace('_', '.')}": value for name, value in given.items()}
    return BrokerConfig.parse({**named, "zookeeper.ssl.client.enable": "true"}).zookeeper


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.issue("zookeeper", "127.0.0.1")
    made.issue("elsewhere", "10.1.2.3")
    return made


@pytest.fixture(scope="module")
def good(authority: Authority) -> dict[str, str]:
    return {
        "keystore_location": str(authority.root / "zookeeper.pem"),
        "truststore_location": str(authority.file),
    }


def embedded(root: Path, settings: ZooKeeperSettings) -> EmbeddedZooKeeper:
    assert settings.tls is not None
    return EmbeddedZooKeeper(root, tls=EmbeddedTls(settings.tls))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, good: dict[str, str]) -> Iterator[EmbeddedZooKeeper]:
    with embedded(tmp_path_factory.mktemp("zookeeper"), settings_of(**good)) as running:
        yield running


def refusal(server: EmbeddedZooKeeper, settings: ZooKeeperSettings) -> str:
    """Why a client over TLS is refused."""
    for patience_ms in PATIENCES_MS:
        said = no_answer(server, settings, patience_ms)
        if NO_REASON not in said:
            break
    return said


def no_answer(server: EmbeddedZooKeeper, settings: ZooKeeperSettings, patience_ms: int = IMPATIENT_MS) -> str:
    with pytest.raises(ConnectionLost) as refused:
        new_session(server.connect_string, settings, TIMEOUT_MS).start(patience_ms)
    return str(refused.value)


def test_nodes_large_and_many_come_over_tls(server: EmbeddedZooKeeper, good: dict[str, str]) -> None:
    large = bytes(range(256)) * 2_000
    with new_session(f"{server.connect_string}/a/b", settings_of(**good), TIMEOUT_MS) as session:
        session.start(TIMEOUT_MS)
        session.create("/large", large)
        for number in range(20):
            session.create(f"/{number}", b"%d" % number)
        assert session.get("/large").data == large  # type: ignore[union-attr]
        found = session.get_many([f"/{number}" for number in range(20)] * 30)
        assert [node.data for node in found if node] == [b"%d" % number for number in range(20)] * 30


def test_a_digest_goes_over_tls_and_a_session_survives_the_server(
    tmp_path: Path, good: dict[str, str]
) -> None:
    tls = tls_of(settings_of(**good))
    ours = NodeAccess(lambda: "broker:right", closed_acl)
    with ExitStack() as running:
        server = running.enter_context(embedded(tmp_path / "zookeeper", settings_of(**good)))
        session = running.enter_context(KazooAdmin(server.connect_string, 60_000, access=ours, tls=tls))
        session.start(TIMEOUT_MS)
        session.create("/login_secret", b"1")
        before = session.session_id
        server.kill()
        server.start()
        session.set("/login_secret", b"2")
        assert session.session_id == before
        stranger = running.enter_context(KazooAdmin(server.connect_string, TIMEOUT_MS, tls=tls))
        stranger.start(TIMEOUT_MS)
        with pytest.raises(AccessRefused):  # though it shows the same certificate
            stranger.get("/login_secret")


def test_the_keys_are_in_files_that_nobody_else_reads(server: EmbeddedZooKeeper) -> None:
    assert (server.data_dir / "tls-key.pem").stat().st_mode & 0o777 == 0o600
    config = (server.data_dir / "zoo.cfg").read_text()
    assert "\nclientPort=" not in config, "nothing listens in the clear"


@pytest.mark.parametrize("is_key_store", [True, False])
def test_a_store_may_be_pkcs12_with_a_password(
    tmp_path: Path, authority: Authority, good: dict[str, str], is_key_store: bool
) -> None:
    pem = Path(good["keystore_location"]).read_bytes()
    key, chain = load_pem_private_key(pem, None), load_pem_x509_certificates(pem)
    store, password = tmp_path / "store.p12", tmp_path / "password"
    encryption = BestAvailableEncryption(PASSWORD.encode())
    authorities = load_pem_x509_certificates(authority.file.read_bytes())
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(b"zookeeper", key, chain[0], chain[1:], encryption)  # type: ignore[arg-type]
        if is_key_store
        else pkcs12.serialize_key_and_certificates(None, None, None, authorities, encryption)
    )
    password.write_text(PASSWORD)
    for file in (store, password):
        file.chmod(0o600)
    name = "keystore" if is_key_store else "truststore"
    reference = f"${{directory:{tmp_path}:password}}"
    settings = settings_of(**{**good, f"{name}_location": str(store), f"{name}_password": reference})
    with ExitStack() as running:
        server = running.enter_context(embedded(tmp_path / "zookeeper", settings))
        session = running.enter_context(new_session(server.connect_string, settings, TIMEOUT_MS))
        session.start(TIMEOUT_MS)
        session.create("/a")
    assert PASSWORD not in (tmp_path / "zookeeper" / "zoo.cfg").read_text()


def test_an_authority_that_is_not_trusted_is_named(
    server: EmbeddedZooKeeper, good: dict[str, str], tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "other")
    said = refusal(server, settings_of(**{**good, "truststore_location": str(stranger.file)}))
    assert "its certificate is from an authority" in said
    assert "into zookeeper.ssl.truststore.location" in said


def test_a_client_without_a_certificate_learns_why(server: EmbeddedZooKeeper, good: dict[str, str]) -> None:
    del (without := dict(good))["keystore_location"]
    for versions in ("TLSv1.2", "TLSv1.3"):
        said = refusal(server, settings_of(**without, enabled_protocols=versions))
        assert "does not accept this side's certificate, or misses one" in said
        assert "zookeeper.ssl.keystore.location" in said


def test_a_certificate_for_another_host_is_refused_unless_names_are_not_checked(
    tmp_path: Path, authority: Authority, good: dict[str, str]
) -> None:
    wrong = {**good, "keystore_location": str(authority.root / "elsewhere.pem")}
    unchecked = settings_of(**wrong, endpoint_identification_algorithm="")
    with embedded(tmp_path / "zookeeper", unchecked) as server:
        said = refusal(server, settings_of(**good))
        assert "its certificate is for 10.1.2.3, not for 127.0.0.1" in said
        assert "zookeeper.ssl.endpoint.identification.algorithm" in said
        with new_session(server.connect_string, unchecked, TIMEOUT_MS) as session:
            session.start(TIMEOUT_MS)


def test_tls_at_a_port_in_the_clear_and_the_reverse_are_told(
    server: EmbeddedZooKeeper, zookeeper_server: EmbeddedZooKeeper, good: dict[str, str]
) -> None:
    assert "is this its port with TLS (secureClientPort)?" in refusal(zookeeper_server, settings_of(**good))
    assert no_answer(server, ZooKeeperSettings()).startswith("no ZooKeeper answered")
    assert zookeeper_problems(server.connect_string) == [
        f"{server.connect_string} does not answer; if that is a port with TLS, set "
        "zookeeper.ssl.client.enable=true"
    ]
    assert zookeeper_problems(server.connect_string, tls_of(settings_of(**good))) == []
    (problem,) = zookeeper_problems(zookeeper_server.connect_string, tls_of(settings_of(**good)))
    assert "is this its port with TLS" in problem


def test_a_server_that_stops_half_way_holds_nobody_for_long(good: dict[str, str]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        (problem,) = zookeeper_problems(address, tls_of(settings_of(**good)))
    assert "it did not end the handshake in time" in problem


def test_an_embedded_server_needs_a_certificate(good: dict[str, str]) -> None:
    del (without := dict(good))["keystore_location"]
    tls = settings_of(**without).tls
    assert tls is not None
    with pytest.raises(ConfigError, match=r"needs a certificate for 127\.0\.0\.1"):
        EmbeddedTls(tls)
