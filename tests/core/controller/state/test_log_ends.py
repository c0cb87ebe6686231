"""A power cut of everything: no log is proven, and the greatest of those that were in sync leads."""

import pytest

from sparklog.core.controller.commands.partition_commands import ElectLeaders
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

T = TopicPartition("t", 0)


def losses(done):
    return [str(one) for one in done if isinstance(one, ClusterEvent) and one.losses]


def power_cut(world, *brokers):
    """All die at once and come back one after the other, with another boot; what they are sent then."""
    world.crash(1, 2, 3)
    return world.start(*brokers, boot="after a power cut")


def ends(**by_broker):
    return {(int(name[1:]), T): end for name, end in by_broker.items()}


@pytest.mark.parametrize(
    ("told", "leader"),
    [
        (ends(_1=(4, 10), _2=(4, 30), _3=(4, 20)), 2),
        (ends(_1=(4, 90), _2=(5, 10), _3=(5, 12)), 3),
        (ends(_1=(0, 7), _2=(0, 7), _3=(0, 7)), 1),
        (ends(_1=(-1, 0), _2=(-1, 0), _3=(0, 1)), 3),
    ],
)
def test_when_all_have_told_their_ends_the_greatest_epoch_and_then_the_greatest_end_leads(
    world, told, leader
):
    world.create()
    world.answer_pushes(power_cut(world, 1, 2, 3), ends=told)
    assert (world.stored().leader, world.stored().isr) == (leader, (leader,))


