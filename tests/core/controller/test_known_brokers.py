"""Brokers that have registered stay known, with host and application, while they are away."""

from dataclasses import replace

from sparklog.controller.snapshot import read_snapshot
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state.applications import (
    Application,
    HostedBroker,
    KnownBroker,
    decode_known,
    known_broker_path,
)
from sparklog.model.ids import BrokerId, ControllerEpoch
from sparklog.model.zookeeper import Delete

SHOP = Application("shop", "driver-1", 9091, release="0.1.0")


def stored(world, broker):
    node = world.zk.get(known_broker_path(BrokerId(broker)))
    return None if node is None else decode_known(BrokerId(broker), node.data, node.stat.version)


def see(world, *applications):
    return world.do(world.machine.on_applications(applications, world.now_ms))


def hosting(*brokers, state="serving", reason=""):
    return replace(SHOP, brokers=tuple(HostedBroker(BrokerId(one), state, reason) for one in brokers))


def words(done):
    return [str(one) for one in done if isinstance(one, ClusterEvent)]


def test_the_controller_notes_each_broker_that_registers(world):
    assert [stored(world, broker).host for broker in (1, 2, 3)] == ["host"] * 3
    world.start(7)
    assert stored(world, 7) == KnownBroker("host", "", "", 0)


def test_the_application_is_noted_once_it_says_that_it_hosts_the_broker(world):
    see(world, hosting(2))
    assert stored(world, 2) == KnownBroker("host", "shop", "0.1.0", 1)
    see(world, hosting(2))
    assert stored(world, 2).version == 1, "nothing has changed"


def test_a_broker_that_is_away_stays_known_to_the_next_controller(world):
    see(world, hosting(2))
    world.crash(2)
    see(world)
    world.activate()
    assert world.machine.image.known[BrokerId(2)] == KnownBroker("host", "shop", "0.1.0", 1)
    assert BrokerId(2) not in world.machine.image.brokers


def test_a_broker_of_an_earlier_release_is_known_by_its_incarnation(world):
    world.zk.multi([Delete(known_broker_path(BrokerId(3)))])
    snapshot = read_snapshot(world.zk, ControllerEpoch(1), 0)
    assert snapshot.known[BrokerId(3)] == KnownBroker()


def test_applications_come_and_go(world):
    assert words(see(world, SHOP)) == ["application shop on driver-1 runs"]
    assert words(see(world, SHOP)) == []
    assert words(see(world)) == ["application shop on driver-1 ended"]


def test_a_reason_is_an_event_once(world):
    see(world, hosting(2))
    waiting = hosting(2, state="no executor", reason="the master has 0 cores free")
    assert words(see(world, waiting)) == ["broker 2: no executor (the master has 0 cores free)"]
    assert words(see(world, waiting)) == []
    assert words(see(world, hosting(2, state="starting", reason="it is launched again"))) == []


def test_a_note_that_zookeeper_lost_is_written_again(world):
    world.lose_answers.append("after")
    world.start(9)
    assert stored(world, 9) == KnownBroker("host", "", "", 0)
    world.machine.check_invariants()


def test_an_election_is_written_before_a_note(world):
    world.create()
    world.register(1)
    writes = []
    world.before_write = [lambda: writes.append(world.machine.decision.step) for _ in range(5)]
    world.see_brokers()
    assert [type(step).__name__ for step in writes] == ["Elect"], "the broker runs where it ran before"
