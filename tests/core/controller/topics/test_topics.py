"""Creating and deleting topics."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.topic_commands import (
    CreateTopics,
    DeleteTopics,
    DoomedTopic,
    TopicsResult,
)
from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Create


def create(world, *topics, timeout_ms=10_000, validate_only=False):
    """What was done, and the command's id."""
    world.next_command += 1
    request = CreateTopics(topics, timeout_ms, validate_only)
    return world.submit(request), world.next_command


def delete(world, *names, timeout_ms=10_000):
    world.next_command += 1
    request = DeleteTopics(tuple(DoomedTopic(name) for name in names), timeout_ms)
    return world.submit(request), world.next_command


def sends(done, kind, broker=None):
    return [one for one in done if isinstance(one, kind) and broker in (None, one.broker)]


def refusal(world, **topic):
    done, _ = create(world, world.new_topic(**topic))
    (result,) = world.answer_in(done).topics
    return result.error, result.message


def test_a_creation_is_answered_after_leaders_and_metadata_caches_have_acknowledged(world):
    done, _ = create(world, world.new_topic(replicas=((1, 2), (2, 3))))
    assert world.answer_in(done) is None
    answers = world.answer_pushes(done)
    (result,) = world.answer_in(answers).topics
    assert (result.name, result.error, result.partitions, result.replication_factor) == ("t", 0, 2, 2)
    assert answers[-1] == act.Answer(1, TopicsResult((result,)))


def test_a_broker_that_leads_nothing_of_it_holds_a_creation_up_for_a_moment_only(world):
    done, _ = create(world, world.new_topic(replicas=((1, 2),)))
    assert (
        world.answer_in(world.answer_pushes([one for one in done if getattr(one, "broker", 0) != 3])) is None
    )
    wake = min(one.deadline_ms for one in done if isinstance(one, act.WakeAt))
    world.now_ms = wake
    (result,) = world.answer_in(world.do(world.machine.on_tick(world.now_ms))).topics
    assert result.error == ErrorCode.none


def test_a_creation_whose_leader_does_not_answer_times_out_and_the_topic_stays(world):
    create(world, world.new_topic(replicas=((1, 2),)), timeout_ms=5_000)
    world.now_ms = 4_999
    assert world.do(world.machine.on_tick(world.now_ms)) == []
    world.now_ms = 5_000
    (result,) = world.answer_in(world.do(world.machine.on_tick(world.now_ms))).topics
    assert result.error == ErrorCode.request_timed_out
    assert world.stored().leader == 1


def test_a_creation_does_not_wait_for_a_leader_that_dies(world):
    done, _ = create(world, world.new_topic(replicas=((1, 2),)))
    world.answer_pushes([one for one in done if getattr(one, "broker", 0) != 1])
    assert world.answer_in(world.crash(1)).topics[0].error == ErrorCode.none
    assert world.stored().leader == 2


def test_the_new_replicas_are_told_that_they_are_new_with_the_topics_settings(world):
    done, _ = create(world, world.new_topic(replicas=((1, 2),), configs={"min.insync.replicas": "2"}))
    (roles,) = sends(done, act.SendLeaderAndIsr, 2)
    assert [one.partition for one in roles.new] == [0]
    assert roles.topics[0].configs == {"min.insync.replicas": "2"}
    assert not sends(done, act.SendLeaderAndIsr, 3)
    (metadata,) = sends(done, act.SendUpdateMetadata, 3)
    assert metadata.topics[0].configs == {"min.insync.replicas": "2"}


def test_several_topics_of_one_request_reach_each_broker_in_one_message(world):
    done, _ = create(world, world.new_topic("a"), world.new_topic("b"))
    (roles,) = sends(done, act.SendLeaderAndIsr, 1)
    assert [topic.name for topic in roles.topics] == ["a", "b"]


def test_defaults_come_from_the_clusters_settings(make_world):
    config = BrokerConfig.parse({"num.partitions": "4", "default.replication.factor": "2"})
    world = make_world(config)
    world.register(1)
    world.register(2)
    world.activate()
    create(world, world.new_topic(replicas=()))
    assignments = world.machine.image.topics["t"].node.assignments
    assert [sorted(one.replicas) for one in assignments] == [[1, 2]] * 4


