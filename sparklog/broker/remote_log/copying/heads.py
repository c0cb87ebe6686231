"""Heads of manifests in ZooKeeper: ``/remote_logs/TOPIC_ID/PARTITION``, written by leaders alone.

A head is written in one multi-operation that checks the version of the partition's state, which every
election changes. That state, read just before, must name this broker in the leader epoch of the work. So a
replaced leader changes nothing, whatever it has uploaded.

``/remote_logs/TOPIC_ID`` has the topic's name. It is made before the topic's first object, and removed once
the topic is deleted and nothing of it was listed for a day. It is the only proof of a deletion: an ensemble
that was restored from an old snapshot does not know later topics, whose objects must stay.
"""

from dataclasses import dataclass

from sparklog.core.controller.state.znodes import (
    REMOTE_LOGS,
    decode_state,
    decode_topic,
    state_path,
    topic_path,
)
from sparklog.core.remote_log.head import Head, decode_head, encode_head
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.ids import BrokerId, TopicId
from sparklog.model.zookeeper import Check, Create, Operation, OperationRefused, SetData, ZooKeeper


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A head, and the version of its node; None if there is no node yet."""

    head: Head
    version: int | None


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader that writes a head, in its leader epoch."""

    broker: BrokerId
    leader_epoch: int


def topic_logs_path(topic_id: TopicId) -> str:
    return f"{REMOTE_LOGS}/{topic_id}"


def head_path(partition: RemotePartition) -> str:
    return f"{topic_logs_path(partition.topic_id)}/{partition.partition}"


def read_head(zookeeper: ZooKeeper, partition: RemotePartition) -> StoredHead | None:
    """The head as it is now; None if nothing was ever copied. ManifestError if it cannot be read."""
    zookeeper.sync()
    node = zookeeper.get(head_path(partition))
    return (
        None if node is None else StoredHead(decode_head(head_path(partition), node.data), node.stat.version)
    )


def leads(zookeeper: ZooKeeper, partition: RemotePartition, leadership: Leadership) -> int | None:
    """The version of the state's node if ``leadership`` is current; None if another broker leads, or the
    topic was made again.
    """
    if not is_of_live_topic(zookeeper, partition.topic, partition.topic_id):
        return None
    node = zookeeper.get(state_path(partition.topic, partition.partition))
    if node is None:
        return None
    state = decode_state(partition.topic, partition.partition, node.data)
    is_ours = (state.leader, state.leader_epoch) == (leadership.broker, leadership.leader_epoch)
    return node.stat.version if is_ours else None


def write_head(
    zookeeper: ZooKeeper,
    partition: RemotePartition,
    leadership: Leadership,
    head: Head,
    replaced: StoredHead | None,
) -> bool:
    """Replace ``replaced`` by ``head``; False if another broker leads, or has written a head since.

    After ConnectionLost the head may be written, or not: read it again.
    """
    state_version = leads(zookeeper, partition, leadership)
    if state_version is None:
        return False
    path, data = head_path(partition), encode_head(head)
    write: Operation
    if replaced is None or replaced.version is None:
        note_topic(zookeeper, partition)
        write = Create(path, data)
    else:
        write = SetData(path, data, replaced.version)
    try:
        zookeeper.multi([Check(state_path(partition.topic, partition.partition), state_version), write])
    except OperationRefused:
        return False
    return True


def note_topic(zookeeper: ZooKeeper, partition: RemotePartition) -> None:
    """Make the topic's node, before its first upload: objects without one are never deleted."""
    zookeeper.ensure_path(REMOTE_LOGS)
    path = topic_logs_path(partition.topic_id)
    if zookeeper.exists(path) is not None:
        return
    try:
        zookeeper.create(path, partition.topic.encode())
    except OperationRefused as refused:
        if refused.reason != "node_exists":  # another partition's leader has made it
            raise


def topics_with_logs(zookeeper: ZooKeeper) -> set[str]:
    """The ids of topics that have, or had, objects in the store."""
    return set(zookeeper.children(REMOTE_LOGS))


def abandoned(zookeeper: ZooKeeper) -> list[RemotePartition]:
    """Partitions with a head whose topic is deleted, or made again under its name."""
    found = []
    for name in zookeeper.children(REMOTE_LOGS):
        topic_id = TopicId(name)
        node = zookeeper.get(topic_logs_path(topic_id))
        if node is None:
            continue
        topic = node.data.decode()
        if is_of_live_topic(zookeeper, topic, topic_id):
            continue
        numbers = zookeeper.children(topic_logs_path(topic_id))
        found += [RemotePartition(topic, topic_id, int(number)) for number in numbers]
    return found


def deleted_topics(zookeeper: ZooKeeper) -> set[tuple[str, TopicId]]:
    """Names and ids of deleted topics that may have objects in the store."""
    zookeeper.sync()
    found = set()
    for topic_id in map(TopicId, topics_with_logs(zookeeper)):
        node = zookeeper.get(topic_logs_path(topic_id))
        if node is not None and not is_of_live_topic(zookeeper, node.data.decode(), topic_id):
            found.add((node.data.decode(), topic_id))
    return found


def forget_topic(zookeeper: ZooKeeper, topic_id: TopicId) -> None:
    """Remove the node of a deleted topic that has no object in the store any more."""
    _delete(zookeeper, topic_logs_path(topic_id))


def is_of_live_topic(zookeeper: ZooKeeper, topic: str, topic_id: TopicId) -> bool:
    """Whether there is a topic of this name with this id now."""
    node = zookeeper.get(topic_path(topic))
    return node is not None and decode_topic(topic, node.data).id == topic_id


def remove_head(zookeeper: ZooKeeper, partition: RemotePartition) -> None:
    """Remove the head of a deleted topic's partition, whose objects are gone. Idempotent."""
    _delete(zookeeper, head_path(partition))


def _delete(zookeeper: ZooKeeper, path: str) -> None:
    try:
        zookeeper.delete(path)
    except OperationRefused as refused:
        if refused.reason not in ("no_node", "not_empty"):
            raise
