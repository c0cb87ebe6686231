"""Giving topics more partitions."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    DeleteTopics,
    DoomedTopic,
    Increase,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId


def increase(world, count, assignment=None, topic="t", **more):
    """What was done; the answer waits for the brokers."""
    world.next_command += 1
    placed = None if assignment is None else tuple(tuple(map(BrokerId, one)) for one in assignment)
    request = CreatePartitions((Increase(topic, count, placed),), 10_000, **more)
    return world.submit(request)


def refusal(world, *arguments, **named):
    (result,) = world.answer_in(increase(world, *arguments, **named)).topics
    return result.error, result.message


def test_new_partitions_go_on_with_the_topic_s_replication_factor_and_are_led(world):
    world.create(replicas=((1, 2),))
    done = increase(world, 4)
    (result,) = world.answer_in(world.answer_pushes(done)).topics
    assert (result.error, result.partitions) == (ErrorCode.none, 4)
    states = [world.stored("t", number) for number in range(4)]
    assert states[0].replicas == (1, 2)
    assert all(len(state.replicas) == 2 and state.leader == state.replicas[0] for state in states)
    assert {state.leader for state in states} == {1, 2, 3}, "the leaders are spread"


def test_new_partitions_go_where_they_are_told_to(world):
    world.create(replicas=((1, 2),))
    increase(world, 3, ((3, 1), (2, 3)))
    assert [world.stored("t", number).replicas for number in range(3)] == [(1, 2), (3, 1), (2, 3)]


def test_the_new_replicas_hear_that_they_are_new_and_the_old_ones_hear_nothing(world):
    world.create(replicas=((1, 2),))
    done = increase(world, 2, ((3, 2),))
    roles = [one for one in done if isinstance(one, act.SendLeaderAndIsr)]
    assert {one.broker for one in roles} == {2, 3}
    assert all([number for number, _ in one.topics[0].partitions] == [1] for one in roles)
    assert all(len(one.new) == 1 for one in roles)


def test_partitions_survive_a_change_of_controllers(world):
    world.create(replicas=((1, 2),))
    increase(world, 3)
    before = [world.stored("t", number) for number in range(3)]
    world.activate()
    assert [world.stored("t", number) for number in range(3)] == before


@pytest.mark.parametrize("lost", ["before", "after"])
def test_an_increase_whose_write_got_lost_is_made_once(world, lost):
    world.create(replicas=((1, 2),))
    world.lose_answers = [lost]
    (result,) = world.answer_in(world.answer_pushes(increase(world, 3))).topics
    assert (result.error, result.partitions) == (ErrorCode.none, 3)
    assert world.stored("t", 2).leader_epoch == 0


def test_a_dry_run_changes_nothing(world):
    world.create(replicas=((1, 2),))
    (result,) = world.answer_in(increase(world, 3, validate_only=True)).topics
    assert result.error == ErrorCode.none
    assert len(world.machine.image.topics["t"].states) == 1


@pytest.mark.parametrize(
    ("count", "assignment", "error", "words"),
    [
        (2, None, ErrorCode.invalid_partitions, "Topic already has 2 partitions."),
        (1, None, ErrorCode.invalid_partitions, "higher than the requested 1"),
        (1_000_000, None, ErrorCode.invalid_partitions, "larger than 100000"),
        (4, ((1, 2),), ErrorCode.invalid_replica_assignment, "by 2 but 1 assignments"),
        (
            3,
            ((1, 2, 3),),
            ErrorCode.invalid_replica_assignment,
            "have 2 replicas, but partition 2 is given 3",
        ),
        (3, ((1, 1),), ErrorCode.invalid_replica_assignment, "named twice"),
        (3, ((1, 9),), ErrorCode.invalid_replica_assignment, "not alive: [9]"),
    ],
)
def test_an_impossible_increase_is_refused_and_says_why(world, count, assignment, error, words):
    world.create(replicas=((1, 2), (2, 3)))
    code, message = refusal(world, count, assignment)
    assert code == error
    assert words in message
    assert len(world.machine.image.topics["t"].states) == 2


def test_an_unknown_topic_and_one_named_twice_are_refused(world):
    assert refusal(world, 3, topic="nosuch")[0] == ErrorCode.unknown_topic_or_partition
    world.create()
    request = CreatePartitions((Increase("t", 2), Increase("t", 3)), 10_000)
    answers = world.command(request).topics
    assert [one.error for one in answers] == [ErrorCode.invalid_request] * 2


def test_a_topic_that_is_being_deleted_grows_no_more(world):
    world.create()
    world.command(DeleteTopics((DoomedTopic("t"),), 10_000))
    assert refusal(world, 3)[0] == ErrorCode.unknown_topic_or_partition


def test_the_partitions_of_an_internal_topic_cannot_be_changed(world):
    world.create("__consumer_offsets", replicas=((1, 2),))
    code, message = refusal(world, 2, topic="__consumer_offsets")
    assert code is ErrorCode.invalid_partitions
    assert "coordinators would look" in message
