"""A throttle limits the moves of its operation, ends with it, and leaves others as they are."""

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.partition_commands import AlterReassignments, Move
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.leaders import partition_writes
from sparklog.core.controller.operations import planned_moves
from sparklog.core.controller.operations.throttling import FOLLOWERS, LEADERS, RATES
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.operations import OperationState, operation_path
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.zookeeper import Create

SOME, FEW = 1_000_000, 1_000


def rates(world, broker=1):
    """What the broker was last sent, or None for no limit."""
    sent = [one for one in world.done if isinstance(one, act.SendUpdateMetadata) and one.broker == broker]
    found = {sent[-1].dynamic_configs.get(name) for name in RATES}
    assert len(found) == 1
    (rate,) = found
    return None if rate is None else int(rate)


def lists(world, topic="t", broker=1):
    """The throttled replicas of a topic, as the broker was last sent them."""
    sent = [
        update
        for one in world.done
        if isinstance(one, act.SendUpdateMetadata) and one.broker == broker
        for update in one.topics
        if update.name == topic
    ]
    found = [sent[-1].configs.get(name) for name in (LEADERS, FOLLOWERS)]
    return tuple(one and ",".join(sorted(one.split(","))) for one in found)


def end_moves(world):
    for partition in sorted(world.machine.image.moving):
        state = world.machine.image.state(partition)
        members = (*state.isr, *state.adding)
        world.propose(state.leader, *members, topic=partition.topic, partition=partition.partition)


def test_a_throttle_comes_with_its_operation_and_goes_with_it(world, operators):
    world.create(replicas=((3, 1),))
    operators.begin("drain", 3, throttle=SOME)
    assert rates(world) == SOME
    assert lists(world) == ("0:1,0:3", "0:2")
    end_moves(world)
    assert lists(world) == (None, None)
    operators.stop_in_order(3)
    assert rates(world) is None


def test_of_two_throttles_the_lower_one_counts_and_the_other_stays(world, operators):
    world.start(4)
    world.create(replicas=((3, 1), (2, 1)))
    first = operators.begin("drain", 3, throttle=FEW)
    second = operators.begin("drain", 2, throttle=SOME)
    assert rates(world) == FEW
    operators.cancel(first)
    assert rates(world) == SOME, "it ends with its own operation"
    operators.cancel(second)
    assert rates(world) is None


def test_what_other_tools_have_set_stays_and_counts_if_it_is_lower(world, operators):
    path = znodes.broker_config_path("1")
    world.zk.multi([Create(path, znodes.encode_configs(dict.fromkeys(RATES, str(FEW))))])
    world.activate()
    world.create(replicas=((3, 1),), **{LEADERS.replace(".", "_"): "0:1"})
    operation = operators.begin("drain", 3, throttle=SOME)
    assert (rates(world, 1), rates(world, 2)) == (FEW, SOME)
    assert lists(world) == ("0:1,0:3", "0:2")
    operators.cancel(operation)
    assert (rates(world, 1), rates(world, 2)) == (FEW, None)
    assert lists(world)[0] == "0:1"
    assert world.machine.image.dynamic_configs(BrokerId(1)) == dict.fromkeys(RATES, str(FEW))


def test_a_new_controller_goes_on_with_the_throttle(world, operators):
    world.create(replicas=((3, 1),))
    operators.begin("drain", 3, throttle=SOME)
    world.done.clear()
    world.activate()
    assert rates(world) == SOME
    assert lists(world) == ("0:1,0:3", "0:2")


def test_moves_of_other_tools_are_not_throttled(world, operators):
    world.create(replicas=((3, 1),))
    world.create("other", replicas=((1,),))
    operators.begin("drain", 3, throttle=SOME)
    world.command(AlterReassignments((Move(TopicPartition("other", 0), (BrokerId(2),)),)))
    assert lists(world, "other") == (None, None)


# -- moves of a plan


def plan(*moves):
    """Topic, partition and the brokers where its replicas shall be."""
    return tuple(
        Move(TopicPartition(topic, number), target and tuple(map(BrokerId, target)))
        for topic, number, target in moves
    )


def execute(world, *moves, throttle=SOME):
    return world.command(AlterReassignments(plan(*moves), throttle)).operation


def of(world, operation):
    return world.machine.image.operations[operation]


def test_moves_of_a_plan_have_their_throttle_until_they_have_ended(world, operators):
    world.create(replicas=((3, 1), (3, 1)))
    operation = execute(world, ("t", 0, (2, 1)))
    assert str(of(world, operation)) == "operation 1 (reassign of 1 partition)"
    assert rates(world) == SOME
    assert lists(world) == ("0:1,0:3", "0:2")
    end_moves(world)
    assert of(world, operation).state is OperationState.done
    assert rates(world) is None
    assert lists(world) == (None, None)


