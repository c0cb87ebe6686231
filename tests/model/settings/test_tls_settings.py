"""The settings of TLS of one side: a listener's own before those of all, and what cannot be meant."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.tls_settings import (
    ClientAuth,
    InlineKey,
    StoreFile,
    TlsSettings,
    tls_settings_of_client,
    tls_settings_of_listener,
)

KEYS = {"ssl.keystore.location": "/keys"}
OWN = "listener.name.outside."


def test_a_client_without_settings_trusts_the_systems_authorities_and_compares_names() -> None:
    assert tls_settings_of_client({"security.protocol": "SSL", "bootstrap.servers": "h:1"}) == TlsSettings()
    assert TlsSettings().checks_host_names
    assert TlsSettings().versions == ("TLSv1.2", "TLSv1.3")


def test_a_listeners_own_settings_come_before_those_of_all() -> None:
    given = {
        **KEYS,
        "ssl.keystore.password": "${env:ALL}",
        "ssl.client.auth": "required",
        f"{OWN}ssl.keystore.location": "/own",
        f"{OWN}ssl.client.auth": "requested",
    }
    outside = tls_settings_of_listener(given, "OUTSIDE")
    assert outside.key_store == StoreFile(f"{OWN}ssl.keystore.location", "/own", Secret("${env:ALL}"))
    assert outside.client_auth is ClientAuth.REQUESTED
    inside = tls_settings_of_listener(given, "INSIDE")
    assert inside.key_store == StoreFile("ssl.keystore.location", "/keys", Secret("${env:ALL}"))
    assert inside.client_auth is ClientAuth.REQUIRED
    assert outside.key_store.password is not None
    assert outside.key_store.password.setting == "ssl.keystore.password"


def test_everything_that_may_be_set_is_read() -> None:
    settings = tls_settings_of_listener(
        {
            "ssl.keystore.key": "KEY",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.key.password": "PASSWORD",
            "ssl.truststore.certificates": "AUTHORITIES",
            "ssl.keystore.type": "pem",
            "ssl.truststore.type": "PEM",
            "ssl.endpoint.identification.algorithm": " ",
            "ssl.enabled.protocols": "TLSv1.3, TLSv1.2",
            "ssl.protocol": "TLS",
            "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
        },
        "SSL",
    )
    assert settings.key_store == InlineKey(Secret("KEY"), Secret("CHAIN"))
    assert (settings.key_password, settings.trust_store) == (Secret("PASSWORD"), Secret("AUTHORITIES"))
    assert not settings.checks_host_names
    assert (settings.versions, settings.cipher_suites) == (("TLSv1.2",), ("ECDHE-RSA-AES128-GCM-SHA256",))
    assert settings.principal_rules.name_of("CN=alice") == "alice"
    shown = repr(settings)
    assert [word for word in ("KEY-", "CHAIN", "PASSWORD", "AUTHORITIES") if word in shown] == []


def test_equal_settings_are_one_key() -> None:
    given = {"ssl.truststore.location": "/t", "ssl.truststore.password": "x", "ssl.key.password": "y"}
    assert len({tls_settings_of_client(given), tls_settings_of_client(dict(given))}) == 1
    assert tls_settings_of_client(given) != tls_settings_of_client({**given, "ssl.key.password": "z"})


@pytest.mark.parametrize("text", ["https", "HTTPS", " https "])
def test_host_names_are_compared_however_the_algorithm_is_written(text: str) -> None:
    assert tls_settings_of_client({"ssl.endpoint.identification.algorithm": text}).checks_host_names


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"ssl.keystore.location": ""}, "listener OUTSIDE speaks TLS and has no certificate: set"),
        ({"ssl.keystore.key": "k"}, "ssl.keystore.location=/keys: there is also ssl.keystore.key; leave"),
        ({"ssl.keystore.location": "", "ssl.keystore.key": "k"}, "without ssl.keystore.certificate.chain"),
        ({"ssl.keystore.location": "", f"{OWN}ssl.keystore.certificate.chain": "c"},
         f"{OWN}ssl.keystore.certificate.chain is given without ssl.keystore.key; set both"),
        ({"ssl.truststore.location": "/t", f"{OWN}ssl.truststore.certificates": "c"},
         f"ssl.truststore.location=/t: there is also {OWN}ssl.truststore.certificates"),
        ({f"{OWN}ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
         f"{OWN}ssl.enabled.protocols=TLSv1.1,TLSv1.2: it must have TLSv1.2 or TLSv1.3, or both"),
        ({"ssl.enabled.protocols": ""}, "ssl.enabled.protocols=: it must have"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol=SSLv3: it must be one of TLS, TLSv1.2, TLSv1.3"),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type=BKS: it must be one of JKS, PKCS12, PEM"),
        ({"ssl.truststore.type": "BKS"}, "ssl.truststore.type=BKS: it must be one of"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe: it must be one of none, requested"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "=ldaps: it must be https, or empty"),
        ({f"{OWN}ssl.principal.mapping.rules": "RULE:["}, f"{OWN}ssl.principal.mapping.rules=RULE:[: "),
        ({f"{OWN}ssl.cipher.suites": "X"}, f"{OWN}ssl.cipher.suites=X: 'X' is no cipher suite"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(more: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tls_settings_of_listener({**KEYS, **more}, "OUTSIDE")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("ssl.client.auth", "required", "ssl.client.auth=required: it is a setting of brokers; leave it out"),
        (
            "ssl.truststore.locaton",
            "/t",
            "unknown setting 'ssl.truststore.locaton'; did you mean ssl.truststore.loc",
        ),
        (
            "ssl.provider",
            "BCFIPS",
            "sparklog's TLS is that of OpenSSL, and it takes no such choice; leave it out",
        ),
    ],
)
def test_a_client_has_no_settings_of_brokers_nor_unknown_ones(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tls_settings_of_client({name: value})
    assert problem in str(refused.value)
    assert (
        tls_settings_of_client({"ssl.provider": "", "ssl.keymanager.algorithm": "SunX509"}) == TlsSettings()
    )
