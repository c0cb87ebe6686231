"""Messages to brokers about changes of the image, batched: at most one message of each kind per broker.

Where leaders only move, a broker gets LeaderAndIsr first, then UpdateMetadata, as from Kafka's controller: a
former leader refuses the produces that wait at it before it names its successor to clients, or a plain
producer would send its next record there. Where a broker or a partition is new, UpdateMetadata is first: a
follower must know its leader's address before it follows. StopReplica is last.

Changes are collected between ZooKeeper writes, and ``flush`` turns them into messages. A broker that has just
registered is sent everything, and so is every broker when the controller is new.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.core.controller.actions import (
    PushId,
    Send,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    TopicUpdate,
)
from sparklog.core.controller.operations.throttling import broker_configs, throttled_moves, topic_configs
from sparklog.core.controller.state.image import ClusterImage, TopicImage
from sparklog.model.cluster_facts import Broker, PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition

LEADER_DURING_DELETE: Final = BrokerId(-2)
EPOCH_DURING_DELETE: Final = LeaderEpoch(-2)
"""Greater than every epoch: the stop applies whatever epoch the broker knows (KIP-570)."""


@dataclass(slots=True)
class PendingPushes:
    """Changes since the last flush. ``roles`` are partitions whose replicas must be sent a role."""

    metadata: dict[TopicPartition, None] = field(default_factory=dict)
    roles: dict[TopicPartition, None] = field(default_factory=dict)
    new: set[TopicPartition] = field(default_factory=set)
    starting: set[BrokerId] = field(default_factory=set)
    deleting: list[TopicUpdate] = field(default_factory=list)
    deleted_topics: set[str] = field(default_factory=set)
    moved: dict[BrokerId, list[tuple[TopicPartition, LeaderEpoch]]] = field(default_factory=dict)
    """Replicas that moved away from a broker, each with the epoch of that move."""
    brokers_changed: bool = False
    next_push: int = 0

    def partition_changed(self, partition: TopicPartition, *, roles: bool, is_new: bool) -> None:
        self.metadata[partition] = None
        if roles:
            self.roles[partition] = None
        if is_new:
            self.new.add(partition)

    def replicas_moved_away(
        self, partition: TopicPartition, brokers: Iterable[BrokerId], epoch: LeaderEpoch
    ) -> None:
        for broker in brokers:
            self.moved.setdefault(broker, []).append((partition, epoch))

    def deletion_started(self, image: ClusterImage, topic: str) -> None:
        self.deleting.append(_deleted_update(image, topic))
        self.deleted_topics.add(topic)

    @property
    def is_empty(self) -> bool:
        return not (self.metadata or self.starting or self.deleting or self.brokers_changed)

    def flush(self, image: ClusterImage) -> list[Send]:
        """The messages, in the order in which they must be sent; nothing is pending afterwards."""
        if self.is_empty:
            return []
        metadata, roles, stops = self._metadata(image), self._roles(image), self._stops(image)
        sends = [*metadata, *roles, *stops] if self.starting or self.new else [*roles, *metadata, *stops]
        self._clear()
        return sends

    def _clear(self) -> None:
        self.metadata, self.roles, self.new = {}, {}, set()
        self.starting, self.deleting, self.deleted_topics, self.moved = set(), [], set(), {}
        self.brokers_changed = False

    def stop_replicas(
        self, image: ClusterImage, broker: BrokerId, partitions: Iterable[tuple[TopicPartition, LeaderEpoch]]
    ) -> SendStopReplica:
        """Stop hosting, and keep the logs: the end of a controlled shutdown."""
        epoch = image.brokers[broker].broker.epoch
        return self._stop(image, broker, epoch, tuple(partitions), delete=False)

    def _stop(
        self,
        image: ClusterImage,
        broker: BrokerId,
        epoch: BrokerEpoch,
        partitions: tuple[tuple[TopicPartition, LeaderEpoch], ...],
        *,
        delete: bool,
    ) -> SendStopReplica:
        ids = {partition.topic: image.topics[partition.topic].id for partition, _ in partitions}
        return SendStopReplica(self._push_id(), broker, epoch, partitions, delete, ids)

    def _push_id(self) -> PushId:
        self.next_push += 1
        return PushId(self.next_push)

    # -- UpdateMetadata

    def _metadata(self, image: ClusterImage) -> Iterable[Send]:
        live = image.live_brokers()
        changed = (*group(image, self.metadata), *self.deleting)
        everything = group(image, _stated(image)) if self.starting else ()
        for broker in live:
            if broker.id in self.starting:
                topics = (*everything, *self.deleting)
                yield self._update(image, broker, live, topics, is_full=True)
            elif changed or self.brokers_changed:
                yield self._update(image, broker, live, changed)

    def _update(
        self,
        image: ClusterImage,
        broker: Broker,
        live: tuple[Broker, ...],
        topics: tuple[TopicUpdate, ...],
        *,
        is_full: bool = False,
    ) -> SendUpdateMetadata:
        own, everybodys = broker_configs(image, image.dynamic_configs(broker.id)), image.default_configs
        push = self._push_id()
        ended = tuple(sorted(image.ended.values()))
        return SendUpdateMetadata(
            push, broker.id, broker.epoch, live, topics, own, everybodys, is_full, ended
        )

    # -- LeaderAndIsr

    def _roles(self, image: ClusterImage) -> Iterable[Send]:
        hosted = _by_host(image, self.roles)
        if self.starting:
            everything = _by_host(image, _stated(image))
            hosted = {
                broker: everything.get(broker, []) if broker in self.starting else hosted.get(broker, [])
                for broker in image.brokers
            }
        for broker in image.live_brokers():
            is_full = broker.id in self.starting
            partitions = hosted.get(broker.id, [])
            if partitions or is_full:
                yield self._leader_and_isr(image, broker, partitions, is_full)

    def _leader_and_isr(
        self, image: ClusterImage, broker: Broker, partitions: Sequence[TopicPartition], is_full: bool
    ) -> SendLeaderAndIsr:
        states = (image.state(partition) for partition in partitions)
        leaders = {state.leader for state in states if state is not None}
        return SendLeaderAndIsr(
            push=self._push_id(),
            broker=broker.id,
            broker_epoch=broker.epoch,
            is_full=is_full,
            topics=group(image, partitions),
            new=frozenset(partition for partition in partitions if partition in self.new),
            live_leaders=tuple(one for one in image.live_brokers() if one.id in leaders),
        )

    # -- StopReplica of deleted topics, and of replicas that were moved away

    def _stops(self, image: ClusterImage) -> Iterable[Send]:
        for broker in image.live_brokers():
            partitions = [
                (partition, EPOCH_DURING_DELETE)
                for topic, deletion in image.deletions.items()
                if broker.id in self.starting or topic in self.deleted_topics
                for partition in sorted(deletion.awaiting.get(broker.id, ()))
            ]
            partitions += [
                (partition, epoch)
                for partition, epoch in self.moved.get(broker.id, ())
                if _is_elsewhere(image, partition, broker.id)
            ]
            if partitions:
                yield self._stop(image, broker.id, broker.epoch, tuple(partitions), delete=True)


def _is_elsewhere(image: ClusterImage, partition: TopicPartition, broker: BrokerId) -> bool:
    """Whether the partition exists, and not on this broker. (It may have moved back meanwhile.)"""
    if image.state(partition) is None or image.is_deleting(partition.topic):
        return False
    return broker not in image.replicas_of(partition)


def group(image: ClusterImage, partitions: Iterable[TopicPartition]) -> tuple[TopicUpdate, ...]:
    """The present states of these partitions, by topic; those without a state are left out."""
    throttled = throttled_moves(image)
    by_topic: defaultdict[str, list[tuple[int, PartitionState]]] = defaultdict(list)
    for partition in partitions:
        state = image.state(partition)
        if state is not None and not image.is_deleting(partition.topic):
            by_topic[partition.topic].append((partition.partition, state))
    return tuple(
        _update_of(image, image.topics[name], tuple(states), throttled) for name, states in by_topic.items()
    )


def _update_of(
    image: ClusterImage,
    topic: TopicImage,
    states: tuple[tuple[int, PartitionState], ...],
    throttled: frozenset[TopicPartition] = frozenset(),
) -> TopicUpdate:
    configs = topic_configs(image, topic, throttled)
    return TopicUpdate(topic.name, topic.id, configs, states, topic.node.schema_version)


def _stated(image: ClusterImage) -> list[TopicPartition]:
    return [partition for partition, state in image.partitions() if state is not None]


def _by_host(
    image: ClusterImage, partitions: Iterable[TopicPartition]
) -> dict[BrokerId, list[TopicPartition]]:
    """The partitions that each live broker hosts a replica of."""
    hosted: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        if image.state(partition) is None or image.is_deleting(partition.topic):
            continue
        for replica in image.replicas_of(partition):
            if replica in image.brokers:
                hosted[replica].append(partition)
    return hosted


def _deleted_update(image: ClusterImage, name: str) -> TopicUpdate:
    """The topic's partitions with the leader that says "deleted" to metadata caches."""
    topic = image.topics[name]
    states = tuple(
        (number, replace(state, leader=LEADER_DURING_DELETE, leader_epoch=EPOCH_DURING_DELETE))
        for number, state in enumerate(topic.states)
        if state is not None
    )
    return _update_of(image, topic, states)
