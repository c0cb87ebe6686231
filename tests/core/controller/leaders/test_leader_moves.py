"""Preferred and unclean elections that are asked for, and the rebalance of leadership."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.partition_commands import ElectLeaders
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.settings.config import BrokerConfig

T0 = TopicPartition("t", 0)


def elect(world, *partitions, unclean=False):
    asked = None if not partitions else tuple(partitions)
    return world.command(ElectLeaders(unclean, asked)).partitions


def bounce(world, broker):
    """The broker goes and comes back, and its partitions' leaders take it into their ISRs again."""
    world.crash(broker)
    world.start(broker)
    for topic in world.machine.image.topics:
        for number in range(len(world.machine.image.topics[topic].states)):
            state = world.state(topic, number)
            if broker in state.replicas and broker not in state.isr and state.has_leader:
                world.propose(state.leader, *state.isr, broker, topic=topic, partition=number)


def test_the_preferred_replica_leads_again_with_the_same_isr_and_a_new_epoch(world):
    world.create()
    bounce(world, 1)
    assert world.stored().leader == 2
    (result,) = elect(world, T0)
    assert result.error == ErrorCode.none
    state = world.stored()
    assert (state.leader, set(state.isr), state.leader_epoch) == (1, {1, 2, 3}, 2)


def test_replicas_hear_of_the_new_leader(world):
    world.create()
    bounce(world, 1)
    world.done.clear()
    elect(world, T0)
    roles = [one for one in world.done if isinstance(one, act.SendLeaderAndIsr)]
    assert {one.broker for one in roles} == {1, 2, 3}


def test_every_partition_s_refusal_says_why(world):
    world.create("t")
    world.create("u")
    world.crash(1)
    world.create("v", replicas=((2, 3),))
    world.command(DeleteTopics((DoomedTopic("u"),), 10_000))
    results = elect(world, T0, TopicPartition("u", 0), TopicPartition("v", 0), TopicPartition("w", 0))
    assert [one.error for one in results] == [
        ErrorCode.preferred_leader_not_available,
        ErrorCode.invalid_topic_exception,
        ErrorCode.election_not_needed,
        ErrorCode.unknown_topic_or_partition,
    ]
    assert "broker 1, is not alive and in the ISR [2, 3]" in results[0].message


def test_asking_for_all_partitions_answers_only_for_those_that_needed_something(world):
    world.create("t", replicas=((1, 2), (2, 1), (1, 2)))
    bounce(world, 1)
    results = elect(world)
    assert sorted(one.partition.partition for one in results) == [0, 2]
    assert [world.stored("t", number).leader for number in range(3)] == [1, 2, 1]


def test_a_preferred_replica_that_is_alive_but_out_of_the_isr_does_not_lead(world):
    world.create()
    world.crash(1)
    world.start(1)
    assert elect(world, T0)[0].error == ErrorCode.preferred_leader_not_available
    assert world.stored().leader == 2


def test_a_preferred_replica_that_is_shutting_down_does_not_lead(world):
    world.create()
    bounce(world, 1)
    world.command(ControlledShutdown(BrokerId(1), BrokerEpoch(world.epoch(1))))
    assert elect(world, T0)[0].error == ErrorCode.preferred_leader_not_available


def test_more_elections_than_one_write_takes_are_all_answered(world, monkeypatch):
    monkeypatch.setattr("sparklog.core.controller.leaders.partition_writes.PARTITIONS_PER_WRITE_MAX", 2)
    world.create("t", replicas=((1, 2),) * 5)
    bounce(world, 1)
    world.done.clear()
    results = elect(world)
    assert sorted(one.partition.partition for one in results) == list(range(5))
    assert {world.stored("t", number).leader for number in range(5)} == {1}
    assert len([one for one in world.done if isinstance(one, act.WriteZooKeeper)]) == 3


@pytest.mark.parametrize("lost", ["before", "after"])
def test_an_election_whose_write_got_lost_ends_with_the_preferred_leader(world, lost):
    world.create()
    bounce(world, 1)
    world.lose_answers = [lost]
    (result,) = elect(world, T0)
    assert result.error in (ErrorCode.none, ErrorCode.election_not_needed)
    assert world.stored().leader == 1


