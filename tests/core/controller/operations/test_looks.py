"""An operation that waits in a cluster of many partitions is not looked at after each change of one."""

import pytest

from sparklog.core.controller.actions import WakeAt
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.looks import PARTITIONS_PER_PAUSED_MS, UNPAUSED_MAX
from sparklog.core.controller.state.operations import OperationState

PARTITIONS = 2 * UNPAUSED_MAX
PAUSE_MS = PARTITIONS // PARTITIONS_PER_PAUSED_MS


@pytest.fixture
def restarted(world, operators):
    """The id of a restart that waits until broker 1 is in sync again everywhere."""
    world.create(replicas=((2, 3, 1),) * PARTITIONS)
    operation = operators.begin("restart", 1, 2)
    operators.stop_in_order(1)
    world.start(1, clean=True)
    operators.host(1)
    assert operators.waits(operation) == [waits_in(PARTITIONS)]
    return operation


def waits_in(partitions):
    return (
        f"broker 1 to be in sync again in {partitions} partitions: "
        f"t-{PARTITIONS - partitions}, t-{PARTITIONS - partitions + 1}, t-{PARTITIONS - partitions + 2} "
        f"and {partitions - 3} more"
    )


def join(world, partition):
    """Broker 1 is in sync again in this partition; the moments at which the machine asks to be called."""
    before = len(world.done)
    world.propose(2, 2, 3, 1, partition=partition)
    return [one.deadline_ms for one in world.done[before:] if isinstance(one, WakeAt)]


def tick(world, after_ms):
    world.now_ms += after_ms
    world.do(world.machine.on_tick(world.now_ms))


def test_changes_of_partitions_are_looked_at_together_after_a_pause(world, operators, restarted):
    deadlines = [join(world, partition) for partition in range(10)]
    assert deadlines == [[world.now_ms + PAUSE_MS]] + [[]] * 9, "it is called once, at the end of the pause"
    tick(world, PAUSE_MS - 1)
    assert operators.waits(restarted) == [waits_in(PARTITIONS)]
    tick(world, 1)
    assert operators.waits(restarted) == [waits_in(PARTITIONS - 10)]


def test_a_report_made_after_the_pause_shows_what_is_waited_for_then(world, restarted):
    join(world, 0)
    before = world.machine.image.changes
    tick(world, PAUSE_MS)
    assert world.machine.image.changes > before


def test_brokers_and_wishes_are_looked_at_at_once(world, operators, restarted):
    join(world, 0)
    world.crash(3)
    (words,) = operators.waits(restarted)
    assert words.startswith(f"brokers 1, 3 to be in sync again in {PARTITIONS} partitions")
    world.start(3, clean=True)
    join(world, 1)
    operators.cancel(restarted)
    assert operators.waits(restarted) == []


def test_a_wait_lasts_since_it_began_and_ends_are_counted(world, operators, restarted):
    looks, began_ms = world.machine.work.looks, world.now_ms
    join(world, 0)
    tick(world, PAUSE_MS)
    assert looks.waiting_since_ms == {restarted: began_ms}
    operators.cancel(restarted)
    assert looks.waiting_since_ms == {}
    cancelled = (OperationKind.restart, OperationState.cancelled)
    assert world.machine.work.ended_operations == {cancelled: 1}


def test_the_last_change_is_not_forgotten(world, operators, restarted):
    for partition in range(PARTITIONS):
        join(world, partition)
    assert operators.wish(2) == "serving"
    tick(world, PAUSE_MS)
    assert operators.waits(restarted) == ["clients to connect to broker 1 again, for 2 s"]
    operators.settle()
    assert operators.wish(2) == "stopped"


def test_a_small_cluster_is_looked_at_after_each_change(world, operators):
    world.create(replicas=((2, 3, 1),) * 4)
    operation = operators.begin("restart", 1)
    operators.stop_in_order(1)
    world.start(1, clean=True)
    operators.host(1)
    for partition in range(4):
        assert operators.state(operation) == "running"
        assert join(world, partition) == []
    assert operators.state(operation) == "done"
