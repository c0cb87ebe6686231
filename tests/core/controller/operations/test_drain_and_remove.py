"""A drained broker has no replica left, stops, and can be removed then; a filled one gets its share."""

from collections import Counter

import pytest

from sparklog.core.controller.commands.broker_commands import LoseLogs
from sparklog.core.controller.commands.partition_commands import AlterReassignments, ElectLeaders, Move
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.operations.moves import NEXT_ROUND_AT, ROUND_MAX
from sparklog.core.controller.state import znodes
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.zookeeper import Create


@pytest.fixture
def four(world, operators):
    """Broker 4, too."""
    world.start(4)
    operators.host(4)
    return operators


def hosted(world, broker):
    image = world.machine.image
    return [one for one, _ in image.partitions() if broker in image.replicas_of(one)]


def finish_moves(world):
    """The new replicas of all moves get in sync."""
    image = world.machine.image
    for partition in sorted(image.moving):
        state = image.state(partition)
        joining = [one for one in state.adding if one not in state.isr and one in image.brokers]
        if joining and state.has_leader:
            world.propose(
                state.leader,
                *(*state.isr, *joining),
                topic=partition.topic,
                partition=partition.partition,
            )


def test_a_drained_broker_hands_over_then_moves_then_stops(world, four):
    world.create(replicas=((3, 1), (1, 2), (2, 3)))
    operation = four.begin("drain", 3)
    assert world.state(partition=0).leader == 1, "led by the other replica at once"
    assert world.machine.image.moving == {TopicPartition("t", 0), TopicPartition("t", 2)}
    assert four.wish(3) == "serving"
    assert four.waits(operation) == []
    finish_moves(world)
    assert hosted(world, 3) == []
    assert four.wish(3) == "drained"
    assert four.state(operation) == "running", "it has not stopped yet"
    four.stop_in_order(3)
    assert (four.state(operation), four.stored(operation).done) == ("done", 2)
    assert world.state(partition=1).replicas == (1, 2), "what need not move does not"


def test_two_brokers_that_are_drained_at_once_do_not_hand_over_to_each_other(world, four):
    world.create(replicas=((3, 2), (2, 3)))
    four.begin("drain", 3)
    four.begin("drain", 2)
    assert len(world.machine.image.moving) == 2
    while world.machine.image.moving:
        finish_moves(world)
    assert (four.wish(2), four.wish(3)) == ("drained", "drained")


def test_a_dead_broker_is_drained_too(world, four):
    world.create(replicas=((3, 1),))
    world.crash(3)
    operation = four.begin("drain", 3)
    finish_moves(world)
    assert (four.wish(3), four.state(operation)) == ("drained", "done")


def test_moves_go_in_bounded_rounds(world, four):
    world.create(replicas=((3, 1),) * (2 * ROUND_MAX))
    operation = four.begin("drain", 3)
    assert len(world.machine.image.moving) == ROUND_MAX
    done = four.stored(operation).total
    assert done == 2 * ROUND_MAX
    for partition in sorted(world.machine.image.moving)[: ROUND_MAX - NEXT_ROUND_AT]:
        state = world.machine.image.state(partition)
        members = (*state.isr, *state.adding)
        world.propose(state.leader, *members, partition=partition.partition)
        assert len(world.machine.image.moving) <= ROUND_MAX
    assert len(world.machine.image.moving) == ROUND_MAX, "the next round has begun"
    while world.machine.image.moving:
        finish_moves(world)
    assert four.wish(3) == "drained"


def test_a_destination_that_dies_is_replaced(world, four):
    world.start(5)
    world.create(replicas=((3, 1, 2),))
    four.begin("drain", 3)
    (first,) = world.state().adding
    world.crash(first)
    (second,) = world.state().adding
    assert {first, second} == {4, 5}
    finish_moves(world)
    assert second in world.state().replicas
    assert first not in world.state().replicas