def test_an_unclean_election_that_is_demanded_takes_a_live_replica_and_reports_the_loss(world):
    lose_the_only_member_in_sync(world)
    assert world.stored().leader == -1
    world.done.clear()
    (result,) = elect(world, T0, unclean=True)
    assert result.error == ErrorCode.none
    assert (world.stored().leader, world.stored().isr) == (2, (2,))
    assert [one for one in world.done if isinstance(one, ClusterEvent) and one.losses]


@pytest.mark.bug("B5")
@pytest.mark.parametrize("lost", ["before", "after"])
def test_the_loss_of_an_unclean_election_is_reported_also_when_nobody_answered_its_write(world, lost):
    lose_the_only_member_in_sync(world)
    world.done.clear()
    world.lose_answers = [lost]
    elect(world, T0, unclean=True)
    assert world.stored().leader == 2
    assert [one for one in world.done if isinstance(one, ClusterEvent) and one.losses]


def lose_the_only_member_in_sync(world):
    """Broker 1 dies; broker 2, the other replica, lives and has reported its log."""
    world.create(replicas=((1, 2),))
    world.propose(1, 1)
    world.answer_pushes(world.crash(1), ends={(2, T0): (0, 7)})


def test_a_demanded_election_takes_the_greatest_of_the_logs_that_were_reported(world):
    world.create()
    world.propose(1, 1)
    world.answer_pushes(world.crash(1), ends={(2, T0): (0, 7), (3, T0): (0, 9)})
    assert elect(world, T0, unclean=True)[0].error == ErrorCode.none
    assert world.stored().leader == 3


def test_a_demanded_election_takes_no_log_that_was_not_reported(world):
    world.create(replicas=((1, 2),))
    world.propose(1, 1)
    done = world.crash(1)
    (result,) = elect(world, T0, unclean=True)
    assert result.error == ErrorCode.eligible_leaders_not_available
    assert "has reported its log yet" in result.message
    world.answer_pushes(done, ends={(2, T0): (0, 7)})
    assert elect(world, T0, unclean=True)[0].error == ErrorCode.none


def test_an_unclean_election_where_somebody_leads_or_nobody_lives_is_refused(world):
    world.create(replicas=((1, 2),))
    assert elect(world, T0, unclean=True)[0].error == ErrorCode.election_not_needed
    world.crash(1, 2)
    assert elect(world, T0, unclean=True)[0].error == ErrorCode.eligible_leaders_not_available


# -- by itself


def rebalancing(make_world, **settings):
    given = {"leader.imbalance.check.interval.seconds": "10", **settings}
    world = make_world(config=BrokerConfig.parse(given))
    for broker in (1, 2, 3):
        world.register(broker)
    world.activate()
    return world


def tick(world, now_ms):
    world.now_ms = now_ms
    return world.do(world.machine.on_tick(now_ms))


def test_leaderships_go_back_to_the_preferred_replicas_after_the_interval(make_world):
    world = rebalancing(make_world)
    assert [one.deadline_ms for one in world.done if isinstance(one, act.WakeAt)] == [10_000]
    world.create()
    bounce(world, 1)
    tick(world, 9_999)
    assert world.stored().leader == 2
    done = tick(world, 10_000)
    assert world.stored().leader == 1
    assert [one.deadline_ms for one in done if isinstance(one, act.WakeAt)] == [20_000]


def test_an_imbalance_below_the_threshold_is_left_alone(make_world):
    world = rebalancing(make_world, **{"leader.imbalance.per.broker.percentage": "50"})
    world.create(replicas=((1, 2), (1, 2)))
    bounce(world, 1)
    elect(world, T0)
    tick(world, 10_000)
    assert [world.stored("t", number).leader for number in range(2)] == [1, 2]


def test_a_cluster_that_wants_no_rebalance_is_not_rebalanced(make_world):
    world = rebalancing(make_world, **{"auto.leader.rebalance.enable": "false"})
    world.create()
    bounce(world, 1)
    tick(world, 1_000_000)
    assert world.stored().leader == 2
