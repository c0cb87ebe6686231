"""Topics, partitions and leaders as one Metadata response had them: immutable, replaced as a whole. And where
coordinators were found last.

Metadata is often a little old; only a leader's own answer is authoritative. A client uses its metadata until
an answer contradicts it, and then requests newer metadata.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.discovery.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

COORDINATORS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    partition: int
    leader: BrokerId
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    lost_in_epoch: int = -1
    """The last leader epoch that may have begun without records that were acknowledged; -1 if none did."""


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic; with an error code other than ``none`` all else is empty."""

    name: str
    topic_id: TopicId
    partitions: Mapping[int, PartitionMetadata]
    is_internal: bool = False
    error_code: ErrorCode = ErrorCode.none
    schema_version: int = 0
    """The newest version of its columns; 0 if it has none."""

    @property
    def replication_factor(self) -> int:
        """Replicas of its first partition; all have as many, unless a reassignment is in progress."""
        first = next(iter(self.partitions.values()), None)
        return len(first.replicas) if first else 0

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, partition) for partition in sorted(self.partitions)]


@dataclass(frozen=True, slots=True)
class KnownLeader:
    """A partition's leader, its leader epoch, and the topic's id."""

    broker_id: BrokerId
    leader_epoch: int
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The metadata; ``fetched_ms`` is the time of the last request."""

    brokers: Mapping[BrokerId, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    fetched_ms: int = 0

    def leader(self, topic_partition: TopicPartition) -> KnownLeader | ErrorCode:
        """The partition's leader, or the error code that says why none is known."""
        topic = self.topics.get(topic_partition.topic)
        if topic is None:
            return ErrorCode.unknown_topic_or_partition
        if topic.error_code is not ErrorCode.none:
            return topic.error_code
        partition = topic.partitions.get(topic_partition.partition)
        if partition is None:
            return ErrorCode.unknown_topic_or_partition
        if partition.error_code is ErrorCode.listener_not_found:
            return partition.error_code
        if partition.leader not in self.brokers:
            return ErrorCode.leader_not_available
        return KnownLeader(partition.leader, partition.leader_epoch, topic.topic_id)

    def endpoint(self, broker_id: BrokerId) -> Endpoint:
        broker = self.brokers[broker_id]
        return Endpoint(broker.host, broker.port)

    def updated(self, answer: "ClusterMetadata", *, is_complete: bool) -> "ClusterMetadata":
        """This metadata with a newer answer merged; a complete answer drops topics that it lacks."""
        topics = dict(answer.topics) if is_complete else {**self.topics, **answer.topics}
        return replace(answer, topics={name: self._newer(name, topic) for name, topic in topics.items()})

    def _newer(self, name: str, topic: TopicMetadata) -> TopicMetadata:
        """Partitions never go back to an older leader epoch, which a broker that lags may report."""
        known = self.topics.get(name)
        if known is None or known is topic or known.topic_id != topic.topic_id:
            return topic
        partitions = dict(topic.partitions)
        for number, old in known.partitions.items():
            new = partitions.get(number)
            if new is not None and new.leader_epoch < old.leader_epoch:
                partitions[number] = old
        return replace(topic, partitions=partitions)


def metadata_of(response: MetadataResponse, now_ms: MonotonicMs) -> ClusterMetadata:
    """A Metadata response as ``ClusterMetadata``, without brokers that have left."""
    return ClusterMetadata(
        brokers={
            BrokerId(b.node_id): Node(BrokerId(b.node_id), b.host, b.port, rack=b.rack)
            for b in response.brokers
            if not b.has_left
        },
        topics={topic.name: _topic(topic) for topic in response.topics if topic.name is not None},
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        fetched_ms=now_ms,
    )


def _topic(topic: MetadataResponseTopic) -> TopicMetadata:
    return TopicMetadata(
        name=topic.name or "",
        topic_id=topic.topic_id or NO_TOPIC_ID,
        partitions={p.partition_index: _partition(p) for p in topic.partitions},
        is_internal=topic.is_internal,
        error_code=topic.error_code,
        schema_version=topic.schema_version,
    )


def _partition(partition: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(
        partition=partition.partition_index,
        leader=BrokerId(partition.leader_id),
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline_replicas=tuple(partition.offline_replicas),
        error_code=partition.error_code,
        lost_in_epoch=partition.lost_in_epoch,
    )


class KnownCoordinators:
    """By type and key, the brokers where coordinators were found last, for any thread.

    One that has moved costs its client one request more. So tasks of one process do not all ask where the
    coordinator of their write, or of their cut, is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[tuple[int, str], Node] = {}

    def get(self, key_type: int, key: str) -> Node | None:
        with self._lock:
            return self._nodes.get((key_type, key))

    def found(self, key_type: int, key: str, node: Node) -> None:
        with self._lock:
            self._nodes[key_type, key] = node
            if len(self._nodes) > COORDINATORS_MAX:
                del self._nodes[next(iter(self._nodes))]

    def moved(self, key_type: int, key: str, node: Node) -> None:
        """It is not at ``node``; another thread may know already where it is."""
        with self._lock:
            if self._nodes.get((key_type, key)) == node:
                del self._nodes[key_type, key]
