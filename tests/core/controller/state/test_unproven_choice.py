"""No counted replica is proven: the greatest log leads, of those that are there and those awaited."""

import itertools

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.partition_commands import ElectLeaders
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.core.controller.state.unproven_choice import REPORT_WAIT_MS
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

T = TopicPartition("t", 0)
disks = itertools.count(1)


def ends(**by_broker):
    return {(int(name[1:]), T): end for name, end in by_broker.items()}


def start_on_an_empty_disk(world, *brokers):
    for broker in brokers:
        world.register(broker, directory=f"disk {next(disks)}", boot=f"boot {next(disks)}")
    return world.see_brokers()


def kill_in_order(world, *brokers):
    """The last of them is alone in the ISR."""
    for broker in brokers:
        world.crash(broker)


def leader(world):
    return world.stored().leader


FULL = (0, 500)
EMPTY = (-1, 0)


# An ISR that lost its disks


@pytest.mark.bug("B84")
@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
def test_the_last_member_s_empty_disk_cuts_no_log_in_whatever_order_the_replicas_return(world, order):
    world.create()
    kill_in_order(world, 1, 2, 3)
    assert world.stored().isr == (3,)
    for broker in order:
        started = start_on_an_empty_disk(world, 3) if broker == 3 else world.start(broker, boot="later")
        world.answer_pushes(started, ends=ends(_1=FULL, _2=FULL, _3=EMPTY))
        assert leader(world) == (-1 if broker != order[-1] else 1)
    assert world.stored().lost_in_epoch == world.stored().leader_epoch


def test_while_an_assigned_replica_is_away_the_partition_waits_and_the_report_names_it(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    started = start_on_an_empty_disk(world, 3)
    assert any("brokers [1, 2]" in str(one) for one in started if isinstance(one, ClusterEvent))
    world.answer_pushes(started, ends=ends(_3=EMPTY))
    world.answer_pushes(world.start(2, boot="later"), ends=ends(_2=FULL))
    assert leader(world) == -1
    answer = world.command(ElectLeaders(unclean=True, partitions=(T,)))
    assert answer.partitions[0].error == ErrorCode.none
    assert leader(world) == 2


def test_a_partition_that_nobody_wrote_waits_for_its_isr_alone_after_a_power_cut(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    world.answer_pushes(world.start(3, boot="later"), ends=ends(_3=EMPTY))
    assert leader(world) == 3


def test_one_lost_disk_of_three_makes_nobody_wait_for_replicas_outside(world):
    world.start(4)
    world.create(replicas=((1, 2, 3, 4),))
    world.propose(1, 1, 2, 3)
    world.crash(1, 2, 3, 4)
    done = [*start_on_an_empty_disk(world, 1), *world.start(2, 3, boot="later")]
    world.answer_pushes(done, ends=ends(_1=EMPTY, _2=(0, 7), _3=(0, 9)))
    assert leader(world) == 3


def test_a_member_whose_disk_was_lost_and_that_was_counted_again_is_no_reason_to_wait(world):
    world.create()
    world.crash(3)
    world.start(3, directory="new")
    world.propose(1, 1, 2, 3)
    kill_in_order(world, 1, 2, 3)
    world.answer_pushes(world.start(3, directory="new", boot="later"), ends=ends(_3=FULL))
    assert leader(world) == 3


def test_a_disk_that_was_lost_stays_lost_over_later_restarts(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    world.start(3, directory="new", boot="later")
    world.crash(3)
    world.answer_pushes(world.start(3, directory="new", boot="later still"), ends=ends(_3=EMPTY))
    assert leader(world) == -1


@pytest.mark.parametrize(("lost", "waits"), [("a", True), ("b", False)])
def test_of_two_directories_the_one_that_had_the_log_counts(make_world, lost, waits):
    world = make_world()
    for broker in (1, 2):
        world.register(broker)
    world.register(3, directories=[DirectoryIdentity("a"), DirectoryIdentity("b")])
    world.activate()
    log = (world.create(), 0)
    kill_in_order(world, 1, 2, 3)
    with_log = DirectoryIdentity("a", logs=frozenset({log}))
    left = DirectoryIdentity("b") if lost == "a" else with_log
    world.answer_pushes(world.start(3, directories=[left], boot="later"), ends=ends(_3=FULL))
    assert leader(world) == (-1 if waits else 3)


# Replicas outside the ISR


def test_a_live_replica_outside_the_isr_with_more_leads(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    world.answer_pushes(world.start(1, 2, 3, boot="later"), ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    assert (leader(world), world.stored().isr) == (2, (2,))


def test_the_report_of_a_live_replica_outside_the_isr_is_waited_for(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    done = world.start(2, 3, boot="later")
    world.answer_pushes(done, ends=ends(_3=(0, 8)))
    assert leader(world) == -1
    world.answer_pushes(done, ends=ends(_2=(0, 7)))
    assert leader(world) == 3


def test_a_replica_outside_that_dies_is_waited_for_no_longer(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    world.answer_pushes(world.start(2, 3, boot="later"), ends=ends(_3=(0, 8)))
    world.crash(2)
    assert leader(world) == 3


def test_a_proven_member_leads_although_a_replica_outside_has_more(world):
    world.create()
    kill_in_order(world, 1, 2, 3)
    world.answer_pushes(world.start(1, 2, boot="later"), ends=ends(_1=(0, 900), _2=(0, 900)))
    world.start(3)
    assert (leader(world), world.stored().lost_in_epoch) == (3, -1)


# Unclean elections


def loose(world):
    world.create(unclean_leader_election_enable="true")
    world.propose(1, 1)
    return world.crash(1)


def test_an_unclean_election_takes_the_greatest_of_all_live_logs(world):
    world.answer_pushes(loose(world), ends=ends(_2=(0, 7), _3=(0, 9)))
    assert (leader(world), world.stored().isr) == (3, (3,))


def test_an_unclean_election_waits_for_a_silent_replica_thirty_seconds_and_no_longer(world):
    done = loose(world)
    assert [one.deadline_ms for one in done if isinstance(one, act.WakeAt)] == [REPORT_WAIT_MS]
    world.answer_pushes(done, ends=ends(_2=(0, 7)))
    for world.now_ms, elected in ((REPORT_WAIT_MS - 1, -1), (REPORT_WAIT_MS, 2)):
        world.do(world.machine.on_tick(world.now_ms))
        assert leader(world) == elected


def test_after_thirty_seconds_without_a_report_the_first_one_decides(world):
    done = loose(world)
    world.now_ms = REPORT_WAIT_MS
    world.do(world.machine.on_tick(world.now_ms))
    assert leader(world) == -1
    world.answer_pushes(done, ends=ends(_3=(0, 7)))
    assert leader(world) == 3


def test_each_loss_of_a_leader_begins_another_wait(world):
    world.answer_pushes(loose(world), ends=ends(_2=(0, 7), _3=(0, 9)))
    world.now_ms = REPORT_WAIT_MS
    done = world.crash(3)
    assert [one.deadline_ms for one in done if isinstance(one, act.WakeAt)] == [2 * REPORT_WAIT_MS]
    world.do(world.machine.on_tick(world.now_ms))
    assert leader(world) == -1
    world.answer_pushes(done, ends=ends(_2=(0, 7)))
    assert leader(world) == 2
