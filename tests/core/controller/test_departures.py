"""Which brokers the others are told to have ended, when they have left."""

import pytest

from sparklog.controller.snapshot import read_brokers
from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.model.ids import BrokerEpoch, BrokerId
from tests.core.controller.test_controller_machine import allocate


def told(world):
    """The last thing that broker 3 was told of brokers that ended."""
    return next(
        set(one.ended)
        for one in reversed(world.done)
        if isinstance(one, act.SendUpdateMetadata) and one.broker == 3
    )


def leave(world, broker, *ended):
    """The registration is gone, and the shell saw those brokers end."""
    world.expire(broker)
    seen = read_brokers(world.zk)
    return world.do(world.machine.on_brokers(seen, world.now_ms, frozenset(map(BrokerId, ended))))


def shut_down(world, broker):
    world.command(ControlledShutdown(BrokerId(broker), BrokerEpoch(world.epoch(broker))))
    leave(world, broker)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda world: world.report_death(1), id="its process was seen to end"),
        pytest.param(lambda world: shut_down(world, 1), id="it stopped in order"),
        pytest.param(lambda world: leave(world, 1, 1), id="its connection ended"),
    ],
)
def test_a_broker_that_ended_is_told_until_it_is_back(world, end):
    world.create()
    epoch = world.epoch(1)
    end(world)
    assert told(world) == {epoch}
    leave(world, 2)
    assert told(world) == {epoch}
    world.start(1)
    assert told(world) == set()


@pytest.mark.bug("B86")
def test_a_broker_that_was_silent_until_its_session_expired_is_not_told(world):
    world.create()
    leave(world, 1)
    assert told(world) == set()


def test_a_broker_that_left_silently_after_its_return_has_not_ended_again(world):
    world.create()
    world.report_death(1)
    world.start(1)
    leave(world, 1)
    assert told(world) == set()


def test_a_death_that_is_reported_after_the_session_expired_changes_nothing(world):
    world.create()
    epoch = world.epoch(1)
    leave(world, 1)
    world.report_death(1, epoch)
    assert told(world) == set()


def test_a_death_whose_registration_was_gone_before_it_could_be_removed_is_told(world):
    world.create()
    epoch = world.epoch(1)
    world.before_write.append(lambda: world.expire(1))
    world.report_death(1)
    assert told(world) == {epoch}


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_death_is_told_also_if_the_answer_of_its_write_was_lost(world, lost):
    world.create()
    epoch = world.epoch(1)
    world.zk.lose_next = lost
    world.report_death(1)
    assert told(world) == {epoch}


def test_what_ended_is_known_after_everything_was_read_again(world):
    world.create()
    epoch = world.epoch(1)
    world.report_death(1)
    world.zk.lose_next = "after"
    allocate(world, 2)
    assert told(world) == {epoch}
