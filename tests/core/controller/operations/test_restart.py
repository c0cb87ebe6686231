"""Brokers restart one at a time, each when every ISR that was full is full again, and clients had a pause."""

import pytest

from sparklog.core.controller.actions import WakeAt
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.operations.settling import SETTLE_MS
from sparklog.core.controller.state.operations import Phase


def restart_one(world, operators, broker):
    """What follows the wish "stopped", up to the broker's new registration."""
    assert operators.wish(broker) == "stopped"
    operators.stop_in_order(broker)
    assert operators.wish(broker) == "serving"
    world.start(broker, clean=True)
    operators.host(broker)


def test_brokers_restart_one_after_the_other(world, operators):
    world.create(min_insync_replicas="2")
    operation = operators.begin("restart", is_all=True)
    for broker in (1, 2, 3):
        others = [one for one in (1, 2, 3) if one != broker]
        assert [operators.wish(one) for one in others] == ["serving", "serving"]
        restart_one(world, operators, broker)
        assert operators.state(operation) == "running"
        assert operators.waits(operation) == [f"broker {broker} to be in sync again in 1 partition: t-0"]
        operators.return_to_isrs(broker)
        operators.settle()
    assert operators.state(operation) == "done"
    assert [operators.known(broker).starts for broker in (1, 2, 3)] == [1, 1, 1]


def test_a_broker_counts_as_restarted_once_it_is_in_sync_again(world, operators):
    world.create(min_insync_replicas="2")
    operation = operators.begin("restart", 1, 2)
    counted = [operators.done(operation)]
    for broker in (1, 2):
        restart_one(world, operators, broker)
        counted.append(operators.done(operation))
        operators.return_to_isrs(broker)
        operators.settle()
        counted.append(operators.done(operation))
    assert counted == [0, 0, 1, 1, 2]
    assert operators.state(operation) == "done"


def test_a_restart_does_not_begin_while_another_broker_is_not_back_in_sync(world, operators):
    world.create(replicas=((1, 2, 3), (1, 2, 3)))
    operation = operators.begin("restart", 1, 2)
    restart_one(world, operators, 1)
    world.crash(3)
    operators.return_to_isrs(1)
    assert operators.wish(2) == "serving"
    assert operators.waits(operation) == ["broker 3 to be in sync again in 2 partitions: t-0, t-1"]
    world.start(3, clean=True)
    operators.return_to_isrs(3)
    operators.settle()
    assert operators.wish(2) == "stopped"


def test_an_isr_that_was_not_full_before_is_not_waited_for(world, operators):
    world.create(replicas=((1, 2, 3),))
    world.create("slow", replicas=((1, 2, 3),))
    world.propose(1, 1, 2, topic="slow")
    operation = operators.begin("restart", 1)
    assert [str(one) for one in operators.stored(operation).lagging] == ["slow-0"]
    restart_one(world, operators, 1)
    world.propose(world.state().leader, *world.state().isr, 1)
    assert operators.state(operation) == "done", "slow-0 still lacks a replica"


def test_a_broker_that_was_away_before_is_not_waited_for(world, operators):
    world.create(replicas=((1, 2, 3),))
    world.crash(3)
    operation = operators.begin("restart", 1)
    restart_one(world, operators, 1)
    operators.return_to_isrs(1)
    assert operators.state(operation) == "done"


def test_a_broker_that_is_away_is_started_again(world, operators):
    world.crash(3)
    operators.host(3, state="crash loop", reason="bad settings")
    operation = operators.begin("restart", 3)
    assert (operators.wish(3), operators.known(3).starts) == ("serving", 1)
    world.start(3)
    assert operators.state(operation) == "done"


def test_settings_that_no_broker_survives_end_the_restart_at_the_first(world, operators):
    world.create(min_insync_replicas="2")
    operation = operators.begin("restart", is_all=True)
    operators.stop_in_order(1)
    operators.host(1, state="crash loop", reason="num.io.threads=0 is too small")
    assert operators.state(operation) == "failed"
    assert operators.stored(operation).reason == "broker 1 does not start: num.io.threads=0 is too small"
    assert (operators.wish(2), operators.wish(3)) == ("serving", "serving")


