"""Which hosts the certificates of a start's own machine must name."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.start.own_certificates import check_own_certificates
from tests.certificates import Authority


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
    check_own_certificates(config, lambda: driver_host, has_brokers=has_brokers, warn=warnings.append)
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


def test_in_the_clear_nobody_asks_for_the_driver_s_address():
    def ask():
        raise AssertionError("it may take a lookup of names")

    check_own_certificates(BrokerConfig.parse({}), ask, has_brokers=True, warn=lambda text: None)
