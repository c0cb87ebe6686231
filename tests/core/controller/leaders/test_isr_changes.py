"""AlterPartition: what a leader may make of its ISR."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.partition_commands import AlterPartition, IsrProposal, ProposedMember
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId


def test_a_leader_shrinks_and_expands_its_isr_without_a_new_leader_epoch(world):
    world.create()
    answer = world.propose(1, 1, 2)
    assert (answer.error, answer.state) == (ErrorCode.none, world.stored())
    assert (world.stored().isr, world.stored().leader_epoch, world.stored().partition_epoch) == ((1, 2), 0, 1)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.none
    assert (world.stored().isr, world.stored().partition_epoch) == ((1, 2, 3), 2)


def test_an_accepted_proposal_reaches_every_metadata_cache_and_disturbs_no_replica(world):
    world.create()
    world.done.clear()
    world.propose(1, 1, 2)
    assert [one.broker for one in world.done if isinstance(one, act.SendUpdateMetadata)] == [1, 2, 3]
    assert not [one for one in world.done if isinstance(one, act.SendLeaderAndIsr)]


@pytest.mark.kafka_bug(
    "K20",
    "KAFKA-14144",
    "The answer to a proposal was lost; its repetition had an old version and was refused forever.",
)
@pytest.mark.scenario("S63", "A repeated ISR change that is already in force succeeds (KAFKA-14144).")
def test_kafka_14144_a_retry_after_a_lost_reply_succeeds_with_its_old_partition_epoch(world):
    world.create()
    world.propose(1, 1, 2, partition_epoch=0)
    again = world.propose(1, 1, 2, partition_epoch=0)
    assert (again.error, again.state.partition_epoch) == (ErrorCode.none, 1)


def test_a_proposal_whose_write_was_answered_by_nobody_is_settled_by_reading_again(world):
    world.create()
    for lost in ("before", "after"):
        world.zk.lose_next = lost
        answer = world.propose(1, 1, 2) if lost == "before" else world.propose(1, 1, 2, 3)
        assert answer.error == ErrorCode.none
        assert answer.state == world.stored()
    assert world.stored().partition_epoch == 2


def test_a_stale_broker_epoch_refuses_the_whole_request(world):
    world.create()
    old = world.epoch(1)
    world.start(1)
    assert world.propose(1, 1, 2, epochs={"leader": old}).error == ErrorCode.stale_broker_epoch


def test_a_broker_that_is_not_registered_has_a_stale_epoch(world):
    world.create()
    epoch = world.epoch(1)
    world.crash(1)
    request = AlterPartition(BrokerId(1), BrokerEpoch(epoch), ())
    assert world.command(request).error == ErrorCode.stale_broker_epoch


def test_a_stale_leader_epoch_is_fenced(world):
    world.create()
    world.crash(3)
    assert world.propose(1, 1, leader_epoch=0).error == ErrorCode.fenced_leader_epoch


def test_an_old_leader_cannot_change_what_the_new_one_leads(world):
    world.create()
    world.start(1)
    assert world.stored().leader == 2
    assert world.propose(1, 1, 2).error == ErrorCode.invalid_request


def test_epochs_ahead_of_ours_mean_that_somebody_else_is_controller(world):
    world.create()
    assert world.propose(1, 1, 2, leader_epoch=5).error == ErrorCode.not_controller
    assert world.propose(1, 1, 2, partition_epoch=5).error == ErrorCode.not_controller


def test_a_different_isr_on_an_old_partition_epoch_is_refused(world):
    world.create()
    world.propose(1, 1, 2)
    assert world.propose(1, 1, 3, partition_epoch=0).error == ErrorCode.invalid_update_version


def test_unknown_topics_and_partitions_are_named_as_such(world):
    world.create()
    unknown = world.new_topic().id
    proposal = IsrProposal(unknown, 0, 0, 0, (ProposedMember(BrokerId(1), BrokerEpoch(1)),))
    missing = IsrProposal(world.machine.image.topics["t"].id, 9, 0, 0, proposal.isr)
    request = AlterPartition(BrokerId(1), BrokerEpoch(world.epoch(1)), (proposal, missing))
    assert [one.error for one in world.command(request).answers] == [
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    ]


def test_an_isr_without_its_leader_or_without_anybody_is_refused(world):
    world.create()
    assert world.propose(1, 2, 3).error == ErrorCode.invalid_request
    assert world.propose(1).error == ErrorCode.invalid_request


def test_a_member_that_is_not_live_is_ineligible(world):
    world.create()
    dead = world.epoch(3)
    world.crash(3)
    assert world.propose(1, 1, 2, 3, epochs={3: dead}).error == ErrorCode.ineligible_replica


def test_a_member_outside_the_assignment_is_ineligible(world):
    world.start(4)
    world.create()
    assert world.propose(1, 1, 2, 3, 4).error == ErrorCode.ineligible_replica


def test_kip_903_a_member_that_restarted_after_the_leader_saw_it_caught_up_is_ineligible(world):
    world.create()
    world.propose(1, 1, 2)
    seen = world.epoch(3)
    world.start(3, directory="an empty disk")
    assert world.propose(1, 1, 2, 3, epochs={3: seen}).error == ErrorCode.ineligible_replica
    assert world.stored().isr == (1, 2)


@pytest.mark.kafka_bug("K23")
def test_kip_903_a_member_that_restarts_while_the_proposal_is_written_is_ineligible(world):
    world.create()
    world.propose(1, 1, 2)
    seen = world.epoch(3)
    world.before_write.append(lambda: world.register(3, directory="an empty disk"))
    assert world.propose(1, 1, 2, 3, epochs={3: seen}).error == ErrorCode.ineligible_replica
    assert world.stored().isr == (1, 2)


def test_a_member_that_restarted_unproven_counts_after_it_has_caught_up(world):
    world.create()
    world.start(3, boot="after a power cut")
    assert world.stored().isr == (1, 2)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.none
    assert world.stored().isr_incarnations[3] == 1


def test_a_member_that_the_leader_has_not_heard_of_may_stay_but_not_join(world):
    world.create()
    assert world.propose(1, 1, 2, epochs={2: -1}).error == ErrorCode.none
    assert world.propose(1, 1, 2, 3, epochs={3: -1}).error == ErrorCode.ineligible_replica


@pytest.mark.kafka_bug("K22")
def test_kip_841_a_broker_that_is_shutting_down_cannot_join(world):
    world.create()
    world.command(ControlledShutdown(BrokerId(3), BrokerEpoch(world.epoch(3))))
    assert world.stored().isr == (1, 2)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.ineligible_replica


def test_an_isr_that_shrinks_below_its_minimum_keeps_the_members_that_left_eligible(world):
    world.create(min_insync_replicas="2")
    world.propose(1, 1)
    assert (world.stored().isr, world.stored().eligible) == ((1,), (2, 3))
    world.propose(1, 1, 2)
    assert (world.stored().isr, world.stored().eligible) == ((1, 2), ())


def test_one_write_carries_all_proposals_of_a_request(world):
    topic = world.create("t", replicas=((1, 2), (1, 3), (1, 2)))
    members = (ProposedMember(BrokerId(1), BrokerEpoch(world.epoch(1))),)
    proposals = tuple(IsrProposal(topic, number, 0, 0, members) for number in range(3))
    world.done.clear()
    result = world.command(AlterPartition(BrokerId(1), BrokerEpoch(world.epoch(1)), proposals))
    assert [one.error for one in result.answers] == [ErrorCode.none] * 3
    assert len([one for one in world.done if isinstance(one, act.WriteZooKeeper)]) == 1
