"""Rules of operations on brokers: each fires, and only where it should."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.operations.operation_rules import OperationRules
from simulation.invariants.presence import NOTICED_MS, CountsWhoIsThere
from simulation.marks import Marks
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind, NumberedEvent
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.applications import KnownBroker, encode_known, known_broker_path
from sparklog.core.controller.state.operations import (
    Operation,
    OperationState,
    Phase,
    encode_operation,
    operation_path,
)
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.state.znodes import broker_path
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from sparklog.model.zookeeper import Create

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
TP = TopicPartition("quakes", 0)
FULL = PartitionState(
    leader=ONE,
    leader_epoch=LeaderEpoch(0),
    isr=(ONE, TWO, THREE),
    replicas=(ONE, TWO, THREE),
    isr_incarnations={ONE: 1, TWO: 1, THREE: 1},
    min_insync_replicas=2,
)
STOP = Operation(1, OperationKind.stop, (ONE,), "request-1")
TERM = ControllerEpoch(4)


class Nodes(dict):
    """What the rules ask of a ZooKeeper: data by path."""

    def get(self, path):
        return SimpleNamespace(data=self[path]) if path in self else None

    def exists(self, path):
        return True if path in self else None


class World:
    """A ZooKeeper that holds three registered brokers, and rules that look at it."""

    def __init__(self):
        self.nodes = Nodes({broker_path(broker): b"" for broker in (ONE, TWO, THREE)})
        self.truths = {TP: SimpleNamespace(topic_partition=TP, state=FULL)}
        self.presence = CountsWhoIsThere(brokers=(ONE, TWO, THREE))
        self.rules = OperationRules(self.nodes, self.truths, self.presence, Marks())

    def write(self, *nodes, applied=True):
        """A controller writes these operations and wishes; ``applied``: ZooKeeper takes it."""
        writes = {
            operation_path(one.id) if isinstance(one, Operation) else known_broker_path(one[0]): (
                encode_operation(one)
                if isinstance(one, Operation)
                else encode_known(KnownBroker(wish=one[1]))
            )
            for one in nodes
        }
        self.rules.look_at_write([Create(path, data) for path, data in writes.items()])
        if applied:
            self.nodes.update(writes)
        self.rules.look_at_zookeeper()

    def hold(self, **change):
        self.truths[TP].state = replace(FULL, **change)

    def leave(self, broker, since_ms):
        """It is not registered any more, at twice that time."""
        del self.nodes[broker_path(broker)]
        for now_ms in (since_ms, 2 * since_ms):
            self.presence.look_at_zookeeper(self.nodes, now_ms)


@pytest.fixture
def world():
    return World()


def stopping(operation=STOP, **change):
    return replace(operation, phase=Phase.stopping, **change)


def event(number):
    return NumberedEvent(TERM, number, 0, ClusterEvent(EventKind.topic, "t", "topic t was created"))


def test_a_stop_that_leaves_enough_in_sync_is_right(world):
    world.write(STOP)
    world.write(stopping(), (ONE, Wish.stopped))
    assert [one.phase for one in world.rules.running] == [Phase.stopping]
    world.write(replace(stopping(), state=OperationState.done))
    assert world.rules.running == []


def test_a_stop_below_the_minimum_breaks_a_rule(world):
    world.hold(isr=(ONE, TWO))
    world.write(STOP)
    with pytest.raises(Violation, match=r"OperationsKeepTheMinimum: quakes-0 has .2. in sync"):
        world.write(stopping(), (ONE, Wish.stopped))


def test_a_member_that_is_to_stop_does_not_count(world):
    world.write(STOP)
    world.write(stopping(), (ONE, Wish.stopped))
    other = Operation(2, OperationKind.stop, (TWO,), "request-2")
    world.write(other)
    with pytest.raises(Violation, match="OperationsKeepTheMinimum"):
        world.write(stopping(other), (TWO, Wish.stopped))


@pytest.mark.parametrize(("since_ms", "counts"), [(1_000, True), (NOTICED_MS + 1, False)])
def test_a_member_that_is_gone_counts_as_long_as_a_controller_may_not_know(world, since_ms, counts):
    world.hold(isr=(ONE, TWO, THREE), min_insync_replicas=2)
    world.leave(TWO, since_ms)
    world.write(STOP)
    if counts:
        world.write(stopping(), (ONE, Wish.stopped))
        return
    with pytest.raises(Violation, match="OperationsKeepTheMinimum"):
        world.write(stopping(), (ONE, Wish.stopped))


def test_what_is_accepted_is_no_violation(world):
    world.hold(isr=(ONE,))
    accepting = replace(STOP, accepts_unavailable=True)
    world.write(accepting)
    world.write(stopping(accepting), (ONE, Wish.stopped))


def test_a_write_that_is_refused_does_no_harm(world):
    world.hold(isr=(ONE,))
    world.write(STOP)
    world.write(stopping(), (ONE, Wish.stopped), applied=False)
    assert [one.phase for one in world.rules.running] == [Phase.begun]


@pytest.mark.parametrize("wish", [Wish.drained, Wish.removed])
@pytest.mark.parametrize("named", [{"replicas": (ONE, TWO)}, {"eligible": (ONE,)}])
def test_a_drained_broker_that_a_partition_names_breaks_a_rule(world, wish, named):
    world.hold(**{"isr": (TWO,), "replicas": (TWO, THREE), **named})
    world.leave(ONE, 1)
    with pytest.raises(Violation, match="DrainedBrokersAreEmpty: broker 1"):
        world.write(STOP, (ONE, wish))


def test_a_restart_that_does_not_wait_breaks_a_rule(world):
    world.hold(isr=(ONE, TWO))
    restart = Operation(1, OperationKind.restart, (ONE,), "request-1", accepts_unavailable=True)
    world.write(restart)
    with pytest.raises(Violation, match=r"RestartsWaitForTheIsr: quakes-0 lacks .3."):
        world.write(stopping(restart), (ONE, Wish.stopped))


@pytest.mark.parametrize("known", [{"away": (THREE,)}, {"lagging": (TP,)}])
def test_what_lagged_before_a_restart_is_not_waited_for(world, known):
    world.hold(isr=(ONE, TWO))
    restart = Operation(1, OperationKind.restart, (ONE,), "request-1", accepts_unavailable=True, **known)
    world.write(restart)
    world.write(stopping(restart), (ONE, Wish.stopped))


def test_an_operation_begins_once(world):
    world.write(STOP)
    with pytest.raises(Violation, match="OperationsBeginOnce: operation 2"):
        world.write(replace(STOP, id=2))


def test_an_operation_does_not_go_back(world):
    world.write(replace(STOP, position=1))
    with pytest.raises(Violation, match=r"OperationsBeginOnce: operation 1 .* comes from"):
        world.write(stopping())


def test_an_operation_ends_once(world):
    ended = replace(STOP, state=OperationState.cancelled)
    world.write(ended)
    with pytest.raises(Violation, match="OperationsEndOnce"):
        world.write(replace(STOP, state=OperationState.done))


@pytest.mark.parametrize("numbers", [(1, 3), (1, 1), (2,)])
def test_events_with_a_gap_or_a_repeated_number_break_a_rule(world, numbers):
    with pytest.raises(Violation, match="EventsAreNumbered"):
        world.rules.look_at_controller(in_office(*numbers))


def test_events_that_change_later_break_a_rule(world):
    world.rules.look_at_controller(in_office(1, 2))
    with pytest.raises(Violation, match="EventsAreNumbered"):
        world.rules.look_at_controller(in_office(1, 5, 3))


def test_events_one_after_the_other_are_right(world):
    for last in (0, 1, 3):
        world.rules.look_at_controller(in_office(*range(1, last + 1)))


def in_office(*numbers):
    """A candidate whose term has these events."""
    kept = tuple(map(event, numbers))
    return SimpleNamespace(term=SimpleNamespace(epoch=TERM, _events=SimpleNamespace(kept=kept)))
