"""Which hosts the certificates of a start's own machine must name, and which files must be closed."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog_runtime.start.own_secrets import check_own_secrets
from tests.certificates import Authority
from tests.closed_files import write_closed


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def check(authority, driver_host, *, listeners="SSL://:0", has_brokers=True):
    config = BrokerConfig.parse(
        {
            "listeners": listeners,
            "security.inter.broker.protocol": "SSL",
            **authority.settings(authority.root / "broker.pem"),
        }
    )
    warnings = []
    check_own_secrets(config, lambda: driver_host, has_brokers=has_brokers, warn=warnings.append)
    return warnings


def test_the_driver_is_dialled_too_and_perhaps_at_another_host_than_the_brokers(authority):
    authority.issue("broker", "localhost")
    with pytest.raises(ConfigError, match=r"is for localhost, and not for 127\.0\.0\.1"):
        check(authority, "127.0.0.1", listeners="SSL://localhost:0")
    authority.issue("broker", "localhost", "127.0.0.1")
    assert check(authority, "127.0.0.1", listeners="SSL://localhost:0") == []


def test_a_driver_needs_nothing_of_brokers_that_are_elsewhere(authority):
    authority.issue("broker", "10.0.0.1")
    assert check(authority, "10.0.0.1", listeners="SSL://localhost:0", has_brokers=False) == []
    with pytest.raises(ConfigError, match=r"is for 10\.0\.0\.1, and not for localhost, which"):
        check(authority, "10.0.0.1", listeners="SSL://localhost:0")


def test_a_key_that_others_may_open_is_a_warning_of_each_listener(authority):
    authority.issue("broker").chmod(0o644)
    (warning,) = check(authority, "127.0.0.1")
    assert warning.startswith(
        f"warning: listener SSL: ssl.keystore.location: others may open {authority.root}"
    )


@pytest.mark.parametrize("wrong", ["alice", "broker"])
@pytest.mark.parametrize("has_brokers", [True, False])
def test_passwords_that_others_may_open_stop_a_start_where_they_are_used(tmp_path, wrong, has_brokers):
    """Users of clients' listeners are no business of a driver alone; whom it logs in as is."""
    files = {name: tmp_path / name for name in ("alice", "broker")}
    for name, file in files.items():
        write_closed(file, f"password=of {name}\n")
    login = {name: f'{name}="${{file:{file}:password}}"' for name, file in files.items()}
    config = BrokerConfig.parse(
        {
            "listeners": "CLIENTS://:0,INSIDE://:0",
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.plain.without.tls": "true",
            "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required user_{login['alice']};",
            "listener.name.inside.plain.sasl.jaas.config": (
                f"{PLAIN_MODULE} required username=broker user_{login['broker']} "
                f"{login['broker'].replace('broker=', 'password=', 1)};"
            ),
        }
    )
    warnings = []
    check_own_secrets(config, lambda: "127.0.0.1", has_brokers=has_brokers, warn=warnings.append)
    files[wrong].chmod(0o644)
    if wrong == "alice" and not has_brokers:
        check_own_secrets(config, lambda: "127.0.0.1", has_brokers=has_brokers, warn=warnings.append)
    else:
        with pytest.raises(
            ConfigError, match=rf"jaas\.config: .*others may open {files[wrong]}, as its mode"
        ):
            check_own_secrets(config, lambda: "127.0.0.1", has_brokers=has_brokers, warn=warnings.append)
    assert warnings == []


def test_in_the_clear_nobody_asks_for_the_driver_s_address():
    def ask():
        raise AssertionError("it may take a lookup of names")

    check_own_secrets(BrokerConfig.parse({}), ask, has_brokers=True, warn=lambda text: None)