@pytest.mark.bug("B12")
def test_the_possible_loss_is_reported_and_stays_in_the_partition_s_state(world):
    world.create()
    assert world.stored().lost_in_epoch == -1
    done = world.answer_pushes(power_cut(world, 1, 2, 3), ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    assert len(losses(done)) == 1
    assert "broker 2 has the greatest" in losses(done)[0]
    assert world.stored().lost_in_epoch == world.stored().leader_epoch == 2
    world.propose(2, 1, 2)
    world.crash(2)
    assert (world.stored().leader, world.stored().lost_in_epoch) == (1, 2)


def test_while_one_of_them_has_not_told_the_partition_waits(world):
    world.create()
    done = power_cut(world, 1, 2, 3)
    world.answer_pushes(done, ends=ends(_1=(0, 7), _2=(0, 9)))
    assert (world.stored().leader, world.stored().isr) == (-1, (1, 2, 3))
    world.answer_pushes(done, ends=ends(_3=(0, 8)))
    assert world.stored().leader == 2


def test_while_one_of_them_is_dead_the_partition_waits_and_says_for_whom(world):
    world.create()
    done = power_cut(world, 1, 2)
    assert any("brokers [3]" in str(one) for one in done if isinstance(one, ClusterEvent))
    world.answer_pushes(done, ends=ends(_1=(0, 7), _2=(0, 9)))
    assert world.stored().leader == -1
    done = world.start(3, boot="after a power cut")
    world.answer_pushes(done, ends=ends(_3=(0, 90)))
    assert world.stored().leader == 3


def test_nobody_is_said_to_be_missing_while_all_are_there_to_answer(world):
    world.create()
    done = power_cut(world, 1, 2, 3)
    assert not [one for one in done if isinstance(one, ClusterEvent) and "no leader, first" in one.words]


def test_a_proven_member_leads_at_once_whatever_the_others_have_told(world):
    world.create()
    done = power_cut(world, 1, 2)
    world.answer_pushes(done, ends=ends(_1=(0, 7), _2=(0, 9)))
    world.start(3)
    assert (world.stored().leader, world.stored().isr) == (3, (3,))
    assert world.stored().lost_in_epoch == -1


def test_what_a_broker_told_before_its_restart_does_not_count(world):
    world.create()
    told = power_cut(world, 1, 2, 3)
    world.answer_pushes(told, ends=ends(_1=(0, 90), _2=(0, 9)))
    done = world.start(1, boot="and another power cut")
    world.answer_pushes(told, ends=ends(_1=(0, 90), _3=(0, 8)))  # the late answer of the earlier incarnation
    assert world.stored().leader == -1
    world.answer_pushes(done, ends=ends(_1=(0, 3)))
    assert world.stored().leader == 2


def test_what_was_told_before_somebody_led_again_does_not_count(world):
    world.create()
    told = power_cut(world, 1, 2, 3)
    world.answer_pushes(told, ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    world.propose(2, 1, 2, 3)
    late = [one for one in told if getattr(one, "broker", None) == 3]
    world.crash(1, 2)
    world.crash(3)
    returned = world.start(1, 2, boot="another power cut")
    world.answer_pushes(returned, ends=ends(_1=(0, 7), _2=(0, 8)))
    world.answer_pushes(late, ends=ends(_3=(0, 900)))
    assert (world.stored().leader, world.stored().isr) == (-1, (3,))
    done = world.start(3, boot="another power cut")
    world.answer_pushes(late, ends=ends(_3=(0, 900)))
    assert world.stored().leader == -1
    world.answer_pushes(done, ends=ends(_3=(0, 9)))
    assert world.stored().leader == 3


def test_a_new_controller_hears_of_the_ends_again(world):
    world.create()
    told = power_cut(world, 1, 2, 3)
    world.answer_pushes(told, ends=ends(_1=(0, 7), _2=(0, 9)))
    world.answer_pushes(world.activate(), ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    assert world.stored().leader == 2


def test_reports_of_the_same_epoch_count_after_everything_was_read_again(world):
    world.create()
    told = power_cut(world, 1, 2, 3)
    world.lose_answers.append("before")
    done = world.answer_pushes(told, ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    assert losses(done), "the write may have happened"
    assert world.stored().leader == 2


def test_the_winner_s_restart_in_the_last_moment_makes_the_election_start_over(world):
    world.create()
    told = power_cut(world, 1, 2, 3)
    world.before_write.append(lambda: world.register(2, boot="and another power cut"))
    done = world.answer_pushes(told, ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8)))
    assert world.stored().leader == -1
    world.answer_pushes(done, ends=ends(_2=(0, 1)))
    assert world.stored().leader == 3


def test_eligible_replicas_are_waited_for_too(world):
    world.create(min_insync_replicas="2")
    world.crash(1)
    world.crash(2)
    assert (world.stored().isr, world.stored().eligible) == ((3,), (2,))
    world.crash(3)
    done = world.start(1, 3, boot="after a power cut")
    world.answer_pushes(done, ends=ends(_1=(0, 6), _3=(0, 7)))
    assert world.stored().leader == -1, "2 may have more than 3"
    done = world.start(2, boot="after a power cut")
    world.answer_pushes(done, ends=ends(_2=(0, 8)))
    assert (world.stored().leader, world.stored().eligible) == (2, ())


def test_a_replica_whose_log_is_broken_is_waited_for(world):
    world.create()
    done = power_cut(world, 1, 2, 3)
    world.answer_pushes(
        done, errors={(3, T): ErrorCode.kafka_storage_error}, ends=ends(_1=(0, 7), _2=(0, 9), _3=(0, 8))
    )
    assert world.stored().leader == -1


def test_an_operator_who_will_not_wait_gets_the_greatest_log_that_is_there(world):
    world.create()
    done = power_cut(world, 1, 2)
    world.answer_pushes(done, ends=ends(_1=(0, 7), _2=(0, 9)))
    answer = world.command(ElectLeaders(unclean=True, partitions=(T,)))
    assert answer.partitions[0].error == ErrorCode.none
    assert (world.stored().leader, world.stored().lost_in_epoch) == (2, 2)


def test_a_topic_that_comes_again_under_its_name_knows_nothing_of_the_old_ends(world):
    world.create()
    world.answer_pushes(power_cut(world, 1, 2), ends=ends(_1=(0, 7), _2=(0, 9)))
    assert world.machine.image.log_ends[2] == {T: LogEnd(1, 0, 9)}
    world.start(3)
    assert T not in world.machine.image.log_ends[2]


def test_states_written_before_losses_were_noted_had_none():
    data = b'{"leader":1,"leader_epoch":3,"isr":[1],"controller_epoch":1,"isr_incarnations":{},"eligible":[]}'
    assert znodes.decode_state("t", 0, data).lost_in_epoch == -1
