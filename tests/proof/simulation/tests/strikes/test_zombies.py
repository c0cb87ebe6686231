"""A process that is launched beside another is there to be refused by the lock, and for nothing else."""

import pytest

from simulation.cluster import STOPPED_CLEANLY, Cluster
from simulation.machines.broker import SimulatedBroker
from simulation.plans.faults import Fault
from simulation.plans.plan import draw_plan
from simulation.schedule import US_PER_MS
from simulation.strikes.strikes import Strikes
from simulation.strikes.zombies import SECOND_LOOK_US

HOST = "broker-2"
STANDS_STILL, HEARS_OF_NOTHING = 0.0, 2.0
REFUSED = "a second process was refused a directory's lock"


class Scene:
    """A cluster whose brokers are registered, and every process of a broker that was launched in it."""

    def __init__(self) -> None:
        self.launched: list[SimulatedBroker] = []
        self.cluster = Cluster(draw_plan(1, without_faults=True))
        self.strikes = Strikes(self.cluster)
        self.cluster.start()
        while not all(broker.is_registered for broker in self.cluster.brokers.values()):
            self.run(10)

    def run(self, ms: int) -> None:
        self.cluster.schedule.run_until(self.cluster.schedule.now_us + ms * US_PER_MS)

    def launch_twice(self, amount: float) -> None:
        fault = Fault(0, self.cluster.schedule.now_ms, "launch twice", HOST, "", 200, amount)
        self.strikes._zombies.by_kind[fault.kind](fault)

    def seconds(self) -> list[SimulatedBroker]:
        """Those that are not the cluster's own."""
        return [one for one in self.launched if one is not self.cluster.brokers[HOST]]


@pytest.fixture
def scene(monkeypatch):
    scene = Scene()
    launch = SimulatedBroker.launch

    def noted(broker):
        scene.launched.append(broker)
        launch(broker)

    monkeypatch.setattr(SimulatedBroker, "launch", noted)
    yield scene
    scene.strikes.end()
    scene.cluster.end()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_of_who_was_replaced_nobody_asks_whether_it_stopped_outside_the_isr(scene, monkeypatch, is_replaced):
    """The ISR that has its id has another process in it; seed 246588."""
    asked = []
    monkeypatch.setattr(type(scene.cluster.witness), "stopped_cleanly", lambda _, *who: asked.append(who))
    broker = scene.cluster.brokers[HOST]
    broker.released_by = 1
    if is_replaced:
        scene.cluster.brokers.pop(HOST)
    scene.cluster._stopped(broker, STOPPED_CLEANLY)
    assert len(asked) == (not is_replaced)


def test_a_second_process_is_refused_by_the_lock_of_the_first(scene):
    scene.launch_twice(HEARS_OF_NOTHING)
    scene.run(300)
    (second,) = scene.seconds()
    assert not second.process.is_alive
    assert scene.cluster.witness.marks.counts[REFUSED] == 1


def test_none_is_launched_beside_a_process_that_has_no_lock_yet(scene):
    scene.cluster.kill(HOST, is_reported=True)
    scene.cluster.launch(HOST)
    scene.launch_twice(STANDS_STILL)
    scene.run(1_000)
    assert scene.seconds() == []
    assert scene.cluster.brokers[HOST].is_registered


def test_a_second_process_ends_when_the_first_lets_its_directories_go(scene):
    scene.launch_twice(STANDS_STILL)
    let_go = scene.cluster.machines[HOST].disk.lock_holders.clear
    scene.cluster.schedule.after(SECOND_LOOK_US // 2, None, let_go)
    scene.run(100)
    (second,) = scene.seconds()
    assert not second.process.is_alive
    assert second.replicas is None, "it took the lock, and recovered the logs"
