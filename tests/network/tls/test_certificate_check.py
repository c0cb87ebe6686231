"""A broker's start learns of its certificate what every client would find out."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from sparklog.model.errors import ConfigError
from sparklog.model.time import WallMs
from sparklog.network.tls.certificate_check import check_certificate, expiry_warning
from tests.network.tls.certificates import (
    AUTHORITY,
    NOW,
    OTHER_AUTHORITY,
    TOMORROW,
    YESTERDAY,
    issued,
    of_client,
    of_listener,
    pem_of,
    self_signed,
    written,
)

NOW_MS = WallMs(int(NOW.timestamp()) * 1000)
DAY_MS = 24 * 3_600_000


def problems(path: str, *hosts: str, is_for_brokers: bool = False, **more: str) -> tuple[str, ...]:
    settings = of_listener(path, **more)
    return check_certificate(settings, hosts, NOW_MS, is_for_brokers=is_for_brokers).problems


def test_a_certificate_that_serves_has_no_problem_and_a_last_day(tmp_path: Path) -> None:
    path = written(
        tmp_path, "keys.pem", pem_of(issued("*.example.org", "::1", "10.0.0.7", not_after=TOMORROW))
    )
    check = check_certificate(of_listener(path), ["broker-1.example.org", "::1", "10.0.0.7"], NOW_MS)
    assert check.problems == ()
    assert check.expires_at_ms == WallMs(int(TOMORROW.timestamp()) * 1000)


def test_a_key_that_others_may_open_is_no_reason_not_to_start(tmp_path: Path) -> None:
    path = written(tmp_path, "keys.pem", pem_of(issued()))
    assert check_certificate(of_listener(path), [], NOW_MS).exposure is None
    Path(path).chmod(0o644)
    check = check_certificate(of_listener(path), [], NOW_MS)
    assert check.problems == ()
    assert (check.exposure or "").startswith(f"ssl.keystore.location: others may open {path}, as its mode is")


def test_dates_are_judged_first(tmp_path: Path) -> None:
    expired = written(tmp_path, "expired.pem", pem_of(issued(not_after=YESTERDAY)))
    (problem,) = problems(expired, "elsewhere")
    assert problem.startswith(f"ssl.keystore.location={expired}: the certificate of OU=")
    assert problem.endswith(f" has expired on {YESTERDAY:%Y-%m-%d %H:%M:%S} UTC; renew it")
    early = written(tmp_path, "early.pem", pem_of(issued(not_before=TOMORROW)))
    (problem,) = problems(early)
    assert f"is not valid before {TOMORROW:%Y-%m-%d %H:%M:%S} UTC; wait, or set this machine's" in problem
    assert problem.endswith(f"which says {NOW:%Y-%m-%d %H:%M:%S} UTC")


def test_hosts_that_are_missing_are_named_with_those_that_it_has(tmp_path: Path) -> None:
    path = written(tmp_path, "keys.pem", pem_of(issued("broker-1", "10.0.0.1")))
    (problem,) = problems(path, "broker-1", "broker-2", "10.0.0.1", "10.0.0.2")
    assert "is for broker-1, 10.0.0.1, and not for broker-2, 10.0.0.2, which the broker advertises" in problem
    assert problems(path, "elsewhere", endpoint_identification_algorithm="") == ()


def test_without_alternative_names_the_common_name_counts(tmp_path: Path) -> None:
    path = written(tmp_path, "keys.pem", self_signed(ExtendedKeyUsageOID.SERVER_AUTH, "broker-1"))
    assert problems(path, "broker-1") == ()
    (problem,) = problems(path, "broker-2")
    assert "is for broker-1, and not for broker-2" in problem


def test_a_certificate_that_no_client_accepts_is_refused_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "keys.pem", self_signed(ExtendedKeyUsageOID.CLIENT_AUTH))
    with pytest.raises(ConfigError, match="no client accepts it: unsuitable certificate purpose"):
        problems(path, "localhost")


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_brokers_must_accept_each_other(tmp_path: Path, client_auth: str) -> None:
    path = written(tmp_path, "keys.pem", pem_of(issued()))
    own, other = (
        written(tmp_path, name, authority.cert_pem.bytes())
        for name, authority in (("own.pem", AUTHORITY), ("other.pem", OTHER_AUTHORITY))
    )
    more = {"client_auth": client_auth, "is_for_brokers": True}
    assert problems(path, "localhost", truststore_location=own, **more) == ()
    (problem,) = problems(path, "localhost", truststore_location=other, **more)
    assert "brokers would not accept this certificate of each other (" in problem
    assert problem.endswith(
        "the trust store must have its authority, and it must be made for servers and clients alike"
    )


def test_a_certificate_for_servers_alone_does_for_brokers_that_show_none(tmp_path: Path) -> None:
    content = self_signed(ExtendedKeyUsageOID.SERVER_AUTH)
    path = written(tmp_path, "keys.pem", content)
    trust = written(tmp_path, "trust.pem", content[content.index(b"-----BEGIN CERTIFICATE") :])
    assert problems(path, "localhost", truststore_location=trust, is_for_brokers=True) == ()
    (problem,) = problems(
        path, "localhost", truststore_location=trust, client_auth="required", is_for_brokers=True
    )
    assert "unsuitable certificate purpose" in problem


def test_a_side_without_a_certificate_has_nothing_to_check() -> None:
    with pytest.raises(ConfigError, match=r"needs ssl\.keystore\.location, or a key in the settings"):
        check_certificate(of_client(), [], NOW_MS)


@pytest.mark.parametrize(
    ("days", "warning"),
    [
        (31, None),
        (30, "the certificate expires on "),
        (0, "the certificate expires on "),
        (-1, "the certificate has expired on "),
    ],
)
def test_an_end_is_warned_of_thirty_days_before(days: int, warning: str | None) -> None:
    found = expiry_warning(WallMs(NOW_MS + days * DAY_MS), NOW_MS)
    if warning is None:
        assert found is None
        return
    when = NOW + timedelta(days=days)
    assert found == f"{warning}{when:%Y-%m-%d %H:%M:%S} UTC: renew it, and replace its file"
