"""The limits of connections as settings name them."""

from sparklog.broker.life.connection_limits import ConfiguredLimits, limits_by_address
from sparklog.model.config import BrokerConfig

OVERRIDES = "max.connections.per.ip.overrides"


def test_limits_follow_the_settings_while_the_broker_runs():
    config = BrokerConfig.parse({"max.connections": "9", OVERRIDES: "127.0.0.1:3, ::1:4"})
    limits = ConfiguredLimits(lambda: config)
    assert (limits().total, limits().per_address) == (9, 2**31 - 1)
    assert limits().of_address == {"127.0.0.1": 3, "::1": 4}
    config = config.with_dynamic({"max.connections.per.ip": "7", OVERRIDES: "127.0.0.1:5"})
    assert (limits().total, limits().per_address) == (9, 7)
    assert limits().of_address == {"127.0.0.1": 5}


def test_a_host_without_an_address_is_named_and_the_others_keep_their_limits(caplog):
    assert limits_by_address(("no.such.host.invalid:1", ".:2", "localhost:3"))["127.0.0.1"] == 3
    assert caplog.text.count("has no address") == 2
