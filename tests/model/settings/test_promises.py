"""Settings of security that ask for what sparklog does not give are refused; at their defaults they pass."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings import security_defaults
from sparklog.model.settings.access_settings import ACCESS_SETTINGS
from sparklog.model.settings.config import check_broker_settings, check_dynamic_settings
from sparklog.model.settings.kafka_names import KAFKA_BROKER_PROPERTIES, is_secret
from sparklog.model.settings.login_rows import LOGIN_SETTINGS
from sparklog.model.settings.promises import is_unkept_promise
from sparklog.model.settings.settings_table import BROKER_SETTINGS
from sparklog.model.settings.tls_rows import TLS_NAMES
from sparklog.model.settings.zookeeper_rows import ZOOKEEPER_SETTINGS

DEFAULTS = {
    **security_defaults.RULES,
    **security_defaults.JAVA_TLS,
    **security_defaults.LOGIN,
    **security_defaults.REVOCATION,
    **security_defaults.STORED_PASSWORDS,
    **security_defaults.LIMITS,
    **security_defaults.POLICIES,
    **security_defaults.DELETION,
}
TRUST = "leave it out, and let only those reach the brokers' ports whom you trust"
OF_SECURITY = ("ssl.", "sasl.", "zookeeper.ssl.", "authorizer.", "delegation.token.", "password.encoder.")


@pytest.mark.parametrize(
    ("name", "value", "shown", "remedy"),
    [
        ("authorizer.zookeeper.url", "zk:2181", "zk:2181", "leave it out"),
        ("authorizer.zookeeper.ssl.keystore.password", "hush", "[hidden]", "leave it out"),
        ("ssl.provider", "BCFIPS", "BCFIPS", "leave it out"),
        ("ssl.engine.factory.class", "Mine", "Mine", "leave it out"),
        ("ssl.allow.dn.changes", "true", "true", "leave it out"),
        ("principal.builder.class", "Mine", "Mine", "leave it out"),
        ("sasl.login.class", "Mine", "Mine", "leave it out"),
        ("delegation.token.secret.key", "hush", "[hidden]", "leave it out"),
        ("zookeeper.ssl.crl.enable", "true", "true", "leave it out"),
        ("password.encoder.secret", "hush", "[hidden]", "leave it out"),
        ("client.quota.callback.class", "Mine", "Mine", TRUST),
        ("create.topic.policy.class.name", "Mine", "Mine", TRUST),
        ("delete.topic.enable", "false", "false", TRUST),
        ("listener.name.external.ssl.provider", "BCFIPS", "BCFIPS", "leave it out"),
        ("listener.name.external.plain.sasl.login.class", "Mine", "Mine", "leave it out"),
    ],
)
def test_a_promise_of_safety_is_refused_with_the_remedy(
    name: str, value: str, shown: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings({name: value})
    text = str(refused.value)
    assert text.startswith(f"{name}={shown}")
    assert text.endswith(f"; {remedy}")
    assert "hush" not in text


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_promise_has_an_effect_nowhere_and_passes_silently_at_its_default_alone(name: str) -> None:
    assert name not in BROKER_SETTINGS
    for full_name in (name, f"listener.name.external.{name}"):
        checked = check_broker_settings({full_name: f" {DEFAULTS[name].upper()} "})
        assert (checked.warnings, checked.values, full_name in checked.ignored) == ((), {}, True)
        with pytest.raises(ConfigError):
            check_broker_settings({full_name: "another"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.trustmanager.algorithm", "pkix"),
        ("sasl.login.refresh.window.factor", "0.80"),
        ("zookeeper.ssl.ocsp.enable", "FALSE"),
    ],
)
def test_a_default_may_be_written_in_several_ways(name: str, value: str) -> None:
    assert check_broker_settings({name: value}).warnings == ()


def test_each_setting_of_security_that_kafka_has_is_a_promise_or_is_kept() -> None:
    of_security = {
        name for name in KAFKA_BROKER_PROPERTIES if name.startswith(OF_SECURITY) or is_secret(name)
    }
    assert len(of_security) > 90
    settings = (*LOGIN_SETTINGS, *ACCESS_SETTINGS, *ZOOKEEPER_SETTINGS)
    kept = {setting.name for setting in settings if setting.name in of_security}
    assert {name for name in of_security if not is_unkept_promise(name)} == TLS_NAMES | kept
    assert set(DEFAULTS) <= KAFKA_BROKER_PROPERTIES


@pytest.mark.parametrize("name", ["max.connections", "max.connections.per.ip", "connections.max.idle.ms"])
def test_a_limit_that_is_kept_is_no_unkept_promise(name: str) -> None:
    assert check_broker_settings({name: "5"}).values == {name: 5}


@pytest.mark.parametrize(
    "name", ["replication.quota.window.num", "listener.name.external.num.network.threads"]
)
def test_what_promises_no_safety_is_warned_of(name: str) -> None:
    (warning,) = check_broker_settings({name: "7"}).warnings
    assert warning == f"broker setting {name}=7 is accepted, but sparklog does not act on it yet"


def test_a_promise_that_another_tool_stored_is_left_out_with_a_warning() -> None:
    stored = {"delegation.token.master.key": "hush", "background.threads": "3"}
    checked = check_dynamic_settings(stored)
    (warning,) = checked.warnings
    assert warning.startswith("a dynamic setting is ignored: delegation.token.master.key=[hidden]: ")
    assert checked.values == {}


def test_a_misspelt_setting_behind_a_listeners_prefix_is_unknown() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown broker setting 'listener\.name\.external\.ssl\.protocoll'"
    ):
        check_broker_settings({"listener.name.external.ssl.protocoll": "TLSv1.3"})