def test_the_operation_begins_in_the_write_that_begins_its_moves(world, operators, monkeypatch):
    world.create(replicas=((3, 1),))
    writes, multi = [], world.zk.multi

    def note(operations, **how):
        writes.append({one.path for one in operations})
        return multi(operations, **how)

    monkeypatch.setattr(world.zk, "multi", note)
    operation = execute(world, ("t", 0, (2, 1)))
    assert operators.stored(operation).partitions == (TopicPartition("t", 0),)
    (first, *_) = [paths for paths in writes if znodes.state_path("t", 0) in paths]
    assert operation_path(operation) in first


def test_a_plan_sent_again_is_limited_by_the_operation_that_it_has(world):
    world.create(replicas=((3, 1),))
    first = execute(world, ("t", 0, (2, 1)))
    assert execute(world, ("t", 0, (2, 1))) == first
    assert list(world.machine.image.operations) == [first]


def test_a_later_throttle_of_the_same_moves_replaces_the_one_before(world):
    world.create(replicas=((3, 1), (3, 1)))
    first = execute(world, ("t", 0, (2, 1)), ("t", 1, (2, 1)), throttle=FEW)
    second = execute(world, ("t", 0, (2, 1)))
    assert of(world, first).partitions == (TopicPartition("t", 1),)
    assert rates(world) == FEW, "of two the lower one counts"
    third = execute(world, ("t", 1, (2, 1)))
    assert [of(world, one).is_running for one in (first, second, third)] == [False, True, True]
    assert rates(world) == SOME


def test_moves_that_began_without_a_throttle_get_one(world):
    world.create(replicas=((3, 1),))
    assert execute(world, ("t", 0, (2, 1)), throttle=0) == -1
    assert lists(world) == (None, None)
    execute(world, ("t", 0, (2, 1)))
    assert (rates(world), lists(world)) == (SOME, ("0:1,0:3", "0:2"))


def test_moves_that_are_taken_back_take_their_operation_with_them(world):
    world.create(replicas=((3, 1),))
    operation = execute(world, ("t", 0, (2, 1)))
    world.command(AlterReassignments(plan(("t", 0, None))))
    assert not of(world, operation).is_running
    assert rates(world) is None


def test_an_operation_that_is_cancelled_takes_its_moves_back(world, operators):
    world.create(replicas=((3, 1),))
    operation = execute(world, ("t", 0, (2, 1)))
    operators.cancel(operation)
    assert not world.machine.image.moving
    assert rates(world) is None


def test_a_drain_begins_beside_a_plan_and_a_topic_that_goes_ends_it(world, operators):
    world.create(replicas=((3, 1),))
    world.create("other", replicas=((3, 1),))
    operation = execute(world, ("t", 0, (2, 1)))
    operators.begin("drain", 3)
    world.command(DeleteTopics((DoomedTopic("t"),), 1_000))
    assert not of(world, operation).is_running


def test_what_moves_no_replica_has_no_operation(world):
    world.create(replicas=((3, 1),))
    assert execute(world, ("t", 0, (1, 3)), ("nowhere", 0, (1,))) == -1
    assert not world.machine.image.operations


def test_more_moves_than_an_operation_can_name_are_refused_before_any_begins(world, monkeypatch):
    monkeypatch.setattr(planned_moves, "OPERATION_BYTES_MAX", 300)
    world.create(replicas=((3, 1),) * 100)
    moves = [("t", number, (2, 1)) for number in range(100)]
    result = world.command(AlterReassignments(plan(*moves), SOME))
    assert "split the plan" in result.message
    assert not world.machine.image.moving


def test_a_plan_of_many_writes_is_one_operation(world, monkeypatch):
    monkeypatch.setattr(partition_writes, "PARTITIONS_PER_WRITE_MAX", 2)
    world.create(replicas=((3, 1),) * 5)
    operation = execute(world, *(("t", number, (2, 1)) for number in range(5)))
    assert list(world.machine.image.operations) == [operation]
    assert (of(world, operation).total, len(of(world, operation).partitions)) == (5, 5)


def test_a_plan_that_cannot_go_on_says_what_it_waits_for(world, operators):
    world.create(replicas=((3, 1),))
    operation = execute(world, ("t", 0, (2, 1)))
    assert operators.waits(operation) == []
    world.crash(2)
    (wait,) = operators.waits(operation)
    assert wait == "1 move cannot go on: t-0, as replicas on brokers [2] cannot get in sync"
