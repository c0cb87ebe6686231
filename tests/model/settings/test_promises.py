"""Settings that promise safety which sparklog does not give are refused; their neighbours are warned of."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import check_broker_settings


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        (
            "authorizer.class.name",
            "kafka.security.authorizer.AclAuthorizer",
            "kafka.security.authorizer.AclAuth",
        ),
        ("ssl.client.auth", "required", "required"),
        ("ssl.keystore.location", "/etc/keys.jks", "/etc/keys.jks"),
        ("ssl.keystore.type", "PEM", "PEM"),
        ("ssl.keystore.password", "secret", "[hidden]"),
        ("ssl.keystore.key", "secret", "[hidden]"),
        ("sasl.jaas.config", "secret", "[hidden]"),
        ("listener.name.external.ssl.client.auth", "required", "required"),
        ("listener.name.external.ssl.keystore.location", "/etc/keys.jks", "/etc/keys.jks"),
        ("listener.name.external.sasl.jaas.config", "secret", "[hidden]"),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", "secret", "[hidden]"),
    ],
)
def test_a_promise_of_safety_is_refused_with_the_remedy(name: str, value: str, shown: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings({name: value})
    text = str(refused.value)
    assert text.startswith(f"{name}={shown}")
    assert "leave it out, and let only those reach the brokers' ports whom you trust" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("ssl.client.auth", "none"),
        ("ssl.client.auth", "requested"),
        ("ssl.keystore.type", "JKS"),
        ("ssl.keystore.location", ""),
        ("ssl.truststore.location", "/etc/trusted.jks"),
        ("sasl.jaas.config", ""),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("sasl.kerberos.service.name", "kafka"),
        ("listener.name.external.ssl.protocol", "TLSv1.3"),
        ("listener.name.external.plain.sasl.server.callback.handler.class", "Mine"),
    ],
)
def test_defaults_of_kafka_and_what_promises_nothing_are_warned_of(name: str, value: str) -> None:
    (warning,) = check_broker_settings({name: value}).warnings
    assert warning.startswith(f"broker setting {name}={value} is accepted, but")


def test_a_misspelt_setting_behind_a_listeners_prefix_is_unknown() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown broker setting 'listener\.name\.external\.ssl\.protocoll'"
    ):
        check_broker_settings({"listener.name.external.ssl.protocoll": "TLSv1.3"})


@pytest.mark.parametrize(
    "name", ["ssl.truststore.password", "ssl.key.password", "listener.name.x.ssl.truststore.password"]
)
def test_a_warning_of_a_setting_without_effect_shows_no_password(name: str) -> None:
    (warning,) = check_broker_settings({name: "abc123"}).warnings
    assert f"{name}=[hidden] is accepted" in warning
