"""Who leads after brokers die, restart and return."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.zookeeper import SetData

PARTITION = TopicPartition("t", 0)


def sends(done, kind, broker=None):
    return [one for one in done if isinstance(one, kind) and broker in (None, one.broker)]


def test_a_new_topic_is_led_by_its_preferred_replica_with_all_live_replicas_in_sync(world):
    world.create(replicas=((2, 3, 1),))
    assert (world.stored().leader, world.stored().isr) == (2, (2, 3, 1))
    assert world.stored().isr_incarnations == {1: 0, 2: 0, 3: 0}


def test_the_first_live_isr_member_in_assignment_order_leads_when_the_leader_dies(world):
    world.create()
    world.crash(1)
    assert (world.stored().leader, world.stored().isr, world.stored().leader_epoch) == (2, (2, 3), 1)


def test_a_dead_follower_leaves_the_isr_and_the_leader_epoch_grows(world):
    world.create()
    world.crash(3)
    assert (world.stored().leader, world.stored().isr, world.stored().leader_epoch) == (1, (1, 2), 1)


def test_what_a_dead_broker_led_is_written_before_what_it_only_followed(world):
    world.create(replicas=((1, 2), (2, 1), (1, 3), (3, 1)))
    write = next(one for one in world.crash(1) if isinstance(one, act.WriteZooKeeper))
    states = [one.path for one in write.operations if isinstance(one, SetData)]
    assert states == [znodes.state_path("t", number) for number in (0, 2, 1, 3)]


def test_the_last_isr_member_is_never_removed(world):
    world.create()
    world.crash(1)
    world.crash(2)
    world.crash(3)
    assert (world.stored().leader, world.stored().isr) == (-1, (3,))


@pytest.mark.scenario(
    "S60", "The whole ISR is away: no leader and an unchanged ISR, or another leader by unclean election."
)
def test_a_whole_isr_that_dies_at_once_is_kept_and_its_first_proven_member_leads(world):
    world.create()
    world.crash(1, 2, 3)
    assert (world.stored().leader, world.stored().isr, world.stored().leader_epoch) == (-1, (1, 2, 3), 1)
    world.start(2)
    assert (world.stored().leader, world.stored().isr, world.stored().leader_epoch) == (2, (2,), 2)
    world.start(1, 3)
    assert (world.stored().leader, world.stored().isr) == (2, (2,))


def test_a_member_that_returns_unproven_does_not_lead_while_a_proven_one_may_return(world):
    world.create()
    world.crash(1, 2, 3)
    done = world.start(1, boot="after a power cut")
    assert (world.stored().leader, world.stored().isr) == (-1, (1, 2, 3))
    assert any("no leader" in str(one) for one in done if isinstance(one, ClusterEvent))
    world.start(3, boot="boot")
    assert (world.stored().leader, world.stored().isr) == (3, (3,))


def test_a_clean_stop_proves_the_log_over_a_reboot(world):
    world.create()
    world.crash(1, 2, 3)
    world.start(1, boot="rebooted", clean=True)
    assert (world.stored().leader, world.stored().isr) == (1, (1,))


@pytest.mark.bug("B23")
def test_only_the_log_in_the_directory_that_lost_nothing_leads(world):
    topic = world.create(replicas=((1,), (1,)))
    world.crash(1)
    whole = DirectoryIdentity("directory-1", logs=frozenset({(topic, 0)}))
    world.register(1, directories=[whole, DirectoryIdentity("other")])
    world.see_brokers()
    world.crash(1)
    broken = DirectoryIdentity("other", corrupt=True, logs=frozenset({(topic, 1)}))
    done = world.start(1, directories=[whole, broken])
    assert (world.stored().leader, world.stored(partition=1).leader) == (1, -1)
    assert not [one for one in done if isinstance(one, ClusterEvent) and one.losses]


def test_when_nobody_is_proven_the_partition_waits(world):
    world.create()
    world.crash(1, 2, 3)
    world.start(1, 2, 3, boot="after a power cut")
    assert (world.stored().leader, world.stored().isr) == (-1, (1, 2, 3))


def test_without_proven_replicas_an_unclean_election_reports_the_loss(world):
    world.create(unclean_leader_election_enable="true")
    world.crash(1, 2, 3)
    done = world.start(2, boot="after a power cut")
    assert world.stored().leader == -1, "it has not reported its log"
    done = world.answer_pushes(done, ends={(2, PARTITION): (0, 7)})
    assert (world.stored().leader, world.stored().isr) == (2, (2,))
    assert [one.losses for one in done if isinstance(one, ClusterEvent) and one.losses] == [1]


@pytest.mark.scenario("S60")
def test_an_unclean_election_needs_the_topics_permission(world):
    world.create("strict")
    world.create("loose", unclean_leader_election_enable="true")
    for topic in ("strict", "loose"):
        world.propose(1, 1, topic=topic)
    told = {(one, TopicPartition(name, 0)): (0, 7) for one in (2, 3) for name in ("strict", "loose")}
    world.answer_pushes(world.crash(1), ends=told)
    assert (world.stored("strict").leader, world.stored("strict").isr) == (-1, (1,))
    assert (world.stored("loose").leader, world.stored("loose").isr) == (2, (2,))


def test_the_only_complete_replica_leads_unproven_and_the_loss_is_reported(world):
    world.create(replicas=((1,),))
    world.crash(1)
    done = world.start(1, boot="after a power cut")
    assert world.stored().leader == -1, "it has not told yet where its log ends"
    done = world.answer_pushes(done, ends={(1, PARTITION): (0, 7)})
    assert (world.stored().leader, world.stored().isr) == (1, (1,))
    assert [one for one in done if isinstance(one, ClusterEvent) and one.losses]


@pytest.mark.bug("B5", "words", "A lossy election is not reported.")
def test_a_loss_is_reported_although_nobody_answered_the_write_that_made_it(world):
    world.create(replicas=((1,),))
    world.crash(1)
    done = world.start(1, boot="after a power cut")
    world.lose_answers.append("after")
    done = world.answer_pushes(done, ends={(1, PARTITION): (0, 7)})
    assert world.stored().leader == 1
    assert [one for one in done if isinstance(one, ClusterEvent) and one.losses]


def test_an_unproven_leader_that_bounced_loses_its_place_in_the_isr(world):
    world.create()
    world.start(1, boot="after a power cut")
    assert (world.stored().leader, world.stored().isr) == (2, (2, 3))


@pytest.mark.kafka_bug(
    "K24", "KIP-966", "The last ISR member lost unsynced records and was elected; the others truncated."
)
def test_kip_966_an_eligible_replica_leads_when_the_last_isr_member_lost_its_tail(world):
    world.create(min_insync_replicas="2")
    world.crash(1)
    world.crash(2)
    assert (world.stored().isr, world.stored().eligible) == ((3,), (2,))
    world.crash(3)
    world.start(3, boot="after a power cut")
    assert world.stored().leader == -1
    world.start(2)
    assert (world.stored().leader, world.stored().isr) == (2, (2,))
    assert world.stored().eligible == (), "the power cut's victim holds nothing for certain"


def test_nobody_is_eligible_while_the_isr_has_its_minimum(world):
    world.create(min_insync_replicas="2")
    world.crash(1)
    assert (world.stored().isr, world.stored().eligible) == ((2, 3), ())


def test_an_eligible_replica_that_lost_its_log_is_forgotten(world):
    world.create(min_insync_replicas="3")
    world.crash(1)
    assert world.stored().eligible == (1,)
    world.start(1, boot="after a power cut")
    world.crash(2)
    assert (world.stored().isr, world.stored().eligible) == ((3,), (2,))


@pytest.mark.scenario(
    "S62",
    "A broker that bounced unseen is failed and started; its earlier life's shutdown is refused (KIP-380).",
)
def test_a_bounced_broker_is_failed_and_started_though_it_was_never_seen_missing(world):
    world.create()
    before = world.epoch(1)
    done = world.start(1)
    assert (world.stored().leader, world.stored().isr) == (2, (2, 3))
    channels = [one for one in done if isinstance(one, act.Connect | act.Disconnect)]
    assert channels[0] == act.Disconnect(1, before)
    assert (channels[1].broker.id, channels[1].broker.epoch) == (1, world.epoch(1))


def test_a_restarted_broker_is_told_the_metadata_and_then_all_its_roles(world):
    world.create("t", replicas=((1, 2), (2, 3), (3, 1)))
    world.crash(1)
    done = world.start(1)
    told = [one for one in done if getattr(one, "broker", None) == 1 and hasattr(one, "push")]
    assert isinstance(told[0], act.SendUpdateMetadata)
    assert [number for number, _ in told[0].topics[0].partitions] == [0, 1, 2]
    assert isinstance(told[1], act.SendLeaderAndIsr)
    assert told[1].is_full
    assert [number for number, _ in told[1].topics[0].partitions] == [0, 2]
    assert {one.broker_epoch for one in told} == {world.epoch(1)}


def test_the_other_brokers_hear_of_a_new_broker(world):
    done = world.start(4)
    heard = sends(done, act.SendUpdateMetadata, 2)
    assert [one.id for one in heard[-1].live_brokers] == [1, 2, 3, 4]


def test_a_report_of_death_deletes_the_registration_then_elects_then_tells_the_new_leader(world):
    world.create()
    epoch = world.epoch(1)
    done = world.report_death(1)
    assert world.zk.get(znodes.broker_path(1)) is None
    assert world.stored().leader == 2
    writes = [number for number, one in enumerate(done) if isinstance(one, act.WriteZooKeeper)]
    gone = done.index(act.Disconnect(1, epoch))
    told = next(
        number for number, one in enumerate(done) if isinstance(one, act.SendLeaderAndIsr) and one.broker == 2
    )
    assert len(writes) == 2
    assert writes[0] < gone < writes[1] < told


def test_a_report_about_an_earlier_incarnation_changes_nothing(world):
    world.create()
    old = world.epoch(1)
    world.start(1)
    done = world.report_death(1, old)
    assert done == []
    assert world.zk.get(znodes.broker_path(1)) is not None


def test_a_report_never_deletes_the_registration_of_a_successor(world):
    world.create()
    world.before_write.append(lambda: world.register(1))
    world.report_death(1)
    assert world.zk.get(znodes.broker_path(1)) is not None
    assert 1 in world.machine.image.brokers
    assert (world.stored().leader, world.stored().isr) == (2, (2, 3))


def test_a_report_is_in_time_even_if_the_registration_has_just_gone(world):
    world.create()
    world.before_write.append(lambda: world.expire(1))
    world.report_death(1)
    assert world.stored().leader == 2


def test_kip_903_a_member_that_restarted_during_the_election_is_not_trusted(world):
    world.create()
    world.before_write.append(lambda: world.register(2, boot="after a power cut"))
    world.crash(1)
    assert (world.stored().leader, world.stored().isr) == (3, (3,))


def test_a_member_that_restarted_unproven_between_two_controllers_is_not_elected(world):
    world.create()
    world.expire(1)
    world.register(2, boot="after a power cut")
    world.activate()
    assert (world.stored().leader, world.stored().isr) == (3, (3,))


def test_a_leader_that_restarted_between_two_controllers_gets_a_new_epoch(world):
    world.create()
    world.register(1)
    world.activate()
    assert (world.stored().leader, world.stored().leader_epoch, world.stored().isr) == (1, 1, (1, 2, 3))


def test_a_write_whose_answer_was_lost_is_not_made_twice(world):
    world.create()
    del world.zk.nodes[znodes.broker_path(1)]
    world.zk.lose_next = "after"
    world.see_brokers()
    assert (world.stored().leader, world.stored().leader_epoch) == (2, 1)


def test_a_write_that_was_lost_before_it_happened_is_made_again(world):
    world.create()
    del world.zk.nodes[znodes.broker_path(1)]
    world.zk.lose_next = "before"
    done = world.see_brokers()
    assert (world.stored().leader, world.stored().leader_epoch) == (2, 1)
    assert sends(done, act.SendLeaderAndIsr, 2)


@pytest.mark.scenario("S61")
def test_a_controller_whose_epoch_has_passed_resigns_and_writes_nothing(world):
    world.create()
    version = world.zk.exists(znodes.CONTROLLER_EPOCH).version
    before = world.stored()
    world.before_write.append(lambda: world.zk.multi([SetData(znodes.CONTROLLER_EPOCH, b"7", version)]))
    done = world.crash(1)
    assert isinstance(done[-1], act.Resign)
    assert world.state() == before
    assert not sends(done, act.SendLeaderAndIsr)


def test_a_replica_in_a_broken_log_directory_is_led_elsewhere_until_its_broker_restarts(world):
    world.create()
    world.crash(2)
    done = world.start(2)
    world.propose(1, 1, 2, 3)
    partition = TopicPartition("t", 0)
    world.answer_pushes(sends(done, act.SendLeaderAndIsr, 2), {(2, partition): ErrorCode.kafka_storage_error})
    assert world.stored().isr == (1, 3)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.ineligible_replica
    world.start(2)
    assert world.propose(1, 1, 2, 3).error == ErrorCode.none


def test_a_replica_whose_log_is_broken_is_not_eligible_either(world):
    """What it cuts to mend its log may be committed: it counts again when it has caught up, not before."""
    world.create(min_insync_replicas="3")
    done = world.start(2)
    partition = TopicPartition("t", 0)
    world.answer_pushes(sends(done, act.SendLeaderAndIsr, 2), {(2, partition): ErrorCode.kafka_storage_error})
    assert (world.stored().isr, world.stored().eligible) == ((1, 3), ())


def test_becoming_active_tells_every_broker_everything(world):
    world.create("t", replicas=((1, 2), (2, 3)))
    done = world.activate()
    for broker in (1, 2, 3):
        (metadata,) = sends(done, act.SendUpdateMetadata, broker)
        (roles,) = sends(done, act.SendLeaderAndIsr, broker)
        assert len(metadata.topics[0].partitions) == 2
        assert roles.is_full
        assert done.index(metadata) < done.index(roles)


def test_elections_of_many_partitions_are_written_in_bounded_pieces(world):
    world.create("big", replicas=tuple((1, 2) for _ in range(1_100)))
    done = world.crash(1)
    assert [len(one.operations) for one in done if isinstance(one, act.WriteZooKeeper)] == [502, 502, 102]
    assert all(state.leader == 2 for _, state in world.machine.image.partitions())
