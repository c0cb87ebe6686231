"""Replicas whose logs failed, and what makes the controller count them again."""

from sparklog.core.controller import actions as act
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition


def sends(done, kind, broker):
    return [one for one in done if isinstance(one, kind) and one.broker == broker]


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
