"""Controlled shutdown, producer ids, and the machine's own rules."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import AllocateProducerIds, ControlledShutdown
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.state import znodes
from sparklog.core.recent_events import IllegalTransition
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.settings.config import BrokerConfig


def shutdown(world, broker, epoch=None):
    epoch = world.epoch(broker) if epoch is None else epoch
    return world.command(ControlledShutdown(BrokerId(broker), BrokerEpoch(epoch)))


def allocate(world, broker, epoch=None):
    epoch = world.epoch(broker) if epoch is None else epoch
    return world.command(AllocateProducerIds(BrokerId(broker), BrokerEpoch(epoch)))


def test_a_controlled_shutdown_moves_leaders_off_leaves_the_isrs_and_stops_the_replicas(world):
    world.create("t", replicas=((1, 2), (2, 1)))
    world.done.clear()
    result = shutdown(world, 1)
    assert (result.error, result.remaining) == (ErrorCode.none, ())
    assert (world.stored("t", 0).leader, world.stored("t", 0).isr) == (2, (2,))
    assert (world.stored("t", 1).leader, world.stored("t", 1).isr) == (2, (2,))
    (stop,) = [one for one in world.done if isinstance(one, act.SendStopReplica)]
    assert (stop.broker, stop.delete) == (1, False)
    assert [one.partition for one, _ in stop.partitions] == [0, 1]


def test_the_last_isr_member_leads_through_its_shutdown_while_others_catch_up(world):
    world.create(replicas=((1, 2),))
    world.propose(1, 1)
    assert shutdown(world, 1).remaining == (TopicPartition("t", 0),)
    assert (world.stored().leader, world.stored().isr) == (1, (1,))
    world.propose(1, 1, 2)
    assert (world.stored().leader, world.stored().isr) == (2, (2,))
    assert shutdown(world, 1).remaining == ()


def test_a_partition_that_nobody_else_can_lead_does_not_hold_a_shutdown_up(world):
    world.create(replicas=((1,),))
    assert shutdown(world, 1).remaining == ()
    assert world.stored().leader == 1


def test_all_brokers_may_shut_down_one_after_the_other(world):
    world.create()
    assert [shutdown(world, broker).remaining for broker in (1, 2, 3)] == [(), (), ()]
    assert (world.stored().leader, world.stored().isr) == (3, (3,))


@pytest.mark.scenario("S62")
def test_a_shutdown_of_an_earlier_incarnation_is_refused(world):
    world.create()
    old = world.epoch(1)
    world.start(1)
    assert shutdown(world, 1, old).error == ErrorCode.stale_broker_epoch
    assert world.machine.image.shutting_down == set()


def test_a_broker_that_comes_back_from_its_shutdown_may_lead_again(world):
    world.create(replicas=((1, 2),))
    shutdown(world, 1)
    world.start(1, clean=True)
    world.propose(2, 2, 1)
    world.crash(2)
    assert world.stored().leader == 1


def test_producer_ids_are_handed_out_in_blocks_of_a_thousand_that_never_repeat(world):
    assert (allocate(world, 1).first, allocate(world, 1).length) == (0, 1_000)
    assert allocate(world, 2).first == 2_000
    world.activate()
    assert allocate(world, 3).first == 3_000


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_block_whose_write_was_lost_is_never_given_twice(world, lost):
    seen = [allocate(world, 1).first]
    world.zk.lose_next = lost
    seen.append(allocate(world, 1).first)
    seen.append(allocate(world, 1).first)
    assert seen == sorted(set(seen))


def test_producer_ids_are_not_given_to_an_earlier_incarnation(world):
    old = world.epoch(1)
    world.start(1)
    assert allocate(world, 1, old).error == ErrorCode.stale_broker_epoch


def test_a_fact_while_a_write_is_open_raises_with_the_story(world):
    world.create()
    world.zk.multi([])
    world.machine.on_broker_died(BrokerId(1), BrokerEpoch(world.epoch(1)), 5)
    with pytest.raises(IllegalTransition, match="while writing") as caught:
        world.machine.on_tick(6)
    assert "death of broker 1" in str(caught.value)


def test_a_machine_is_activated_once(world):
    with pytest.raises(IllegalTransition, match="expected new"):
        world.machine.on_activated(world.snapshot(), 0)


def test_a_write_that_is_refused_again_and_again_ends_the_term(world):
    world.create()
    world.before_write.extend([lambda: setattr(world.zk, "lose_next", "before")] * 40)
    del world.zk.nodes[znodes.broker_path(1)]
    assert isinstance(world.see_brokers()[-1], act.Resign)


def test_a_reload_closes_channels_of_brokers_that_went_and_opens_those_of_newcomers(world):
    world.create()
    before = world.epoch(1)

    def meanwhile():
        world.register(1)
        world.register(4)
        world.expire(2)
        world.zk.lose_next = "before"

    world.before_write.append(meanwhile)
    done = world.submit(AllocateProducerIds(BrokerId(3), BrokerEpoch(world.epoch(3))), 77)
    closed = {(one.broker, one.broker_epoch) for one in done if isinstance(one, act.Disconnect)}
    opened = {one.broker.id for one in done if isinstance(one, act.Connect)}
    assert (1, before) in closed
    assert {one for one, _ in closed} == {1, 2}
    assert opened == {1, 4}
    assert world.answer_in(done, 77).first == 0
    assert (world.stored().leader, world.stored().isr) == (1, (1, 3))


def test_a_new_machine_has_no_invariants_to_break():
    ControllerMachine(BrokerConfig()).check_invariants()


@pytest.mark.bug("B6", "away", "A controller starts a returning broker twice, and dies of an assertion.")
def test_a_broker_that_returns_while_another_return_is_being_handled_is_started_once(world):
    """Two brokers register again at the same time, under the old one's registration: the failure of the first
    makes an election necessary, whose write notices the second before the first was started again."""
    world.create()
    world.register(1)
    world.before_write.append(lambda: world.register(2))
    done = world.see_brokers()
    connects = [one.broker.id for one in done if isinstance(one, act.Connect)]
    disconnects = [one.broker for one in done if isinstance(one, act.Disconnect)]
    assert sorted(connects) == sorted(disconnects) == [1, 2]
    assert world.state().leader in (1, 2, 3)
