"""Moving partitions to other brokers."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.partition_commands import AlterReassignments, ListReassignments, Move
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    DeleteTopics,
    DoomedTopic,
    Increase,
)
from sparklog.core.controller.leaders.reassignment import plan_move
from sparklog.core.controller.state.znodes import Assignment
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

T0 = TopicPartition("t", 0)


@pytest.fixture
def world(make_world):
    """Brokers 1 to 6 and a controller."""
    world = make_world()
    for broker in range(1, 7):
        world.register(broker)
    world.activate()
    return world


def move(world, *target, partition=T0, cancel=False):
    """What became of it."""
    wanted = None if cancel else tuple(map(BrokerId, target))
    return world.command(AlterReassignments((Move(partition, wanted),))).partitions[0]


def ongoing(world):
    return world.command(ListReassignments()).moves


def shape(world):
    state = world.stored()
    return state.replicas, state.adding, state.removing


def stops(done):
    return {one.broker: (one.partitions, one.delete) for one in done if isinstance(one, act.SendStopReplica)}


def test_a_move_begins_with_both_the_old_and_the_new_replicas_and_the_old_isr(world):
    world.create()
    assert move(world, 4, 2, 5).error == ErrorCode.none
    assert shape(world) == ((4, 2, 5, 1, 3), (4, 5), (1, 3))
    state = world.stored()
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2, 3), 1)
    (listed,) = ongoing(world)
    assert (listed.partition, listed.replicas, listed.adding, listed.removing) == (T0, *shape(world))


def test_a_move_ends_at_once_when_an_election_brings_its_target_into_the_isr(world):
    world.create(replicas=((1, 2),), min_insync_replicas="2")
    world.propose(1, 1)
    move(world, 2)
    assert shape(world) == ((2, 1), (), (1,))
    world.crash(1)
    assert (world.stored().leader, shape(world)) == (2, ((2,), (), ()))


def test_the_story_of_a_large_reassignment_names_its_beginning_only(world):
    world.create(replicas=((1, 2),) * 20)
    targets = tuple(BrokerId(one) for one in (3, 4))
    moves = tuple(Move(TopicPartition("t", number), targets) for number in range(20))
    world.command(AlterReassignments(moves))
    (line,) = [one for one in world.machine.events.lines if "for Reassign" in one]
    assert "20, first Move(partition=TopicPartition(topic='t', partition=0)" in line
    assert "partition=4" not in line


def test_all_replicas_old_and_new_are_told(world):
    world.create()
    world.done.clear()
    move(world, 4, 2, 5)
    assert {one.broker for one in world.done if isinstance(one, act.SendLeaderAndIsr)} == {1, 2, 3, 4, 5}


def test_it_ends_when_everybody_of_the_target_is_in_the_isr(world):
    world.create()
    move(world, 4, 2, 5)
    world.propose(1, 1, 2, 3, 4)
    assert shape(world) == ((4, 2, 5, 1, 3), (4, 5), (1, 3)), "broker 5 is not there yet"
    world.done.clear()
    world.propose(1, 1, 2, 3, 4, 5)
    assert shape(world) == ((4, 2, 5), (), ())
    state = world.stored()
    assert state.leader == 4, "the leader went; the first of the target takes over"
    assert set(state.isr) == {2, 4, 5}
    assert ongoing(world) == ()
    deleted = stops(world.done)
    assert set(deleted) == {1, 3}
    assert all(delete for _, delete in deleted.values())
    assert all(partitions == ((T0, state.leader_epoch),) for partitions, _ in deleted.values())


def test_a_leader_that_stays_goes_on_leading(world):
    world.create()
    move(world, 4, 1, 5)
    world.propose(1, 1, 2, 3, 4, 5)
    assert world.stored().leader == 1


def test_the_topic_and_the_partition_change_in_one_write_at_the_beginning_and_at_the_end(world):
    world.create()
    for change in (lambda: move(world, 4, 2, 3), lambda: world.propose(1, 1, 2, 3, 4)):
        world.done.clear()
        change()
        writes = [one for one in world.done if isinstance(one, act.WriteZooKeeper)]
        both = [one for one in writes if {"/brokers/topics/t"} & {each.path for each in one.operations}]
        assert len(both) == 1
        assert any(each.path.endswith("/state") for each in both[0].operations)


def test_another_order_of_the_same_brokers_is_written_at_once(world):
    world.create()
    move(world, 3, 2, 1)
    assert shape(world) == ((3, 2, 1), (), ())
    assert (world.stored().leader, set(world.stored().isr)) == (1, {1, 2, 3})


def test_a_move_to_where_the_partition_is_changes_nothing(world):
    world.create()
    before = world.stored()
    assert move(world, 1, 2, 3).error == ErrorCode.none
    assert world.stored() == before


def test_the_replication_factor_can_be_raised_and_lowered(world):
    world.create(replicas=((1, 2),))
    move(world, 1, 2, 3)
    world.propose(1, 1, 2, 3)
    assert shape(world) == ((1, 2, 3), (), ())
    move(world, 1)
    assert shape(world) == ((1,), (), ())
    assert world.stored().isr == (1,)


def test_a_cancelled_move_goes_back_to_where_it_began(world):
    world.create()
    move(world, 4, 2, 5)
    world.propose(1, 1, 2, 3, 4)
    world.done.clear()
    assert move(world, cancel=True).error == ErrorCode.none
    assert shape(world) == ((2, 1, 3), (), ())
    assert set(world.stored().isr) == {1, 2, 3}
    assert set(stops(world.done)) == {4, 5}


def test_cancelling_where_nothing_moves_is_refused(world):
    world.create()
    assert move(world, cancel=True).error == ErrorCode.no_reassignment_in_progress


def test_another_target_replaces_the_first_and_what_only_the_first_wanted_goes_at_once(world):
    world.create()
    move(world, 4, 5, 1)
    world.done.clear()
    move(world, 4, 6, 2)
    assert shape(world) == ((4, 6, 2, 1, 3), (4, 6), (1, 3))
    assert set(stops(world.done)) == {5}


def test_a_cancellation_that_would_leave_nobody_of_the_isr_is_refused(world):
    world.create(replicas=((1, 2),))
    move(world, 3, 4)
    world.propose(1, 1, 2, 3)
    world.crash(1)
    world.crash(2)
    assert world.stored().isr == (3,)
    refused = move(world, cancel=True)
    assert refused.error == ErrorCode.invalid_replica_assignment
    assert "committed records could be lost" in refused.message


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ((), "Empty replica list"),
        ((4, 4), "Duplicate replica ids"),
        ((4, -1), "Invalid broker id"),
        ((1, 9), "not alive: [9]"),
    ],
)
def test_an_impossible_target_is_refused_and_says_why(world, target, words):
    world.create()
    refused = move(world, *target)
    assert refused.error == ErrorCode.invalid_replica_assignment
    assert words in refused.message


def test_an_unknown_partition_and_one_named_twice_are_refused(world):
    world.create()
    assert move(world, 1, partition=TopicPartition("t", 7)).error == ErrorCode.unknown_topic_or_partition
    twice = AlterReassignments((Move(T0, (BrokerId(4),)), Move(T0, (BrokerId(5),))))
    assert [one.error for one in world.command(twice).partitions] == [
        ErrorCode.none,
        ErrorCode.invalid_request,
    ]


def test_partitions_of_one_topic_move_together_in_one_write(world):
    world.create(replicas=((1, 2), (2, 3), (3, 1)))
    moves = tuple(Move(TopicPartition("t", number), (BrokerId(4), BrokerId(5))) for number in (0, 2))
    world.done.clear()
    world.command(AlterReassignments(moves))
    assert len([one for one in world.done if isinstance(one, act.WriteZooKeeper)]) == 1
    assert [world.stored("t", number).adding for number in range(3)] == [(4, 5), (), (4, 5)]


def test_the_next_controller_ends_the_move(world):
    world.create()
    move(world, 4, 2, 3)
    world.lose_answers = ["after", "before"]  # the write that ends it never happens
    world.activate()
    world.propose(1, 1, 2, 3, 4)
    assert shape(world) == ((4, 2, 3), (), ())


def test_a_move_survives_the_death_of_its_leader_and_of_a_new_replica(world):
    world.create()
    move(world, 4, 5, 6)
    world.crash(1, 4)
    assert world.stored().leader == 2
    world.start(4)
    world.propose(2, 2, 3, 4, 5, 6)
    assert shape(world) == ((4, 5, 6), (), ())
    assert world.stored().leader == 4


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_move_whose_write_got_lost_begins_once(world, lost):
    world.create()
    world.lose_answers = [lost]
    assert move(world, 4, 2, 3).error == ErrorCode.none
    assert shape(world) == ((4, 2, 3, 1), (4,), (1,))


def test_a_topic_that_moves_can_be_deleted_and_its_new_replicas_are_deleted_too(world):
    world.create()
    move(world, 4, 5, 6)
    world.done.clear()
    world.command(DeleteTopics((DoomedTopic("t"),), 10_000))
    assert set(stops(world.done)) == {1, 2, 3, 4, 5, 6}


def test_more_moves_than_one_write_takes_are_all_made(world, monkeypatch):
    monkeypatch.setattr("sparklog.core.controller.leaders.partition_writes.PARTITIONS_PER_WRITE_MAX", 2)
    world.create(replicas=((1, 2),) * 5)
    moves = tuple(Move(TopicPartition("t", number), (BrokerId(3), BrokerId(2))) for number in range(5))
    results = world.command(AlterReassignments(moves)).partitions
    assert [one.error for one in results] == [ErrorCode.none] * 5
    assert all(world.stored("t", number).adding == (3,) for number in range(5))


def test_a_topic_that_moves_gets_no_more_partitions(world):
    world.create()
    move(world, 4, 2, 3)
    (result,) = world.command(CreatePartitions((Increase("t", 2),), 1_000)).topics
    assert result.error == ErrorCode.reassignment_in_progress


@pytest.mark.parametrize(
    ("present", "target", "planned"),
    [
        (Assignment((1, 2, 3)), (4, 5, 6), Assignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        (Assignment((1, 2, 3)), (3, 2, 1), Assignment((3, 2, 1))),
        (Assignment((1, 2, 3)), (1, 2), Assignment((1, 2, 3), (), (3,))),
        (Assignment((4, 5, 1, 2), (4, 5), (1, 2)), (4, 6), Assignment((4, 6, 1, 2), (4, 6), (1, 2))),
        (Assignment((4, 5, 1, 2), (4, 5), (1, 2)), (1, 2), Assignment((1, 2))),
    ],
)
def test_a_plan_holds_the_target_first_and_what_goes_last(present, target, planned):
    assert plan_move(present, target) == planned
