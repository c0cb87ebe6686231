"""Rules of what ZooKeeper holds and of who writes it: each fires, and only where it should."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.states import ControllersAreSane, StatesAreSound, check_write
from simulation.machines.zookeeper import Ensemble
from simulation.schedule import Schedule
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.phases import Phase
from sparklog.core.controller.state.znodes import (
    CONTROLLER_EPOCH,
    broker_path,
    incarnation_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ANY_VERSION, Check, Create, Delete, SetData

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
TP = TopicPartition("quakes", 0)
TRUTH = SimpleNamespace(topic_partition=TP)
FIRST = PartitionState(
    leader=ONE,
    leader_epoch=LeaderEpoch(0),
    isr=(ONE, TWO),
    replicas=(ONE, TWO, THREE),
    isr_incarnations={ONE: 1, TWO: 1, THREE: 1},
    min_insync_replicas=2,
)
STATE = state_path(*TP)
GUARD = Check(CONTROLLER_EPOCH, 3)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        pytest.param({"isr": ()}, "the ISR is empty", id="nobody"),
        pytest.param({"isr": (ONE, ONE)}, "a member is listed twice", id="twice"),
        pytest.param({"isr": (ONE, BrokerId(4))}, "an ISR member is not assigned", id="a stranger"),
        pytest.param({"leader": THREE}, "the leader is not in the ISR", id="another leader"),
        pytest.param({"isr_incarnations": {ONE: 1}}, "a member was never counted", id="not counted"),
        pytest.param(
            {"isr": (ONE,), "eligible": (ONE,)}, "an ISR member is listed as eligible", id="eligible as well"
        ),
        pytest.param({"eligible": (THREE,)}, "eligible replicas beside a sufficient ISR", id="too many"),
    ],
)
def test_a_state_that_cannot_be_is_none_that_a_controller_may_write(change, what):
    rule = StatesAreSound()
    rule.on_state(TRUTH, None, FIRST)
    with pytest.raises(Violation, match=f"StatesAreSound: quakes-0: .*{what}"):
        rule.on_state(TRUTH, FIRST, replace(FIRST, partition_epoch=1, **change))


@pytest.mark.parametrize(
    ("change", "may_follow"),
    [
        pytest.param({"partition_epoch": 1, "isr": (ONE, TWO, THREE)}, True, id="the next version"),
        pytest.param({"partition_epoch": 2}, False, id="a version that nobody saw"),
        pytest.param({"partition_epoch": 0, "replicas": (ONE, TWO)}, False, id="an assignment alone"),
        pytest.param({"partition_epoch": 1, "leader": TWO}, False, id="a leader within the epoch"),
        pytest.param(
            {"partition_epoch": 1, "replicas": (ONE, TWO)}, False, id="a set of replicas within the epoch"
        ),
        pytest.param(
            {"partition_epoch": 1, "min_insync_replicas": 1}, False, id="a minimum within the epoch"
        ),
        pytest.param(
            {"partition_epoch": 1, "leader_epoch": LeaderEpoch(1), "leader": TWO}, True, id="with the epoch"
        ),
    ],
)
def test_states_rise_by_one_version_and_leaders_change_with_the_epoch(change, may_follow):
    rule, after = StatesAreSound(), replace(FIRST, **change)
    if may_follow:
        rule.on_state(TRUTH, FIRST, after)
        return
    with pytest.raises(Violation, match="was followed by"):
        rule.on_state(TRUTH, FIRST, after)


def test_a_first_state_is_of_the_first_version_and_epoch():
    with pytest.raises(Violation, match="None was followed by"):
        StatesAreSound().on_state(TRUTH, None, replace(FIRST, leader_epoch=LeaderEpoch(1)))


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([GUARD, SetData(STATE, b"", 7)], id="a state over the version that was read"),
        pytest.param([GUARD, Create(STATE, b"")], id="a first state"),
        pytest.param([GUARD, SetData(topic_path("quakes"), b"", ANY_VERSION)], id="a topic over any version"),
        pytest.param([GUARD, Delete(STATE)], id="a state that goes with its topic"),
        pytest.param([SetData(incarnation_path(ONE), b"", 1)], id="what brokers write of themselves"),
        pytest.param([Delete(broker_path(ONE))], id="a registration"),
    ],
)
def test_a_write_that_a_deposed_controller_cannot_make_is_as_it_should_be(operations):
    check_write(operations)


@pytest.mark.parametrize(
    ("operations", "what"),
    [
        pytest.param([SetData(STATE, b"", 7)], "whoever is controller may write", id="a state"),
        pytest.param([Create(topic_path("quakes"), b"")], "whoever is controller", id="a topic"),
        pytest.param([Delete(topic_config_path("quakes"))], "whoever is controller", id="settings"),
        pytest.param(
            [Check(CONTROLLER_EPOCH, ANY_VERSION), SetData(STATE, b"", 7)], "whoever is", id="any controller"
        ),
        pytest.param(
            [GUARD, SetData(STATE, b"", ANY_VERSION)], "is written over whatever is there", id="no version"
        ),
    ],
)
def test_a_write_without_a_check_of_epoch_or_version_is_found_before_it_is_applied(operations, what):
    ensemble = Ensemble(Schedule(), 1, (0.1, 0.2), 1_000)
    ensemble.on_write = check_write
    with pytest.raises(Violation, match=f"StateWritesAreGuarded: .*{what}"):
        ensemble.apply(1, operations)


def test_a_controller_whose_assertions_fail_is_found_after_an_event():
    machine, rule = ControllerMachine(BrokerConfig.parse({}), phase=Phase.SETTLED), ControllersAreSane()
    candidate = SimpleNamespace(term=SimpleNamespace(_machine=machine))
    for what in ("a fact", "the same again"):
        machine.events.note(what)
        rule.look_at("controller-a", candidate)
    machine.work.check([TP])
    rule.look_at("controller-a", candidate)  # it was told nothing since
    machine.events.note("another fact")
    with pytest.raises(Violation, match=r"ControllersAreSane: controller-a: .*quakes"):
        rule.look_at("controller-a", candidate)


def test_who_is_no_controller_is_not_asked():
    ControllersAreSane().look_at("controller-a", None)
    ControllersAreSane().look_at("controller-a", SimpleNamespace(term=None))
