"""Which brokers Metadata name after they ended, and for how long."""

import pytest

from sparklog.broker.metadata.departed_brokers import LISTED_MS, DepartedBrokers
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.ids import BrokerEpoch, BrokerId
from tests.broker.conftest import ManualClock


def brokers(*numbers, epoch=1):
    return {BrokerId(n): Broker(BrokerId(n), plaintext("h", 9_000 + n), BrokerEpoch(epoch)) for n in numbers}


ENDED = {BrokerEpoch(1), BrokerEpoch(2)}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def departed(clock):
    return DepartedBrokers(clock)


def test_a_broker_that_ended_is_listed_for_a_while(departed, clock):
    departed.on_live_brokers(brokers(1, 2, 3), brokers(2, 3), ENDED)
    clock.now_ms += LISTED_MS - 1
    assert departed.now(brokers(2, 3)) == [brokers(1)[1]]
    clock.now_ms += 1
    assert departed.now(brokers(2, 3)) == []


@pytest.mark.bug(
    "B86", "records", "Metadata list a paused leader for seconds more, and plain producers lose their order."
)
def test_a_broker_that_was_silent_until_its_session_expired_is_listed_no_longer(departed):
    departed.on_live_brokers(brokers(1) | brokers(2, 3, epoch=2), brokers(3, epoch=2), {BrokerEpoch(2)})
    assert departed.now(brokers(3, epoch=2)) == [brokers(2, epoch=2)[2]]


def test_later_reports_of_the_same_brokers_neither_end_nor_prolong_that(departed, clock):
    departed.on_live_brokers(brokers(1, 2), brokers(2), ENDED)
    clock.now_ms += LISTED_MS - 1
    departed.on_live_brokers(brokers(2), brokers(2), ENDED)
    assert departed.now(brokers(2)) == [brokers(1)[1]]
    clock.now_ms += 1
    assert departed.now(brokers(2)) == []


def test_a_broker_that_started_again_has_not_left(departed):
    departed.on_live_brokers(brokers(1, 2), brokers(2), ENDED)
    assert departed.now(brokers(1, 2, epoch=2)) == []
    departed.on_live_brokers(brokers(2), brokers(1, 2, epoch=2), ENDED)
    assert departed.now(brokers(1, 2, epoch=2)) == []


def test_a_broker_that_leaves_again_is_listed_as_it_was_last(departed, clock):
    departed.on_live_brokers(brokers(1, 2), brokers(2), ENDED)
    clock.now_ms += LISTED_MS
    departed.on_live_brokers(brokers(1, 2, epoch=2), brokers(2), ENDED)
    assert departed.now(brokers(2)) == [brokers(1, epoch=2)[1]]


def test_a_broker_that_is_new_has_none_that_left(departed):
    departed.on_live_brokers({}, brokers(1, 2), ENDED)
    assert departed.now(brokers(1, 2)) == []
