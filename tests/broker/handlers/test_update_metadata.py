"""What a broker concludes from the controller's updates."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.handlers import update_metadata
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from tests.broker.conftest import ManualClock

OWN_EPOCH = BrokerEpoch(30)
REFUSED, LOST = ConnectionRefusedError("nobody listens"), ConnectionResetError("reset")


class Roles:
    """Roles of a broker without replicas."""

    def make_way(self, names):
        pass

    def on_live_brokers(self, live):
        pass


class Broker:
    """Broker 3, which hears of brokers; the epoch of broker N is 10 N."""

    def __init__(self):
        clock, fence = ManualClock(), ControllerFence(threading.Lock())
        fence.broker_epoch = OWN_EPOCH
        self.context = SimpleNamespace(
            broker_id=BrokerId(3),
            metadata=MetadataCache(threading.Lock()),
            departed_brokers=DepartedBrokers(clock),
            doubted_leaders=DoubtedLeaders(clock),
            roles=Roles(),
            settings=CurrentSettings(BrokerConfig()),
            fence=fence,
        )

    def hear(self, *live, ended=(), controller_epoch=1):
        at = [UpdateMetadataEndpoint(host="h", port=9)]
        request = UpdateMetadataRequest(
            controller_id=-1,
            controller_epoch=controller_epoch,
            broker_epoch=OWN_EPOCH,
            live_brokers=[UpdateMetadataBroker(id_=one, endpoints=at, epoch=10 * one) for one in live],
            ended=ended,
        )
        answers = []
        update_metadata.handle(SimpleNamespace(broker=self.context, reply=answers.append), request)
        assert len(answers) == 1

    @property
    def departed(self):
        live = self.context.metadata.snapshot.brokers
        return [one.id for one in self.context.departed_brokers.now(live)]


@pytest.fixture
def broker():
    broker = Broker()
    broker.hear(1, 2, 3)
    return broker


def test_a_broker_of_which_the_controller_knows_that_it_ended_stays_listed(broker):
    broker.hear(3, ended=(20,))
    assert broker.departed == [2]


def test_a_broker_that_was_silent_does_not_nor_does_one_of_which_an_earlier_life_ended(broker):
    broker.hear(3, ended=(19,))
    assert broker.departed == []


@pytest.mark.parametrize(("error", "departed"), [(REFUSED, [1]), (LOST, [])])
def test_a_new_controller_knows_nothing_of_it_and_a_refusal_of_our_own_shows_it(broker, error, departed):
    broker.context.doubted_leaders.on_connection_error(BrokerId(1), BrokerEpoch(10), error)
    broker.hear(2, 3, controller_epoch=2)
    assert broker.departed == departed
