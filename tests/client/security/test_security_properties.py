"""What a client's properties say of security is kept, or refused, and never left out in silence."""

import pytest

from sparklog.client.security.security_properties import (
    login_settings_of,
    protocol_of,
    security_properties,
    without_effect,
)
from sparklog.model.cluster_facts import SecurityProtocol
from sparklog.model.errors import ConfigError

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": "the module",
}


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        (None, SecurityProtocol.PLAINTEXT),
        ("", SecurityProtocol.PLAINTEXT),
        (" plaintext ", SecurityProtocol.PLAINTEXT),
        ("SSL", SecurityProtocol.SSL),
        ("ssl", SecurityProtocol.SSL),
    ],
)
def test_the_protocol_is_kafkas_in_any_case(text: str | None, protocol: SecurityProtocol) -> None:
    assert protocol_of({} if text is None else {"security.protocol": text}) is protocol


def test_the_protocol_may_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOW_TO_CONNECT", "SSL")
    assert protocol_of({"security.protocol": "${env:HOW_TO_CONNECT}"}) is SecurityProtocol.SSL


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        (
            {"security.protocol": "SLL"},
            r"^security\.protocol='SLL' is no .* SASL_SSL; did you mean SSL\?$",
        ),
        ({"security.protocol": "TLS"}, r"^security\.protocol='TLS' is no security protocol; there are"),
        (
            {"ssl.trustore.location": "f"},
            r"^ssl\.trustore\.location: no .*did you mean ssl\.truststore\.l",
        ),
        ({"security.protocol": "${env:NOT_SET}"}, r"^security\.protocol: \$\{env:NOT_SET\}: .* no variable"),
        ({"ssl.client.auth": "required"}, r"^ssl\.client\.auth: no client of Kafka has"),
        ({"security.protocl": "SSL"}, r"^security\.protocl: no .*did you mean security\.protocol\?$"),
        ({"security.protocol": "SSL", "security.providers": "X"}, r"^security\.providers: Java's providers"),
    ],
)
def test_what_is_unknown_or_cannot_be_kept_is_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        protocol_of(properties)


def test_other_properties_are_not_looked_at() -> None:
    given = {"group.id": "g", "no.such.name": "1", "ssl.key.password": "p", "security.protocol": "SSL"}
    assert security_properties(given) == {"ssl.key.password": "p", "security.protocol": "SSL"}
    assert protocol_of(given) is SecurityProtocol.SSL


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, None),
        ({"ssl.endpoint.identification.algorithm": ""}, None),
        ({"security.protocol": "SSL", "ssl.truststore.location": "f"}, None),
        (
            {"ssl.truststore.location": "f", "ssl.truststore.type": "PEM"},
            "ssl.truststore.location, ssl.truststore.type have no effect: connections are in the clear "
            "and without a login, as security.protocol is PLAINTEXT",
        ),
        (
            {"security.protocol": "SSL", "sasl.jaas.config": "x"},
            "sasl.jaas.config has no effect: connections are over TLS and without a login, as "
            "security.protocol is SSL",
        ),
        ({**LOGIN, "ssl.key.password": ""}, None),
        (
            {**LOGIN, "sasl.kerberos.service.name": "kafka"},
            "sasl.kerberos.service.name has no effect: connections are in the clear and with a login by "
            "sasl.mechanism alone, as security.protocol is SASL_PLAINTEXT",
        ),
    ],
)
def test_safety_that_is_asked_for_and_not_switched_on_is_told(
    properties: dict[str, str], words: str | None
) -> None:
    assert without_effect(properties) == words


# Logins


def test_a_login_is_what_the_properties_say() -> None:
    settings = login_settings_of(LOGIN)
    assert settings is not None
    assert (settings.mechanism, settings.jaas.reveal()) == ("SCRAM-SHA-256", "the module")
    assert "the module" not in repr(settings)
    assert login_settings_of({"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}) is None


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"sasl.mechanism": ""},
            r"^security\.protocol=SASL_PLAINTEXT needs sasl\.mechanism: .* PLAIN, SCRAM",
        ),
        ({"sasl.mechanism": "GSSAPI"}, r"^sasl\.mechanism='GSSAPI': sparklog's clients log in by PLAIN"),
        ({"sasl.jaas.config": " "}, r"^security\.protocol=SASL_PLAINTEXT needs sasl\.jaas\.config"),
        ({"sasl.login.class": "Mine"}, r"^sasl\.login\.class: Java's classes cannot run here"),
    ],
)
def test_a_login_that_cannot_be_is_refused(changed: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        login_settings_of({**LOGIN, **changed})
