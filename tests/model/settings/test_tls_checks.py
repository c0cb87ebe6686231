"""A broker's settings of TLS fit its listeners, have no literal secret, and are fixed while it runs."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig, check_broker_settings, check_dynamic_settings
from sparklog.model.settings.promises import refuse_changes_of_security
from sparklog.model.settings.tls_rows import TLS_NAMES
from sparklog.model.settings.tls_settings import ClientAuth, StoreFile

TWO = {
    "listeners": "PLAINTEXT://:0,OUTSIDE://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
    "ssl.keystore.location": "/keys",
}
PREFIX = "listener.name.outside."
PLANTED = "planted-password"


def test_settings_of_tls_act_without_a_word() -> None:
    given = {
        **TWO,
        "ssl.keystore.password": "${env:STORE}",
        "ssl.truststore.location": "/authorities",
        f"{PREFIX}ssl.client.auth": "required",
        f"{PREFIX}ssl.enabled.protocols": "TLSv1.3",
        "ssl.cipher.suites": "",
    }
    checked = check_broker_settings(given)
    assert (checked.warnings, checked.ignored) == ((), {})
    settings = BrokerConfig.parse(given).tls("OUTSIDE")
    assert isinstance(settings.key_store, StoreFile)
    assert settings.key_store.location == "/keys"
    assert (settings.client_auth, settings.versions) == (ClientAuth.REQUIRED, ("TLSv1.3",))


def test_settings_of_tls_that_no_listener_has_a_use_for_are_warned_of() -> None:
    given = {"ssl.keystore.location": "/keys", "ssl.client.auth": "required"}
    (warning,) = check_broker_settings(given).warnings
    assert warning.startswith(
        "no listener speaks TLS, so that ssl.client.auth, ssl.keystore.location has no effect"
    )


def test_metrics_over_tls_have_the_stores_of_all_listeners_and_no_listeners_client_auth() -> None:
    given = {
        "ssl.keystore.location": "/keys",
        "ssl.truststore.location": "/authorities",
        "ssl.client.auth": "none",
        "metrics.ssl.enable": "true",
        "metrics.ssl.client.auth": "required",
    }
    assert check_broker_settings(given).warnings == ()
    settings = BrokerConfig.parse(given).tls_of_metrics()
    assert settings is not None
    assert settings.client_auth is ClientAuth.REQUIRED
    assert BrokerConfig.parse({**TWO, "ssl.client.auth": "none"}).tls_of_metrics() is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "metrics.ssl.enable=true: no certificate to serve metrics with; set ssl.keystore.location"),
        (
            {"ssl.keystore.location": "/keys", "metrics.ssl.client.auth": "required"},
            "metrics.ssl.client.auth=required: no authority whose certificates count; name it in",
        ),
        (
            {"ssl.keystore.location": "/keys", "metrics.ssl.client.auth": "always"},
            "metrics.ssl.client.auth='always': must be one of none, requested, required",
        ),
    ],
)
def test_metrics_over_tls_that_cannot_be_are_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings({"metrics.ssl.enable": "true", **given})
    assert str(refused.value).startswith(problem)


def test_certificates_for_metrics_in_the_clear_are_warned_of() -> None:
    (warning,) = check_broker_settings({"metrics.ssl.client.auth": "required"}).warnings
    assert warning == "metrics.ssl.client.auth has no effect without metrics.ssl.enable=true"


def test_a_setting_of_a_listener_in_the_clear_is_warned_of_beside_one_with_tls() -> None:
    name = "listener.name.plaintext.ssl.client.auth"
    (warning,) = check_broker_settings({**TWO, name: "required"}).warnings
    assert warning.startswith(f"{name} has no effect, because its listener is in the clear: map it to SSL")


@pytest.mark.parametrize("store", [{}, {f"{PREFIX}ssl.truststore.location": ""}])
def test_certificates_of_the_systems_authorities_are_warned_of(store: dict[str, str]) -> None:
    general = {"ssl.truststore.location": "/authorities"} if store else {}
    given = {**TWO, **general, **store, f"{PREFIX}ssl.client.auth": "required"}
    (warning,) = check_broker_settings(given).warnings
    assert warning.startswith("listener OUTSIDE accepts the certificates of all authorities that this system")


@pytest.mark.parametrize(
    "name", ["ssl.keystore.password", "ssl.keystore.key", "ssl.key.password", "ssl.truststore.password"]
)
@pytest.mark.parametrize("text", [PLANTED, f"{PLANTED}${{env:A}}", f"${{env:A}} {PLANTED}"])
@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_a_secret_of_a_broker_is_a_reference_or_refused_unseen(prefix: str, name: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings({**TWO, prefix + name: text})
    assert str(refused.value).startswith(f"{prefix}{name}=[hidden]: it is a secret, and settings of brokers")
    assert PLANTED not in str(refused.value)


def test_a_misspelt_reference_is_refused_with_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.key\.password: a reference names the source 'evn'"):
        check_broker_settings({**TWO, "ssl.key.password": "${evn:A}"})


def test_certificates_are_no_secret() -> None:
    given = {
        **TWO,
        "ssl.keystore.location": "",
        "ssl.keystore.key": "${env:KEY}",
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
        "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----",
    }
    assert check_broker_settings(given).warnings == ()


@pytest.mark.parametrize("prefix", ["listener.name.outsid.", "listener.name.OUTSIDE."])
def test_a_prefix_that_no_listener_has_is_refused_with_those_that_there_are(prefix: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings({**TWO, f"{prefix}ssl.client.auth": "required"})
    assert str(refused.value) == (
        f"{prefix}ssl.client.auth: no listener has this prefix, and listeners have listener.name.plaintext., "
        "listener.name.outside.; correct it"
    )


def test_a_listener_that_speaks_tls_needs_a_certificate_and_good_settings() -> None:
    with pytest.raises(ConfigError, match="listener OUTSIDE speaks TLS and has no certificate"):
        check_broker_settings({**TWO, "ssl.keystore.location": ""})
    with pytest.raises(
        ConfigError, match=r"listener\.name\.outside\.ssl\.client\.auth='all': must be one of none"
    ):
        check_broker_settings({**TWO, f"{PREFIX}ssl.client.auth": "all"})
    with pytest.raises(
        ConfigError, match=r"ssl\.endpoint\.identification\.algorithm=ldaps: it must be https"
    ):
        check_broker_settings({"ssl.endpoint.identification.algorithm": "ldaps"})


@pytest.mark.parametrize(
    "name",
    [
        *sorted(TLS_NAMES),
        f"{PREFIX}ssl.keystore.location",
        "ssl.provider",
        "sasl.jaas.config",
        "listener.name.a.scram-sha-256.sasl.jaas.config",
    ],
)
def test_settings_of_security_are_fixed_while_brokers_run(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        refuse_changes_of_security(["log.retention.ms", name])
    assert str(refused.value).startswith(
        f"{name} cannot be changed while brokers run, because whoever may change"
    )


def test_other_settings_may_change() -> None:
    refuse_changes_of_security(["log.retention.ms", "max.connections"])


@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_what_another_tool_stored_for_brokers_that_run_is_ignored_with_a_warning(prefix: str) -> None:
    config = BrokerConfig.parse(TWO)
    stored = {f"{prefix}ssl.keystore.location": "/theirs", f"{prefix}ssl.keystore.password": PLANTED}
    checked = check_dynamic_settings(stored)
    assert checked.warnings == tuple(
        f"the dynamic setting {name} is ignored: it is read only at start" for name in stored
    )
    assert config.with_dynamic(stored).tls("OUTSIDE") == config.tls("OUTSIDE")
