"""Heads of manifests in ZooKeeper: the leader alone, in its epoch, writes one upon the head it has read."""

import uuid
from collections.abc import Iterator

import pytest

from sparklog.broker.remote_log.copying.heads import (
    Leadership,
    StoredHead,
    abandoned,
    deleted_topics,
    forget_topic,
    head_path,
    read_head,
    remove_head,
    write_head,
)
from sparklog.core.controller.state.znodes import (
    Assignment,
    TopicNode,
    encode_state,
    encode_topic,
    partition_path,
    state_path,
    topic_path,
)
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import ManifestError
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, LeaderEpoch
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer
from tests.core.remote_log.manifests import ORDERS, segment

EMPTY = Head(ORDERS.topic_id, "file:///history")
LEADER = Leadership(BrokerId(1), 4)


@pytest.fixture
def zookeeper() -> Iterator[MemoryZooKeeper]:
    session = MemoryZooKeeper(MemoryZooKeeperServer(), operation_timeout_ms=6_000)
    session.start(6_000)
    make_topic(session, ORDERS)
    elect(session, broker=1, epoch=4)
    yield session
    session.close()


def make_topic(zookeeper: MemoryZooKeeper, topic: RemotePartition) -> None:
    assignments = (Assignment((BrokerId(1), BrokerId(2)), (), ()),) * (topic.partition + 1)
    zookeeper.ensure_path(partition_path(topic.topic, topic.partition))
    zookeeper.set(topic_path(topic.topic), encode_topic(TopicNode(topic.topic_id, assignments)))


def elect(zookeeper: MemoryZooKeeper, *, broker: int, epoch: int) -> None:
    path = state_path(ORDERS.topic, ORDERS.partition)
    replicas = (BrokerId(1), BrokerId(2))
    state = PartitionState(BrokerId(broker), LeaderEpoch(epoch), replicas, replicas)
    zookeeper.ensure_path(path)
    zookeeper.set(path, encode_state(state, ControllerEpoch(1)))


def test_a_leader_writes_a_head_and_reads_it_back(zookeeper: MemoryZooKeeper) -> None:
    assert read_head(zookeeper, ORDERS) is None
    head = EMPTY.with_copied(segment(0, 10))
    assert write_head(zookeeper, ORDERS, LEADER, head, None)
    stored = read_head(zookeeper, ORDERS)
    assert stored == StoredHead(head, 0)
    assert write_head(zookeeper, ORDERS, LEADER, head.with_copied(segment(10, 20)), stored)


@pytest.mark.parametrize(("broker", "epoch"), [(2, 5), (1, 5), (1, 6)])
def test_a_leader_that_was_replaced_writes_nothing(
    zookeeper: MemoryZooKeeper, broker: int, epoch: int
) -> None:
    elect(zookeeper, broker=broker, epoch=epoch)
    assert not write_head(zookeeper, ORDERS, LEADER, EMPTY.with_copied(segment(0, 10)), None)
    assert read_head(zookeeper, ORDERS) is None


def test_an_election_between_the_look_and_the_write_is_noticed(
    zookeeper: MemoryZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    multi = zookeeper.multi

    def elect_first(operations, **options):
        if len(operations) == 1:
            return multi(operations, **options)
        monkeypatch.undo()
        elect(zookeeper, broker=2, epoch=5)
        return multi(operations, **options)

    monkeypatch.setattr(zookeeper, "multi", elect_first)
    assert not write_head(zookeeper, ORDERS, LEADER, EMPTY.with_copied(segment(0, 10)), None)
    assert read_head(zookeeper, ORDERS) is None


def test_a_head_that_was_written_since_is_not_overwritten(zookeeper: MemoryZooKeeper) -> None:
    first = EMPTY.with_copied(segment(0, 10))
    assert write_head(zookeeper, ORDERS, LEADER, first, None)
    assert not write_head(zookeeper, ORDERS, LEADER, EMPTY.with_copied(segment(0, 20)), None)
    stored = read_head(zookeeper, ORDERS)
    assert write_head(zookeeper, ORDERS, LEADER, first.with_copied(segment(10, 20)), stored)
    assert not write_head(zookeeper, ORDERS, LEADER, first.with_copied(segment(10, 30)), stored)


def test_a_leader_of_a_topic_that_was_made_again_writes_nothing(zookeeper: MemoryZooKeeper) -> None:
    earlier = RemotePartition(ORDERS.topic, uuid.UUID(int=6), ORDERS.partition)
    head = Head(earlier.topic_id, EMPTY.url).with_copied(segment(0, 10))
    assert not write_head(zookeeper, earlier, LEADER, head, None)


def test_heads_of_deleted_topics_are_found_until_they_are_removed(zookeeper: MemoryZooKeeper) -> None:
    assert write_head(zookeeper, ORDERS, LEADER, EMPTY.with_copied(segment(0, 10)), None)
    assert abandoned(zookeeper) == []
    make_topic(zookeeper, RemotePartition(ORDERS.topic, uuid.UUID(int=8), ORDERS.partition))
    assert abandoned(zookeeper) == [ORDERS]
    remove_head(zookeeper, ORDERS)
    remove_head(zookeeper, ORDERS)
    assert abandoned(zookeeper) == []
    assert deleted_topics(zookeeper) == {(ORDERS.topic, ORDERS.topic_id)}
    forget_topic(zookeeper, ORDERS.topic_id)
    assert deleted_topics(zookeeper) == set()
    assert zookeeper.children("/remote_logs") == []


def test_a_head_that_cannot_be_read_stops_the_reader(zookeeper: MemoryZooKeeper) -> None:
    zookeeper.ensure_path(head_path(ORDERS))
    with pytest.raises(ManifestError, match="is no manifest"):
        read_head(zookeeper, ORDERS)
