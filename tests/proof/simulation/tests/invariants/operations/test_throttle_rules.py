"""Rules of throttles: each fires, and only where it should."""

import uuid
from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.operations.operation_rules import OperationRules
from simulation.invariants.operations.throttle_rules import (
    ENDS_WITHIN_MS,
    FETCHERS,
    RATES,
    SENDERS,
    ThrottleRules,
)
from simulation.invariants.presence import CountsWhoIsThere
from simulation.marks import Marks
from sparklog.core.controller.actions import PushId, SendUpdateMetadata, TopicUpdate
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.operations import Operation, OperationState
from sparklog.core.controller.state.znodes import (
    CONTROLLER_EPOCH,
    Assignment,
    broker_config_path,
    encode_configs,
    encode_controller_epoch,
)
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicPartition

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
MOVED, OTHER = TopicPartition("quakes", 0), TopicPartition("quakes", 1)
MOVE = Assignment((ONE, TWO, THREE), adding=(THREE,), removing=(ONE,))
LISTS = {SENDERS: "0:1,0:2", FETCHERS: "0:3"}
PLAN = Operation(1, OperationKind.reassign, throttle=4_000, partitions=(MOVED,))
TERM = ControllerEpoch(4)


class Nodes(dict):
    """What the rules ask of a ZooKeeper: data by path."""

    def get(self, path):
        return SimpleNamespace(data=self[path]) if path in self else None


class World:
    """A partition that moves, another that does not, and the operations that are stored."""

    def __init__(self):
        self.nodes = Nodes({CONTROLLER_EPOCH: encode_controller_epoch(TERM)})
        self.truths = {}
        self.assign(MOVED, MOVE)
        self.assign(OTHER, Assignment((ONE, TWO)))
        self.operations = OperationRules(self.nodes, self.truths, CountsWhoIsThere(brokers=()), Marks())
        self.rules = ThrottleRules(self.nodes, self.truths, self.operations, Marks())

    def assign(self, partition, assignment):
        self.truths[partition] = SimpleNamespace(topic_partition=partition, assignment=assignment)

    def hold(self, *operations):
        self.operations.known = {one.id: one for one in operations}

    def push(self, rate=None, lists=None, term=TERM):
        """The controller of ``term`` makes a message to broker 1."""
        configs = {} if rate is None else dict.fromkeys(RATES, str(rate))
        topic = TopicUpdate("quakes", uuid.UUID(int=1), lists or {}, (), 0)
        send = SendUpdateMetadata(PushId(1), ONE, BrokerEpoch(1), (), (topic,), configs, {})
        self.rules.look_at_push(term, send)


@pytest.fixture
def world():
    return World()


def test_the_throttle_of_a_plan_is_sent_with_the_replicas_that_move(world):
    world.hold(PLAN)
    world.push(4_000, LISTS)
    world.hold(replace(PLAN, state=OperationState.done))
    world.push()


@pytest.mark.parametrize("sent", [None, 9_000, 1_000])
def test_another_rate_than_that_of_the_plan_breaks_a_rule(world, sent):
    world.hold(PLAN)
    with pytest.raises(Violation, match=r"ThrottlesFollowOperations: broker 1 .* 4000 follows"):
        world.push(sent, LISTS)


def test_a_rate_that_stays_after_its_operation_breaks_a_rule(world):
    world.hold(replace(PLAN, state=OperationState.done))
    with pytest.raises(Violation, match="follows from no operation"):
        world.push(4_000)


def test_of_two_throttles_the_lower_one_is_to_be_sent(world):
    drain = Operation(2, OperationKind.drain, (ONE,), "request-1", throttle=1_000)
    world.hold(PLAN, drain)
    world.push(1_000, LISTS)
    assert world.rules.marks.counts["a broker was sent the lower of two throttles"] == 1
    with pytest.raises(Violation, match="ThrottlesFollowOperations"):
        world.push(4_000, LISTS)


@pytest.mark.parametrize(("stored", "wanted"), [(500, 500), (50_000, 4_000)])
def test_what_kafkas_tools_have_set_counts_where_it_is_lower(world, stored, wanted):
    world.nodes[broker_config_path("1")] = encode_configs(dict.fromkeys(RATES, str(stored)))
    world.hold(PLAN)
    world.push(wanted, LISTS)
    with pytest.raises(Violation, match="ThrottlesFollowOperations"):
        world.push(4_000 + 500 - wanted if stored == 500 else stored, LISTS)


@pytest.mark.parametrize("lists", [{}, {**LISTS, FETCHERS: "0:2"}, {**LISTS, SENDERS: "0:1,0:2,1:1"}])
def test_other_replicas_than_those_that_move_break_a_rule(world, lists):
    world.hold(PLAN)
    with pytest.raises(Violation, match="quakes is sent with the throttled replicas"):
        world.push(4_000, lists)


def test_moves_of_drained_and_filled_brokers_are_throttled_too(world):
    for operation in (
        Operation(1, OperationKind.drain, (ONE,), "request-1", throttle=4_000),
        Operation(1, OperationKind.fill, (THREE,), "request-1", throttle=4_000),
    ):
        world.hold(operation)
        world.push(4_000, LISTS)


def test_moves_of_other_tools_are_not_throttled(world):
    world.hold(replace(PLAN, partitions=(OTHER,)))
    world.push(4_000)


def test_a_move_that_adds_no_replica_throttles_nobody(world):
    world.assign(MOVED, Assignment((ONE, TWO), removing=(ONE,)))
    world.hold(PLAN)
    world.push(4_000)


def test_a_controller_that_was_replaced_may_say_what_was(world):
    world.hold(PLAN)
    world.push(None, term=ControllerEpoch(TERM - 1))


def test_two_plans_that_limit_one_move_break_a_rule(world):
    world.hold(PLAN, replace(PLAN, id=2, partitions=(OTHER,)))
    world.push(4_000, LISTS)
    world.hold(PLAN, replace(PLAN, id=2, partitions=(OTHER, MOVED)))
    with pytest.raises(Violation, match="PlansShareNoMove"):
        world.push(4_000, LISTS)


def test_a_plan_without_a_move_may_not_be_under_way_for_long(world):
    world.hold(PLAN)
    world.rules.look_at_rest(0)
    world.rules.look_at_rest(ENDS_WITHIN_MS + 1)
    world.assign(MOVED, Assignment((TWO, THREE)))
    world.rules.look_at_rest(20_000)
    world.rules.look_at_rest(20_000 + ENDS_WITHIN_MS)
    with pytest.raises(Violation, match="ThrottlesEndWithTheirMoves: operation 1"):
        world.rules.look_at_rest(20_000 + ENDS_WITHIN_MS + 1)


def test_a_silent_rule_accuses_nobody(world):
    world.operations.is_silent = True
    world.hold(PLAN, replace(PLAN, id=2))
    world.push()
