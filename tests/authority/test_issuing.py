"""Certificates of an authority of one's own, as TLS and OpenSSL judge them."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from sparklog.authority.issuing import Issued, check_host, issue, new_authority
from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.tls_settings import ClientAuth, InlineKey, TlsSettings
from sparklog.model.time import WallMs
from sparklog.network.tls.certificate_check import check_certificate

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
HOSTS = ("broker-1.example.com", "10.0.0.7", "::1", "*.example.com")


@pytest.fixture(scope="module")
def authority():
    return new_authority("an authority", NOW)


def certificate_of(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate.encode())


def settings_of(issued: Issued, authority: Issued) -> TlsSettings:
    return TlsSettings(
        key_store=InlineKey(Secret(issued.key, "key"), Secret(issued.certificate, "chain")),
        trust_store=Secret(authority.certificate, "trust"),
        client_auth=ClientAuth.REQUIRED,
    )


def test_brokers_accept_a_certificate_of_each_other_at_each_of_its_hosts(authority) -> None:
    now_ms = WallMs(int(datetime.now(UTC).timestamp() * 1_000))
    made = new_authority("of today", datetime.now(UTC))
    broker = issue(made, "broker", HOSTS, datetime.now(UTC))
    hosts = ("broker-1.example.com", "10.0.0.7", "::1", "any.example.com")
    check = check_certificate(settings_of(broker, made), hosts, now_ms, is_for_brokers=True)
    assert check.problems == ()
    other = check_certificate(settings_of(broker, made), ("10.0.0.8",), now_ms)
    assert "not for 10.0.0.8" in other.problems[0]


def test_a_certificate_of_another_authority_is_not_accepted() -> None:
    now = datetime.now(UTC)
    broker = issue(new_authority("one", now), "broker", HOSTS, now)
    now_ms = WallMs(int(now.timestamp() * 1_000))
    found = check_certificate(settings_of(broker, new_authority("one", now)), (), now_ms, is_for_brokers=True)
    assert "brokers would not accept" in found.problems[0]


def test_each_issue_has_a_new_key_and_serial_number(authority) -> None:
    first, second = (issue(authority, "broker", (), NOW) for _ in range(2))
    assert first.key != second.key
    assert certificate_of(first).serial_number != certificate_of(second).serial_number


def test_a_certificate_lasts_a_year_but_no_longer_than_its_authority(authority) -> None:
    ends = certificate_of(authority).not_valid_after_utc
    assert certificate_of(issue(authority, "a", (), NOW)).not_valid_after_utc == NOW + timedelta(days=365)
    late = ends - timedelta(days=3)
    assert certificate_of(issue(authority, "a", (), late)).not_valid_after_utc == ends
    with pytest.raises(ConfigError, match="the authority has expired on 2036-11-26"):
        issue(authority, "a", (), ends)


def test_an_authority_issues_no_authorities(authority) -> None:
    constraints = certificate_of(authority).extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    of_broker = certificate_of(issue(authority, "a", (), NOW))
    assert not of_broker.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_key_is_shown_nowhere(authority) -> None:
    assert "PRIVATE" in authority.key
    assert "PRIVATE" not in repr(authority)


def test_another_key_than_the_certificate_names_issues_nothing(authority) -> None:
    other = new_authority("other", NOW)
    with pytest.raises(ConfigError, match="does not belong to its certificate"):
        issue(Issued(authority.certificate, other.key), "a", (), NOW)
    with pytest.raises(ConfigError, match="is damaged"):
        issue(Issued(authority.certificate, authority.key[:80]), "a", (), NOW)


@pytest.mark.parametrize("host", [*HOSTS, "localhost", "a", "a_b.c", "xn--bcher-kva.example"])
def test_names_and_addresses_of_hosts_are_taken(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize(
    "host",
    ["", "a:9092", "10.0.0", "10.0.0.256", "a..b", "-a", "bücher.example", "a b", "fe80::1%eth0", "*", "a/b",
     ".".join(["a" * 60] * 5), "a\n"],
)  # fmt: skip
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="is no name and no address of a host"):
        check_host(host)
