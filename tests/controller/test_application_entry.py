"""An application's entry in ZooKeeper is written at most once a second, and by the present session."""

import pytest

from sparklog.controller.application_entry import WRITE_EVERY_MS, ApplicationEntry
from sparklog.core.controller.state.applications import (
    Application,
    HostedBroker,
    application_path,
    decode_application,
    encode_application,
)
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import ConnectionLost, Create
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer

PATH = application_path("shop")


def application(state="serving"):
    return Application("shop", "driver-1", 9091, brokers=(HostedBroker(BrokerId(1), state),))


class Bench:
    def __init__(self):
        self.server = MemoryZooKeeperServer()
        self.zookeeper = self.session()
        self.now_ms, self.due = 0, []
        self.entry = ApplicationEntry(self.zookeeper, self, lambda ms, event: self.due.append((ms, event)))

    def session(self):
        session = MemoryZooKeeper(self.server)
        session.start(6_000)
        return session

    def monotonic_ms(self):
        return self.now_ms

    def pass_ms(self, delay_ms):
        self.now_ms += delay_ms
        due, self.due = self.due, []
        for _, event in due:
            event()

    def stored(self):
        node = self.zookeeper.get(PATH)
        return None if node is None else decode_application("shop", node.data)


@pytest.fixture
def bench():
    return Bench()


def test_it_is_written_at_once_and_then_once_a_second(bench):
    bench.entry.publish(application("starting"))
    assert bench.stored() == application("starting")
    for state in ("recovering", "serving"):
        bench.entry.publish(application(state))
    assert bench.stored() == application("starting")
    assert [delay_ms for delay_ms, _ in bench.due] == [WRITE_EVERY_MS]
    bench.pass_ms(WRITE_EVERY_MS)
    assert bench.stored() == application("serving")
    assert bench.zookeeper.exists(PATH).version == 1


def test_what_is_there_is_not_written_again(bench):
    bench.entry.publish(application())
    bench.pass_ms(5_000)
    bench.entry.publish(application())
    bench.entry.write()
    assert bench.zookeeper.exists(PATH).version == 0


def test_it_replaces_the_entry_of_a_former_driver(bench):
    former = bench.session()
    former.ensure_path("/applications")
    former.multi([Create(PATH, encode_application(application("away")), ephemeral=True)])
    bench.entry.publish(application())
    former.close()
    assert bench.stored() == application(), "the end of the other session leaves it alone"


def test_it_is_tried_again_while_zookeeper_is_away(bench, monkeypatch):
    def lose(*_, **__):
        raise ConnectionLost("it is away")

    with monkeypatch.context() as away:
        away.setattr(bench.zookeeper, "multi", lose)
        bench.entry.publish(application())
        assert bench.stored() is None
    bench.pass_ms(WRITE_EVERY_MS)
    assert bench.stored() == application()