def test_a_topic_that_cannot_be_is_refused_with_the_reason(world):
    world.create("a.b")
    assert refusal(world, name="a.b")[0] == ErrorCode.topic_already_exists
    assert refusal(world, name="a_b") == (
        ErrorCode.invalid_topic_exception,
        "Topic 'a_b' collides with existing topics: a.b",
    )
    assert refusal(world, name="no/slash")[0] == ErrorCode.invalid_topic_exception
    assert refusal(world, replicas=(), replication_factor=4) == (
        ErrorCode.invalid_replication_factor,
        "Replication factor: 4 larger than available brokers: 3. Choose 3 or less, or start more brokers.",
    )
    assert refusal(world, replicas=(), partitions=0)[0] == ErrorCode.invalid_partitions
    assert refusal(world, configs={"retention.ms": "soon"})[0] == ErrorCode.invalid_config
    assert refusal(world, configs={"retention.ms": None})[0] == ErrorCode.invalid_config
    assert refusal(world, configs={"retention.sm": "1"})[0] == ErrorCode.invalid_config
    assert refusal(world, replicas=((1, 1),))[0] == ErrorCode.invalid_replica_assignment
    assert refusal(world, replicas=((1, 9),))[0] == ErrorCode.invalid_replica_assignment
    assert refusal(world, replicas=((1, 2),), partitions=1)[0] == ErrorCode.invalid_request
    assert "t" not in world.machine.image.topics


def test_a_name_that_a_request_has_twice_is_refused(world):
    done, _ = create(world, world.new_topic("t"), world.new_topic("t"))
    assert [one.error for one in world.answer_in(done).topics] == [ErrorCode.invalid_request] * 2


def test_validate_only_says_what_would_be_and_writes_nothing(world):
    done, _ = create(world, world.new_topic(), validate_only=True)
    (result,) = world.answer_in(done).topics
    assert (result.error, result.id) == (ErrorCode.none, NO_TOPIC_ID)
    assert not [one for one in done if isinstance(one, act.WriteZooKeeper)]


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_creation_whose_write_was_lost_succeeds_once(world, lost):
    topic = world.new_topic()
    world.zk.lose_next = lost
    done, command = create(world, topic)
    answers = world.answer_pushes(done)
    assert world.answer_in([*done, *answers], command).topics[0].error == ErrorCode.none
    assert world.machine.image.topics["t"].id == topic.id


def test_a_large_topic_is_written_in_pieces_and_answered_when_whole(world):
    done, _ = create(world, world.new_topic(replicas=tuple((1, 2, 3) for _ in range(1_200))))
    assert len([one for one in done if isinstance(one, act.WriteZooKeeper)]) == 3
    (roles,) = sends(done, act.SendLeaderAndIsr, 1)
    assert len(roles.topics[0].partitions) == 1_200
    assert world.answer_in(world.answer_pushes(done)).topics[0].error == ErrorCode.none


def test_a_controller_that_takes_over_amid_a_large_creation_finishes_it(world):
    world.create(replicas=tuple((1, 2, 3) for _ in range(3)))
    for path in (znodes.state_path("t", 2), znodes.partition_path("t", 2)):
        del world.zk.nodes[path]
    world.activate()
    assert world.stored("t", 2).leader == 1


# ------------------------------------------------------------------------------------------- deletion


def test_a_deleted_topic_leaves_zookeeper_after_all_replicas_have_confirmed(world):
    world.create(replicas=((1, 2), (2, 3)))
    done, _ = delete(world, "t")
    (metadata,) = sends(done, act.SendUpdateMetadata, 1)
    assert {state.leader for _, state in metadata.topics[0].partitions} == {-2}
    (stop,) = sends(done, act.SendStopReplica, 2)
    assert stop.delete
    assert [(one.partition, epoch) for one, epoch in stop.partitions] == [(0, -2), (1, -2)]
    assert world.answer_in(done) is None
    answers = world.answer_pushes(done)
    assert world.answer_in(answers).topics[0].error == ErrorCode.none
    assert [path for path in world.zk.nodes if "/t" in path and "topics" in path] == []
    assert "t" not in world.machine.image.topics


def test_a_replica_on_a_broker_that_is_away_is_deleted_when_it_returns(world):
    world.create(replicas=((1, 2, 3),))
    world.crash(3)
    done, _ = delete(world, "t")
    answers = world.answer_pushes(done)
    assert world.answer_in(answers).topics[0].error == ErrorCode.none
    assert refusal(world)[0] == ErrorCode.topic_already_exists
    assert world.zk.get(znodes.delete_topic_path("t")) is not None
    done = world.start(3)
    (roles,) = sends(done, act.SendLeaderAndIsr, 3)
    assert (roles.is_full, roles.topics) == (True, ())
    (stop,) = sends(done, act.SendStopReplica, 3)
    assert stop.delete
    world.answer_pushes(done)
    assert world.zk.get(znodes.delete_topic_path("t")) is None
    world.create()


def test_a_deletion_goes_on_under_the_next_controller(world):
    world.create(replicas=((1, 2),))
    delete(world, "t")
    done = world.activate()
    assert len(sends(done, act.SendStopReplica)) == 2
    world.answer_pushes(done)
    assert "t" not in world.machine.image.topics
    assert world.zk.get(znodes.topic_path("t")) is None