def test_a_destination_whose_disk_fails_is_replaced(world, four):
    world.start(5)
    topic = world.create(replicas=((3, 1, 2),))
    four.begin("drain", 3)
    (first,) = world.state().adding
    world.submit(LoseLogs(first, BrokerEpoch(world.epoch(first)), ((topic, 0),)))
    assert set(world.state().adding) == {4, 5} - {first}


def test_without_another_destination_it_waits_with_a_name_and_goes_on_later(world, four):
    world.create(replicas=((3, 1, 2),))
    operation = four.begin("drain", 3)
    world.crash(4)
    assert four.waits(operation)[0] == "no broker is left that could take a replica of t-0"
    world.start(5)
    assert world.state().adding == (5,)
    finish_moves(world)
    assert four.wish(3) == "drained"


def test_too_few_brokers_are_refused_before_anything_moves(world, operators):
    world.create(replicas=((1, 2, 3),))
    assert operators.refused("drain", 3) == (
        "t-0 has 3 replicas, and 2 brokers would be left: [1, 2]; start another broker, or lower its "
        "replication factor with: sparklog reassign plan"
    )
    assert "no broker would be left" in operators.refused("drain", 1, 2, 3)
    assert not world.machine.image.operations


def test_a_partition_whose_records_are_on_the_dead_broker_alone_is_named(world, four):
    world.create("single", replicas=((3,),))
    world.crash(3)
    operation = four.begin("drain", 3)
    assert any("single-0" in words for words in four.waits(operation))
    assert four.wish(3) == "serving"


def test_a_partition_that_another_tool_moves_is_moved_after_that(world, four):
    world.create(replicas=((3, 1),))
    partition = TopicPartition("t", 0)
    world.command(AlterReassignments((Move(partition, (BrokerId(3), BrokerId(2))),)))
    operation = four.begin("drain", 3)
    assert four.waits(operation) == ["another tool moves t-0"]
    assert world.state().adding == (2,)
    finish_moves(world)
    assert world.state().removing == (3,)
    finish_moves(world)
    assert 3 not in world.state().replicas


def test_a_topic_that_is_deleted_or_grown_meanwhile_is_no_obstacle(world, four):
    world.create(replicas=((3, 1),))
    operation = four.begin("drain", 3)
    world.create("new", replicas=((1, 3),))
    assert TopicPartition("new", 0) in world.machine.image.moving, "placed there by hand"
    done = world.submit(DeleteTopics((DoomedTopic(name="t"),), 10_000))
    finish_moves(world)
    assert four.waits(operation) == ["broker 3 deletes topic t"]
    world.answer_pushes(done)
    assert four.wish(3) == "drained"


def test_leaders_are_not_given_back_to_a_broker_that_is_drained(world, four):
    world.create(replicas=((3, 1),) * 3)
    four.begin("drain", 3)
    world.command(ElectLeaders(False))
    world.now_ms += 1_000_000
    world.do(world.machine.on_tick(world.now_ms))
    assert all(world.state(partition=number).leader == 1 for number in range(3))


def test_a_new_controller_continues_a_drain_and_plans_nothing_twice(world, four):
    world.create(replicas=((3, 1),) * (ROUND_MAX + 10))
    operation = four.begin("drain", 3)
    before = set(world.machine.image.moving)
    world.activate()
    assert world.machine.image.moving == before
    while world.machine.image.moving:
        finish_moves(world)
    assert four.wish(3) == "drained"
    four.stop_in_order(3)
    assert four.state(operation) == "done"


def test_cancel_reverts_what_is_not_done(world, four):
    world.create(replicas=((3, 1), (3, 1)))
    operation = four.begin("drain", 3)
    state = world.state(partition=0)
    world.propose(state.leader, *(*state.isr, *state.adding), partition=0)
    four.cancel(operation)
    assert 3 not in world.state(partition=0).replicas, "this was done"
    assert set(world.state(partition=1).replicas) == {3, 1}
    assert not world.machine.image.moving
    assert (four.state(operation), four.wish(3)) == ("cancelled", "serving")


