"""Bugs that Kafka's controller once had, played again."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.partition_commands import AlterReassignments, Move
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition

T0 = TopicPartition("t", 0)


def move(world, *target):
    wanted = Move(T0, tuple(map(BrokerId, target)))
    (result,) = world.command(AlterReassignments((wanted,))).partitions
    assert result.error == ErrorCode.none


def told(done):
    """(broker, leader epoch that the metadata of t-0 names) of every UpdateMetadata, in order."""
    return [
        (one.broker, dict(topic.partitions)[0].leader_epoch)
        for one in done
        if isinstance(one, act.SendUpdateMetadata)
        for topic in one.topics
    ]


@pytest.mark.kafka_bug(
    "K25", "KAFKA-1097", "A move removed a replica from the ISR, and its next fetch restored it."
)
def test_kafka_1097_a_replica_that_was_moved_away_cannot_come_back_into_the_isr(world):
    """Its last fetch was on its way when it was removed, and made the leader propose it again."""
    world.start(4)
    world.create()
    move(world, 1, 2, 4)
    world.propose(1, 1, 2, 3, 4)
    assert (world.stored().replicas, set(world.stored().isr)) == ((1, 2, 4), {1, 2, 4})
    assert world.propose(1, 1, 2, 3, 4).error == ErrorCode.ineligible_replica
    assert set(world.stored().isr) == {1, 2, 4}


@pytest.mark.kafka_bug(
    "K27",
    "KAFKA-9212",
    "A move raised the leader epoch for brokers but not for clients, which were fenced until its end.",
)
def test_kafka_9212_clients_hear_of_every_leader_epoch_that_a_move_begins(world):
    """Brokers were told of the new epoch and clients of the old one, so that all of these were fenced."""
    world.start(4)
    world.create()
    for step in (lambda: move(world, 4, 2, 1), lambda: world.propose(1, 1, 2, 3, 4)):
        before = world.stored().leader_epoch
        world.done.clear()
        step()
        now = world.stored().leader_epoch
        assert now > before
        last = dict(told(world.done))
        assert last == dict.fromkeys((1, 2, 3, 4), now)
        roles = {
            dict(topic.partitions)[0].leader_epoch
            for one in world.done
            if isinstance(one, act.SendLeaderAndIsr)
            for topic in one.topics
        }
        assert max(roles) == now


@pytest.mark.kafka_bug(
    "K22",
    "KAFKA-14140, KIP-841",
    "A broker in controlled shutdown fetched again, was counted, and was elected as it exited.",
)
def test_kafka_14140_a_broker_that_shuts_down_is_neither_counted_nor_elected(world):
    """KIP-841: it still fetches, and is caught up."""
    world.create()
    world.command(ControlledShutdown(BrokerId(3), BrokerEpoch(world.epoch(3))))
    assert world.propose(1, 1, 2, 3).error == ErrorCode.ineligible_replica
    world.crash(1, 2)
    assert world.stored().leader != 3
    assert 3 not in world.stored().isr


@pytest.mark.kafka_bug(
    "K23",
    "KAFKA-14617, KIP-903",
    "A replica returned with an empty disk while its ISR proposal was in flight.",
)
def test_kafka_14617_a_replica_that_came_back_empty_is_not_counted_for_what_it_had(world):
    """KIP-903: the proposal that counts it was made before it failed, and is written after it is back."""
    world.create()
    world.propose(1, 1, 2)
    seen = world.epoch(3)
    world.start(3, directory="an empty disk")
    assert world.propose(1, 1, 2, 3, epochs={3: seen}).error == ErrorCode.ineligible_replica
    world.crash(1, 2)
    assert world.stored().leader != 3


@pytest.mark.kafka_bug("K33")
def test_kafka_8733_a_slow_leader_does_not_take_the_partition_offline(world):
    """Its disk is slow, all followers seem to lag, the ISR is the leader alone, and the leader dies.

    They left at the minimum, and without them nothing was committed since: one of them may lead.
    """
    world.create(min_insync_replicas="2")
    world.propose(1, 1)
    assert world.stored().isr == (1,)
    done = world.crash(1)
    assert (world.stored().leader, world.stored().isr) == (2, (2,))
    assert not [one for one in done if isinstance(one, ClusterEvent) and one.losses]


@pytest.mark.kafka_bug("K16")
def test_kafka_2729_a_leader_without_its_session_cannot_change_the_isr_and_is_replaced(world):
    """It led on with an old version of the state for ever; now its registration is its right to propose."""
    world.create()
    epoch = world.epoch(1)
    before = world.stored()
    world.crash(1)
    assert world.stored().leader == 2
    refused = world.propose(
        1, 1, leader_epoch=before.leader_epoch, partition_epoch=before.partition_epoch,
        epochs={"leader": epoch, 1: epoch},
    )  # fmt: skip
    assert refused.error == ErrorCode.stale_broker_epoch
    assert world.stored().isr == (2, 3)