def test_what_was_stopped_before_a_deletion_is_not_taken_for_deleted(world):
    world.create(replicas=((1, 2),))
    world.propose(1, 1)
    request = ControlledShutdown(BrokerId(2), BrokerEpoch(world.epoch(2)))
    world.done.clear()
    world.command(request)
    stopped = sends(world.done, act.SendStopReplica, 2)
    assert [one.delete for one in stopped] == [False]
    deleted, _ = delete(world, "t")
    world.answer_pushes(stopped)
    world.answer_pushes(sends(deleted, act.SendStopReplica, 1))
    assert world.machine.image.is_deleting("t")
    world.answer_pushes(sends(deleted, act.SendStopReplica, 2))
    assert "t" not in world.machine.image.topics


def test_the_deletion_of_an_earlier_topic_of_the_name_confirms_nothing(world):
    world.create(replicas=((1, 2),))
    first, _ = delete(world, "t")
    world.zk.lose_next = "after"
    done, _ = create(world, world.new_topic("u", ((3,),)))
    again = sends(done, act.SendStopReplica)
    assert len(again) == 2
    world.answer_pushes(sends(first, act.SendStopReplica))
    assert "t" not in world.machine.image.topics
    world.create(replicas=((1, 2),))
    delete(world, "t")
    world.answer_pushes(again)
    assert world.machine.image.is_deleting("t")


def test_brokers_that_host_nothing_of_a_deleted_topic_hear_of_it_from_the_next_controller(world):
    world.create(replicas=((1, 2),))
    world.zk.multi([Create(znodes.delete_topic_path("t"))])
    (metadata,) = sends(world.activate(), act.SendUpdateMetadata, 3)
    assert (metadata.is_full, metadata.topics) == (True, ())


def test_a_replica_that_cannot_delete_its_log_keeps_the_topic_marked(world):
    world.create(replicas=((1, 2),))
    done, command = delete(world, "t", timeout_ms=100)
    (stop,) = sends(done, act.SendStopReplica, 2)
    errors = {(2, one): ErrorCode.kafka_storage_error for one, _ in stop.partitions}
    world.answer_pushes(done, errors)
    world.now_ms = 100
    result = world.answer_in(world.do(world.machine.on_tick(world.now_ms)), command)
    assert result.topics[0].error == ErrorCode.request_timed_out
    assert world.machine.image.is_deleting("t")


def test_nobody_is_elected_in_a_topic_that_is_being_deleted(world):
    world.create(replicas=((1, 2),))
    delete(world, "t")
    done = world.crash(1)
    assert not [one for one in done if isinstance(one, act.WriteZooKeeper)]
    assert world.propose(2, 2).error == ErrorCode.unknown_topic_id


def test_a_topic_may_be_named_by_its_id_and_unknown_ones_are_refused(world):
    topic = world.create(replicas=((1, 2),))
    doomed = (DoomedTopic(id=topic), DoomedTopic(id=world.new_topic().id), DoomedTopic("u"))
    done = world.submit(DeleteTopics(doomed, 10_000), 9)
    result = world.answer_in([*done, *world.answer_pushes(done)], 9)
    assert [one.error for one in result.topics] == [
        ErrorCode.none,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    ]


def test_a_topic_that_is_named_by_name_and_id_is_not_deleted(world):
    topic = world.create(replicas=((1, 2),))
    done = world.submit(DeleteTopics((DoomedTopic("t", topic),), 10_000), 9)
    (result,) = world.answer_in(done, 9).topics
    assert result.error is ErrorCode.invalid_request
    assert not world.machine.image.is_deleting("t")


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_deletion_whose_writes_were_lost_still_ends(world, lost):
    world.create(replicas=((1, 2),))
    world.zk.lose_next = lost
    done, _ = delete(world, "t")
    world.zk.lose_next = lost
    world.answer_pushes(done)
    world.answer_pushes([one for one in world.done if hasattr(one, "push")])
    assert "t" not in world.machine.image.topics
    assert world.zk.get(znodes.topic_path("t")) is None


def test_a_large_topic_is_removed_in_bounded_pieces(world):
    world.create(replicas=tuple((1,) for _ in range(600)))
    world.done.clear()
    done, _ = delete(world, "t")
    world.answer_pushes(done)
    writes = [one for one in world.done if isinstance(one, act.WriteZooKeeper)]
    assert [len(one.operations) for one in writes] == [2, 501, 501, 205]
    assert "t" not in world.machine.image.topics


def test_an_internal_topic_is_compacted_whoever_creates_it(world):
    world.create("__consumer_offsets", segment_bytes="2000000")
    expected = {"segment.bytes": "2000000", "cleanup.policy": "compact"}
    assert world.machine.image.topics["__consumer_offsets"].configs == expected
    world.activate()
    assert world.machine.image.topics["__consumer_offsets"].configs == expected


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_an_internal_topic_without_compaction_alone_is_not_created(world, policy):
    error, message = refusal(world, name="__transaction_state", configs={"cleanup.policy": policy})
    assert error == ErrorCode.invalid_config
    of = "cleanup.policy of internal topic '__transaction_state'"
    assert message == f"{of} is always compact, not '{policy}': do not set it"
