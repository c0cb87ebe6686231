"""A throttle limits the moves of its operation, ends with it, and leaves others as they are."""

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.partition_commands import AlterReassignments, Move
from sparklog.core.controller.operations.throttling import FOLLOWERS, LEADERS, RATES
from sparklog.core.controller.state import znodes
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
