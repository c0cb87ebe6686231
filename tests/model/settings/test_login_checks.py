"""A broker's settings of logins fit its listeners, have no literal password, and are fixed while it runs."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig, check_broker_settings, check_dynamic_settings
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE

OUTSIDE = {
    "listeners": "PLAINTEXT://:0,OUTSIDE://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}
PREFIX = "listener.name.outside."
BROKERS = {"inter.broker.listener.name": "OUTSIDE", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}
JAAS = "sasl.jaas.config"
OWN = f'{SCRAM_MODULE} required username=broker password="${{env:BROKER}}";'
USERS = f'{PLAIN_MODULE} required user_alice="${{env:ALICE}}";'
PLANTED = "planted"


def test_settings_of_logins_act_without_a_word() -> None:
    given = {
        **OUTSIDE,
        **BROKERS,
        f"{PREFIX}sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN",
        f"{PREFIX}plain.{JAAS}": USERS,
        f"{PREFIX}scram-sha-512.{JAAS}": OWN,
        "connections.max.reauth.ms": "60000",
        f"{PREFIX}plain.connections.max.reauth.ms": "30000",
        "sasl.plain.without.tls": "true",
    }
    checked = check_broker_settings(given)
    assert (checked.warnings, checked.ignored) == ((), {})
    config = BrokerConfig.parse(given)
    assert config.listeners.with_login() == ("OUTSIDE",)
    settings = config.login("OUTSIDE")
    assert settings.mechanisms == ("SCRAM-SHA-512", "PLAIN")
    assert settings.session_max_ms == {"SCRAM-SHA-512": 60_000, "PLAIN": 30_000}
    assert config.brokers_login("OUTSIDE").mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"sasl.enabled.mechanisms": "GSSAPI"},
            r"sasl.enabled.mechanisms=GSSAPI: clients log in at listener OUTSIDE",
        ),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN"}, "write sasl.enabled.mechanisms=SCRAM-SHA-512"),
        ({"sasl.enabled.mechanisms": ""}, "clients log in at listener OUTSIDE"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "listener OUTSIDE has PLAIN, and nobody may log in by it"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", f"{PREFIX}plain.{JAAS}": USERS},
            "sends passwords as they are, and no encryption: map it to SASL_SSL",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.plain.without.tls": "true",
                f"{PREFIX}plain.{JAAS}": OWN,
            },
            "the users of PLAIN stand in a",
        ),
        (BROKERS, "no user is given: set listener.name.outside.scram-sha-512.sasl.jaas.config"),
        (
            {**BROKERS, "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "sasl.mechanism.inter.broker.protocol=PLAIN: brokers log in at each other by listener OUTSIDE",
        ),
        ({f"{PREFIX}plain.{JAAS}": f'{PLAIN_MODULE} required user_a="{PLANTED}";'}, "user_a is a secret"),
        ({JAAS: f'{SCRAM_MODULE} required username=a password="{PLANTED}";'}, "password is a secret"),
        (
            {JAAS: f'{SCRAM_MODULE} required username=a pasword="{PLANTED}";'},
            "has no option 'pasword', which may be a misspelt password; did you mean password",
        ),
        (
            {f"{PREFIX}plain.{JAAS}": f'{PLAIN_MODULE} required useralice="{PLANTED}";'},
            "has no option 'useralice', which may be a misspelt password",
        ),
        ({JAAS: PLANTED}, r"sasl.jaas.config=\[hidden\]: its login module is none"),
        (
            {JAAS: "${nowhere:planted}"},
            r"sasl.jaas.config=\[hidden\]: a reference names the source 'nowhere'",
        ),
        ({f"listener.name.inside.plain.{JAAS}": USERS}, "no listener and mechanism have this prefix"),
        ({f"{PREFIX}gssapi.{JAAS}": USERS}, "no listener and mechanism have this prefix"),
        ({"connections.login.timeout.ms": "0"}, "must be at least 100"),
    ],
)
def test_what_cannot_be_kept_is_refused(changed: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        check_broker_settings({**OUTSIDE, **changed})
    assert PLANTED not in str(refused.value).replace("${nowhere:planted}", "")


def test_a_whole_jaas_string_may_be_a_reference() -> None:
    given = {**OUTSIDE, **BROKERS, f"{PREFIX}scram-sha-512.{JAAS}": "${file:/secrets:broker}"}
    assert check_broker_settings(given).warnings == ()


def test_settings_of_logins_without_a_listener_that_has_some_are_warned_of() -> None:
    (warning,) = check_broker_settings({"sasl.enabled.mechanisms": "PLAIN"}).warnings
    assert warning.startswith("sasl.enabled.mechanisms has no effect, because no client logs in there")
    (warning,) = check_broker_settings({**OUTSIDE, f"listener.name.plaintext.plain.{JAAS}": USERS}).warnings
    assert warning.startswith("listener.name.plaintext.plain.sasl.jaas.config has no effect")


def test_they_are_not_changed_while_brokers_run() -> None:
    stored = {f"{PREFIX}plain.{JAAS}": "x", "sasl.enabled.mechanisms": "PLAIN"}
    checked = check_dynamic_settings(stored)
    assert checked.values == {}
    assert all("it is read only at start" in warning for warning in checked.warnings)
    assert len(checked.warnings) == 2