def test_a_filled_broker_gets_its_share_and_nothing_else_moves(world, operators):
    world.create(replicas=((1, 2), (2, 3), (3, 1)) * 4)
    world.start(4)
    operators.host(4)
    operation = operators.begin("fill", 4)
    while world.machine.image.moving:
        assert all(world.machine.image.state(one).adding == (4,) for one in world.machine.image.moving)
        finish_moves(world)
    assert operators.state(operation) == "done"
    assert operators.stored(operation).total == 6
    counts = Counter(broker for number in range(12) for broker in world.state(partition=number).replicas)
    assert counts == {1: 6, 2: 6, 3: 6, 4: 6}


def test_a_fill_of_a_broker_that_does_not_serve_is_refused_or_waits(world, four):
    world.create(replicas=((1, 2), (2, 3)) * 4)
    operation = four.begin("fill", 4)
    world.crash(4)
    assert four.waits(operation) == ["broker 4 does not serve"]
    assert four.refused("fill", 7).startswith("there is no broker 7")
    four.cancel(operation)
    assert four.state(operation) == "cancelled"
    assert not world.machine.image.moving
    assert four.refused("fill", 4) == "broker 4 does not serve, so it cannot be filled"


def drained(world, operators, broker):
    operators.begin("drain", broker)
    while world.machine.image.moving:
        finish_moves(world)
    operators.stop_in_order(broker)
    assert operators.wish(broker) == "drained"


def test_a_removed_broker_has_no_settings_and_no_proofs_any_more(world, four):
    path = znodes.broker_config_path("3")
    world.zk.multi([Create(path, znodes.encode_configs({"log.cleaner.threads": "2"}))])
    world.activate()
    drained(world, four, 3)
    operation = four.begin("remove", 3)
    assert (four.state(operation), four.wish(3)) == ("done", "removed")
    assert world.zk.get(path) is None
    assert world.zk.get(znodes.incarnation_path(BrokerId(3))) is None
    assert "was removed" in four.refused("stop", 3)
    assert not world.machine.image.has_known("3")


def test_a_removed_broker_can_be_started_again(world, four):
    drained(world, four, 3)
    four.begin("remove", 3)
    operation = four.begin("start", 3)
    world.start(3)
    assert (four.state(operation), four.wish(3)) == ("done", "serving")


def test_a_removal_is_refused_while_the_broker_serves_or_may_return(world, four):
    assert "serves" in four.refused("remove", 3)
    world.crash(3)
    assert "may return" in four.refused("remove", 3)


def test_a_removal_is_refused_while_a_partition_names_the_broker(world, four):
    world.create(replicas=((3, 1),))
    world.crash(3)
    four.begin("stop", 3)
    assert four.refused("remove", 3) == (
        "t-0 has a replica on broker 3, whose records may be needed; move it with: sparklog brokers drain 3"
    )


def test_a_broker_that_registers_while_it_is_removed_is_not(world, four):
    drained(world, four, 3)
    world.before_write = [lambda: world.register(3)]
    assert "serves" in four.refused("remove", 3)
    assert world.zk.get(znodes.incarnation_path(BrokerId(3))) is not None


def test_a_deletion_that_waits_for_a_removed_broker_ends(world, four):
    world.create(replicas=((3, 1),))
    world.crash(3)
    done = world.submit(DeleteTopics((DoomedTopic(name="t"),), 10_000))
    world.answer_pushes(done)
    assert "t" in world.machine.image.deletions
    four.begin("stop", 3)
    four.begin("remove", 3)
    assert "t" not in world.machine.image.topics


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_removal_whose_answer_is_lost_is_done_once(world, four, lost):
    drained(world, four, 3)
    world.lose_answers.append(lost)
    operation = four.begin("remove", 3)
    assert (four.state(operation), four.wish(3)) == ("done", "removed")
