"""Clients connect over TLS by Kafka's properties, and where they are refused they end at once and say why."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import SecurityRefused
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.client.security.connecting import connector_of, connector_of_many_hosts
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition
from sparklog.model.settings.tls_settings import tls_settings_of_listener
from sparklog.network.dialing.connector import IN_THE_CLEAR
from sparklog.network.tls.from_settings import server_side
from tests.certificates import Authority
from tests.closed_files import write_closed

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
BatchOf = Callable[..., bytes]
Serve = Callable[..., Any]
Properties = dict[str, str]
TP = TopicPartition("t", 0)
SSL = {"security.protocol": "SSL"}

pytestmark = pytest.mark.timeout(60)  # a client that tried again would do so for ten minutes


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def trusting(authority: Authority) -> Properties:
    """Of a client that knows the authority, and has no certificate."""
    return {**SSL, "ssl.truststore.location": str(authority.file)}


@pytest.fixture
def serve(authority: Authority, start_fake: Start) -> Serve:
    """Starts a broker with TLS; ``settings`` without ``ssl.``."""

    def serve(key_store: Path | None = None, **settings: str) -> Any:
        given = authority.settings(key_store or authority.issue("broker"), **settings)
        fake = start_fake(1, server_side(tls_settings_of_listener(given, "SSL")))
        fake.create_topic("t")
        return fake

    return serve


@pytest.fixture
def refusal(client_of: Connect) -> Callable[[Any, Properties], str]:
    """What a client says that a broker refuses, or that refuses a broker."""

    def refusal(fake: Any, properties: Properties) -> str:
        client = client_of(fake, connector=connector_of(properties), retry_timeout_ms=600_000)
        with pytest.raises(SecurityRefused) as caught:
            client.metadata()
        return str(caught.value)

    return refusal


def test_without_a_protocol_a_client_dials_in_the_clear() -> None:
    assert connector_of({}) is IN_THE_CLEAR
    assert connector_of_many_hosts({"security.protocol": "PLAINTEXT", "group.id": "g"}) is IN_THE_CLEAR


def test_records_are_written_and_read_over_tls(
    serve: Serve, trusting: Properties, client_of: Connect, batch_of: BatchOf
) -> None:
    client = client_of(serve(), connector=connector_of(trusting))
    with BatchProducer(client) as producer:
        for number in range(20):
            producer.send(TP, batch_of(str(number) * 3_000))
    values = [value for rows in read_range(client, TP, 0, 20) for value in rows.column("value").to_pylist()]
    assert [value.decode() for value in values] == [str(number) * 3_000 for number in range(20)]
    assert Admin(client).list_topics() == ["t"]


def test_a_client_shows_its_certificate_with_its_key_by_references(
    serve: Serve, trusting: Properties, authority: Authority, client_of: Connect, tmp_path: Path
) -> None:
    key, _, chain = authority.issue("alice").read_text().partition("-----BEGIN CERTIFICATE-----")
    write_closed(tmp_path / "alice.key", key)
    inline = {
        "ssl.keystore.key": f"${{directory:{tmp_path}:alice.key}}",
        "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE-----{chain}",
    }
    client = client_of(serve(client_auth="required"), connector=connector_of({**trusting, **inline}))
    assert list(client.metadata().brokers) == [1]


def test_a_broker_that_wants_a_certificate_refuses_a_client_without_one(
    serve: Serve, trusting: Properties, refusal: Callable[..., str]
) -> None:
    says = refusal(serve(client_auth="required"), trusting)
    assert "it asks for a client certificate: set ssl.keystore.location" in says


def test_a_broker_refuses_a_client_of_another_authority(
    serve: Serve, trusting: Properties, refusal: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").issue("stranger")
    says = refusal(serve(client_auth="required"), {**trusting, "ssl.keystore.location": str(stranger)})
    assert "it does not know the authority of this side's certificate" in says


def test_a_client_refuses_a_broker_of_another_authority(
    serve: Serve, refusal: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    says = refusal(serve(), {**SSL, "ssl.truststore.location": str(other.file)})
    assert "from an authority" in says
    assert "ssl.truststore.location" in says


def test_a_client_refuses_a_broker_with_another_name_unless_it_shall_not_look(
    serve: Serve,
    authority: Authority,
    trusting: Properties,
    refusal: Callable[..., str],
    client_of: Connect,
) -> None:
    fake = serve(authority.issue("elsewhere", "broker-1.example.org", "10.0.0.7"))
    assert "is for broker-1.example.org, 10.0.0.7, not for 127.0.0.1" in refusal(fake, trusting)
    unchecked = connector_of({**trusting, "ssl.endpoint.identification.algorithm": ""})
    assert list(client_of(fake, connector=unchecked).metadata().brokers) == [1]


def test_a_port_without_tls_is_told(
    start_fake: Start, trusting: Properties, refusal: Callable[..., str]
) -> None:
    assert "it speaks no TLS" in refusal(start_fake(), trusting)


def test_a_file_that_is_missing_on_one_of_many_hosts_is_told_with_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "executor-3")
    missing = {**SSL, "ssl.truststore.location": str(tmp_path / "none.pem")}
    with pytest.raises(ConfigError, match=rf"^ssl\.truststore\.location.*{tmp_path}/none\.pem"):
        connector_of(missing)
    with pytest.raises(ConfigError, match=rf"^on host executor-3: ssl.*{tmp_path}/none\.pem"):
        connector_of_many_hosts(missing)


def test_an_own_certificate_that_has_expired_is_told_before_any_connection(
    authority: Authority, trusting: Properties
) -> None:
    key_store = authority.issue("late", not_after=datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(ConfigError, match="expired"):
        connector_of({**trusting, "ssl.keystore.location": str(key_store)})
