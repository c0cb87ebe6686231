"""The ports of the brokers of one start."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.broker_process.broker_ports import check_ports, ports_of_brokers

TWO = {
    "listeners": "INTERNAL://:0,EXTERNAL://0.0.0.0:0",
    "advertised.listeners": "EXTERNAL://brokers.example.org:0,INTERNAL://:0",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}


def ports(settings, first_port=9092, brokers=3):
    return ports_of_brokers(BrokerConfig.parse(settings).listeners, first_port, brokers)


def check(settings, brokers=3, *, on_one_machine=True, first_port=9092):
    listeners = BrokerConfig.parse(settings).listeners
    assigned = ports_of_brokers(listeners, first_port, brokers)
    check_ports(listeners, assigned, settings, on_one_machine=on_one_machine)


def test_one_listener_has_the_port_of_the_start_and_those_that_follow():
    assert ports({}) == [{"PLAINTEXT": 9092}, {"PLAINTEXT": 9093}, {"PLAINTEXT": 9094}]


def test_listeners_have_ports_in_order_and_the_first_advertised_stands_first():
    assigned = ports(TWO, brokers=2)
    assert [list(of_one.items()) for of_one in assigned] == [
        [("EXTERNAL", 9094), ("INTERNAL", 9092)],
        [("EXTERNAL", 9095), ("INTERNAL", 9093)],
    ]
    check(TWO, brokers=2)


def test_port_0_of_the_start_is_any_free_one_and_a_port_of_the_settings_stays():
    settings = {**TWO, "listeners": "INTERNAL://:0,EXTERNAL://0.0.0.0:19092"}
    assert ports(settings, first_port=0, brokers=1) == [{"EXTERNAL": 19092, "INTERNAL": 0}]


def test_no_broker_of_a_start_without_brokers_needs_a_port():
    assert ports(TWO, brokers=0) == []
    check(TWO, brokers=0)


def test_ports_beyond_the_last_are_refused():
    with pytest.raises(ConfigError, match="need ports 65531 to 65536, but") as refused:
        ports(TWO, first_port=65_531, brokers=3)
    assert "choose --port 65530 or lower" in str(refused.value)


def test_one_port_for_several_brokers_works_on_several_machines_only():
    settings = {"listeners": "PLAINTEXT://:9092"}
    check(settings, on_one_machine=False)
    check(settings, brokers=1)
    with pytest.raises(
        ConfigError, match=r"3 brokers on one machine cannot all listen on port 9092; write PL"
    ):
        check(settings)


def test_one_advertised_address_for_several_brokers_is_refused():
    settings = {"advertised.listeners": "PLAINTEXT://outside:19092"}
    check(settings, brokers=1)
    check({"advertised.listeners": "PLAINTEXT://:19092"}, on_one_machine=False)
    with pytest.raises(ConfigError, match="3 brokers would have one address for PLAINTEXT; write port 0"):
        check(settings, on_one_machine=False)


def test_a_port_of_the_start_that_the_settings_give_to_another_listener_is_refused():
    settings = {**TWO, "listeners": "INTERNAL://:0,EXTERNAL://0.0.0.0:9092"}
    with pytest.raises(
        ConfigError, match="--port assigns 9092 to one of the listeners EXTERNAL and INTERNAL"
    ):
        check(settings, brokers=1)
