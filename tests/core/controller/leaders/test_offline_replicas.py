"""Replicas whose logs failed, and what makes the controller count them again."""

import uuid

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import LoseLogs
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition


def sends(done, kind, broker):
    return [one for one in done if isinstance(one, kind) and one.broker == broker]


@pytest.mark.bug(
    "B3", "away", "A replica that has repaired its log stays out of the ISR until its broker restarts."
)
def test_a_replica_that_takes_up_its_role_after_all_is_counted_again(world):
    """Found by the simulation: told that it is out of the ISR, a follower had cut its corrupt log and caught
    up, and was refused as offline until its broker restarted."""
    partition = TopicPartition("t", 0)
    world.create()
    world.crash(2)
    roles = sends(world.start(2), act.SendLeaderAndIsr, 2)
    world.propose(1, 1, 2, 3)
    done = world.answer_pushes(roles, {(2, partition): ErrorCode.kafka_storage_error})
    assert world.propose(1, 1, 2, 3).error == ErrorCode.ineligible_replica
    world.answer_pushes(sends(done, act.SendLeaderAndIsr, 2), {(2, partition): ErrorCode.none})
    assert world.propose(1, 1, 2, 3).error == ErrorCode.none


def lost(world, broker, epoch=None):
    """The broker reports that the disk under its replica of t-0 failed."""
    topic_id = world.machine.image.topics["t"].id
    at = world.epoch(broker) if epoch is None else epoch
    return world.command(LoseLogs(BrokerId(broker), BrokerEpoch(at), ((topic_id, 0), (uuid.UUID(int=99), 0))))


def test_a_leader_that_reports_its_disk_is_replaced_at_once(world):
    world.create()
    assert world.state().leader == 1
    assert lost(world, 1).error == ErrorCode.none
    assert (world.state().leader, world.state().isr) == (2, (2, 3))
    assert world.propose(2, 1, 2, 3).error == ErrorCode.ineligible_replica


def test_the_last_replica_of_an_isr_that_reports_its_disk_stays_its_last_member(world):
    world.create(replicas=((1,),))
    lost(world, 1)
    assert (world.state().leader, world.state().isr) == (-1, (1,))


def test_a_report_of_an_earlier_life_changes_nothing(world):
    world.create()
    assert lost(world, 1, epoch=0).error == ErrorCode.stale_broker_epoch
    assert world.state().leader == 1


@pytest.mark.bug("B50", "away", "A late report of damage keeps a repaired replica out of the ISR.")
def test_a_late_report_of_damage_is_settled_by_the_brokers_answer_to_its_role(world):
    """Found by the simulation, seed 512840: nobody led the cluster when it was sent; the next controller had
    heard of the damage, and of the mending, in answers to roles when it came.
    """
    partition = TopicPartition("t", 0)
    world.create()
    assert world.propose(1, 1, 3).error == ErrorCode.none
    world.next_command += 1
    topic_id = world.machine.image.topics["t"].id
    report = LoseLogs(BrokerId(2), BrokerEpoch(world.epoch(2)), ((topic_id, 0),))
    roles = sends(world.submit(report), act.SendLeaderAndIsr, 2)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.ineligible_replica
    world.answer_pushes(roles, {(2, partition): ErrorCode.none})
    assert world.propose(1, 1, 2, 3).error == ErrorCode.none


@pytest.mark.bug("B27", "away", "A replica of a recreated topic counts as failed.")
@pytest.mark.parametrize("lose", ["", "after"], ids=["", "all is read again"])
def test_a_topic_that_is_made_again_does_not_inherit_the_failed_logs_of_its_namesake(world, lose):
    """A log that failed in a directory that serves can be deleted, and its topic with it."""
    world.create()
    lost(world, 1)
    world.next_command += 1
    doomed = DeleteTopics((DoomedTopic("t"),), 10_000)
    stops = world.submit(doomed)
    world.zk.lose_next = lose
    world.answer_pushes(stops)
    assert not world.zk.lose_next
    assert "t" not in world.machine.image.topics
    world.create()
    assert (world.state().leader, world.state().isr) == (1, (1, 2, 3))