@pytest.mark.parametrize("phase", list(Phase))
def test_a_new_controller_goes_on_where_the_former_was(world, operators, phase):
    """No broker is restarted a second time."""
    world.create(min_insync_replicas="2")
    operation = operators.begin("restart", 1, 2)
    restart_one(world, operators, 1)
    if phase is not Phase.begun:
        operators.return_to_isrs(1)
        operators.settle()
        assert operators.wish(2) == "stopped"
    if phase is Phase.starting:
        operators.stop_in_order(2)
    world.activate()
    operators.host(1, 2, 3)
    assert operators.stored(operation).phase is phase
    operators.return_to_isrs(1)
    operators.settle()
    if phase is not Phase.starting:
        operators.stop_in_order(2)
    world.start(2, clean=True)
    operators.return_to_isrs(2)
    assert operators.state(operation) == "done"
    assert [operators.known(broker).starts for broker in (1, 2)] == [1, 1]


def test_a_restart_that_is_cancelled_leaves_every_broker_serving(world, operators):
    world.create(min_insync_replicas="2")
    operation = operators.begin("restart", 1, 2)
    operators.cancel(operation)
    assert (operators.wish(1), operators.wish(2)) == ("serving", "serving")
    assert operators.state(operation) == "cancelled"


def test_partitions_with_too_few_replicas_have_to_be_accepted(world, operators):
    world.create("single", replicas=((2,),))
    assert "single-0" in operators.refused("restart", is_all=True)
    operation = operators.begin("restart", is_all=True, accepts_unavailable=True)
    for broker in (1, 2, 3):
        restart_one(world, operators, broker)
        operators.return_to_isrs(broker)
        operators.settle()
    assert operators.state(operation) == "done"


class TestThePauseBetweenTwoBrokers:
    """Broker 1 is in sync again; broker 2 stops after the pause."""

    @pytest.fixture(autouse=True)
    def _restarted(self, world, operators):
        world.create(min_insync_replicas="2")
        self.world, self.operators = world, operators
        self.operation = operators.begin("restart", 1, 2)
        restart_one(world, operators, 1)
        operators.return_to_isrs(1)

    def test_clients_have_two_seconds_to_connect_again(self):
        assert self.operators.waits(self.operation) == ["clients to connect to broker 1 again, for 2 s"]
        self.operators.settle(SETTLE_MS - 1)
        assert self.operators.wish(2) == "serving"
        self.operators.settle(1)
        assert self.operators.wish(2) == "stopped"

    def test_the_machine_asks_to_be_called_at_its_end_once(self):
        calls = [one.deadline_ms for one in self.world.done if isinstance(one, WakeAt)]
        assert calls.count(self.world.now_ms + SETTLE_MS) == 1

    def test_it_begins_again_when_a_replica_leaves_an_isr(self):
        self.operators.settle(SETTLE_MS - 1)
        self.world.crash(3)
        self.world.start(3, clean=True)
        self.operators.return_to_isrs(3)
        self.operators.settle(SETTLE_MS - 1)
        assert self.operators.wish(2) == "serving"
        self.operators.settle(1)
        assert self.operators.wish(2) == "stopped"

    def test_other_operations_go_on_meanwhile(self):
        stop = self.operators.begin("stop", 3, accepts_unavailable=True)
        self.operators.stop_in_order(3)
        assert self.operators.state(stop) == "done"

    def test_the_restart_may_be_cancelled(self):
        self.operators.cancel(self.operation)
        self.operators.settle()
        assert self.operators.wish(2) == "serving"


def test_a_topic_that_is_deleted_or_made_meanwhile_does_not_hold_it_up(world, operators):
    world.create(replicas=((1, 2, 3),))
    operation = operators.begin("restart", 1)
    operators.stop_in_order(1)
    world.create("new", replicas=((2, 3),))
    world.answer_pushes(world.submit(DeleteTopics((DoomedTopic(name="t"),), 10_000)))
    world.start(1, clean=True)
    assert operators.state(operation) == "done"
