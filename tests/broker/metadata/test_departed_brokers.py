"""Brokers that have left are listed a moment longer."""

from sparklog.broker.metadata.departed_brokers import LISTED_MS, DepartedBrokers
from sparklog.model.cluster import DEFAULT_LISTENER, Broker, plaintext
from sparklog.model.ids import BrokerId
from tests.broker.conftest import ManualClock

ONE, TWO = (Broker(BrokerId(number), plaintext("host", 9090 + number)) for number in (1, 2))
BOTH, ONLY_ONE = {1: ONE, 2: TWO}, {1: ONE}


def test_a_broker_that_left_is_listed_with_its_last_address_until_its_time_is_over():
    clock = ManualClock()
    departed = DepartedBrokers(clock)
    departed.on_update(BOTH, ONLY_ONE)
    departed.on_update(ONLY_ONE, ONLY_ONE)
    clock.now_ms += LISTED_MS - 1
    assert departed.nodes(DEFAULT_LISTENER) == {2: TWO.node(DEFAULT_LISTENER)}
    assert departed.nodes("OTHER") == {}
    clock.now_ms += 1
    assert departed.nodes(DEFAULT_LISTENER) == {}


def test_a_broker_that_has_come_back_has_not_left():
    departed = DepartedBrokers(ManualClock())
    departed.on_update(BOTH, ONLY_ONE)
    departed.on_update(ONLY_ONE, BOTH)
    assert departed.nodes(DEFAULT_LISTENER) == {}
