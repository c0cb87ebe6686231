"""No write is larger than ZooKeeper takes, whatever is asked."""

import uuid

import pytest

from sparklog.core.controller.commands.config_commands import ChangeConfigs, ConfigChange, SettingChange
from sparklog.core.controller.commands.partition_commands import AlterReassignments, ListReassignments, Move
from sparklog.core.controller.commands.topic_commands import CreatePartitions, CreateTopics, Increase
from sparklog.core.controller.leaders.partition_writes import change_state, create_state
from sparklog.core.controller.state import write_size, znodes
from sparklog.core.controller.state.znodes import Assignment, TopicNode
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.kafka_numbers import TOPIC_RESOURCE
from sparklog.model.zookeeper import SetData

LIMIT = 6_000
TOPICS = 8


@pytest.fixture
def sizes(world, monkeypatch):
    """What every write takes, with a limit that is quickly met."""
    for module in ("leaders.partition_writes", "topics.topic_creation", "topics.partition_increase"):
        monkeypatch.setattr(f"sparklog.core.controller.{module}.WRITE_BYTES_MAX", LIMIT)
    seen, multi = [], world.zk.multi

    def measured(operations, **more):
        seen.append(write_size.bytes_of(operations))
        return multi(operations, **more)

    monkeypatch.setattr(world.zk, "multi", measured)
    return seen


def begin_moves(world, partitions=20):
    """Every partition of eight topics is to leave broker 3."""
    for number in range(TOPICS):
        world.create(f"t{number}", ((3, 1),) * partitions)
    moves = [
        Move(TopicPartition(f"t{number}", one), (BrokerId(2), BrokerId(1)))
        for one in range(partitions)
        for number in range(TOPICS)
    ]
    return world.command(AlterReassignments(tuple(moves)))


def test_creations_and_moves_of_many_partitions_are_cut_into_writes_that_fit(world, sizes):
    result = begin_moves(world)
    assert [one.error for one in result.partitions] == [ErrorCode.none] * 20 * TOPICS
    assert max(sizes) <= LIMIT
    assert all(one.adding == (2,) for one in ongoing(world))


def test_moves_that_end_together_are_cut_into_writes_that_fit(world, sizes):
    begin_moves(world)
    for topic in list(world.machine.image.topics):
        for number in range(20):
            state = world.state(topic, number)
            caught_up = znodes.StateNode(
                state.leader,
                state.leader_epoch,
                (*state.isr, BrokerId(2)),
                world.machine.image.controller_epoch,
                {**state.isr_incarnations, BrokerId(2): 0},
                min_insync_replicas=state.min_insync_replicas,
            ).partition(world.machine.image.topics[topic].node.assignments[number], 0)
            data = znodes.encode_state(caught_up, world.machine.image.controller_epoch)
            world.zk.multi([SetData(znodes.state_path(topic, number), data, -1)])
    world.activate()
    assert not ongoing(world)
    assert max(sizes) <= LIMIT


def test_an_increase_of_many_partitions_is_cut_into_writes_that_fit(world, sizes):
    world.create("t", ((1, 2),))
    world.command(CreatePartitions((Increase("t", 60),), 1_000))
    assert world.stored("t", 59).has_leader
    assert max(sizes) <= LIMIT


def ongoing(world):
    return world.command(ListReassignments()).moves


def test_a_topic_that_does_not_fit_into_one_node_is_refused_when_made_and_when_it_grows(world, monkeypatch):
    monkeypatch.setattr("sparklog.core.controller.state.write_size.TOPIC_BYTES_MAX", 300)
    result = world.command(CreateTopics((world.new_topic("t", ((1, 2),) * 20),), 1_000))
    assert result.topics[0].error == ErrorCode.invalid_partitions
    assert "more than 300" in result.topics[0].message
    world.create("t", ((1, 2),))
    result = world.command(CreatePartitions((Increase("t", 20),), 1_000))
    assert result.topics[0].error == ErrorCode.invalid_partitions


def test_moves_that_make_a_topics_node_too_large_are_refused_but_can_be_cancelled(world, monkeypatch):
    monkeypatch.setattr("sparklog.core.controller.leaders.partition_writes.MOVING_TOPIC_BYTES_MAX", 1_000)
    world.create("t", ((3, 1),) * 20)
    targets = [Move(TopicPartition("t", one), (BrokerId(2), BrokerId(1))) for one in range(20)]
    result = world.command(AlterReassignments(tuple(targets)))
    refused = [one for one in result.partitions if one.error == ErrorCode.invalid_request]
    assert refused
    assert len(ongoing(world)) == 20 - len(refused) > 0
    monkeypatch.setattr("sparklog.core.controller.leaders.partition_writes.MOVING_TOPIC_BYTES_MAX", 10)
    world.command(AlterReassignments(tuple(Move(one.partition, None) for one in ongoing(world))))
    assert not ongoing(world)


def test_settings_that_are_too_large_are_refused_and_so_are_too_many_in_one_request(world, monkeypatch):
    world.create("a", ((1, 2),))
    world.create("b", ((1, 2),))

    def change(*names):
        changes = (SettingChange("retention.ms", "set", "1000"),)
        resources = tuple(ConfigChange(TOPIC_RESOURCE, name, changes) for name in names)
        return [one.error for one in world.command(ChangeConfigs(resources)).resources]

    monkeypatch.setattr("sparklog.core.controller.topics.config_changes.WRITE_BYTES_MAX", 200)
    assert change("a", "b") == [ErrorCode.invalid_request] * 2
    assert change("a") == [ErrorCode.none]
    monkeypatch.setattr("sparklog.core.controller.state.write_size.CONFIGS_BYTES_MAX", 20)
    assert change("b") == [ErrorCode.invalid_config]
    result = world.command(CreateTopics((world.new_topic("c", configs={"retention.ms": "86400000"}),), 1_000))
    assert result.topics[0].error == ErrorCode.invalid_config


@pytest.mark.parametrize("members", [1, 3, 40])
@pytest.mark.parametrize("name", ["t", "n" * 249])
def test_estimates_are_no_less_than_what_is_written(world, members, name):
    brokers = tuple(BrokerId(999_000 + one) for one in range(members))
    half = members // 2
    assignment = Assignment(brokers, brokers[:half], brokers[half:])
    state = PartitionState(
        leader=brokers[0],
        leader_epoch=LeaderEpoch(2**31 - 1),
        isr=brokers[:half] or brokers,
        replicas=brokers,
        eligible=brokers[half:] if half else (),
        isr_incarnations=dict.fromkeys(brokers, 9_999),
    )
    partition = TopicPartition(name, 99_999)
    estimate = write_size.bytes_of_state(name, assignment)
    assert estimate >= write_size.bytes_of(create_state(world.machine.image, partition, state))
    assert estimate >= write_size.bytes_of([change_state(world.machine.image, partition, state, state)])
    node = TopicNode(uuid.uuid4(), (assignment,) * 2_000)
    real = len(znodes.encode_topic(node))
    assert real <= write_size.bytes_of_node(node.assignments, brokers) < 1.5 * real
