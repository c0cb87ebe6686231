"""This broker's copy of the cluster's metadata, as the controller last sent it.

Every broker holds it because clients may ask any broker for metadata. The copy may be stale: a client that
acts on stale metadata is corrected by error codes. Updates of an older controller are refused.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sparklog.model.cluster_facts import Broker, Endpoint, Node, PartitionState, SecurityProtocol
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig, TopicConfig
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

FULL = 1
"""The type of an update that names every topic. A cached topic that it does not name is deleted."""

LEADER_DELETING = -2
"""In place of a leader: the partition is being deleted, and is removed from the metadata."""


@dataclass(frozen=True, slots=True)
class CachedTopic:
    """One topic. ``partitions`` by number; ``offline`` replicas of each likewise."""

    name: str
    id: TopicId
    configs: Mapping[str, str]
    partitions: Mapping[int, PartitionState]
    offline: Mapping[int, tuple[BrokerId, ...]]
    schema_version: int = 0
    """The newest version of its columns; 0 if it has none."""
    _found: list[TopicConfig] = field(default_factory=list, init=False, repr=False, compare=False)
    """What ``config`` has returned last: each produce asks."""

    def config(self, broker: BrokerConfig) -> TopicConfig:
        """Its settings at a broker with the settings ``broker``."""
        for found in self._found:
            if found.broker is broker:
                return found
        self._found[:] = [broker.topic(self.configs)]
        return self._found[0]


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """One consistent view; replaced as a whole, so that readers need no lock."""

    controller_epoch: int = -1
    push: int = -1
    """The number of that controller's last update."""
    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    topics: Mapping[str, CachedTopic] = field(default_factory=dict)
    names: Mapping[TopicId, str] = field(default_factory=dict)

    def nodes(self, listener: str) -> dict[BrokerId, Node]:
        """The live brokers as clients of ``listener`` see them; those without it are left out."""
        nodes = (broker.node(listener) for broker in self.brokers.values())
        return {node.id: node for node in nodes if node is not None}


class MetadataCache:
    """Read by all without a lock. A controller and its successor may write at the same time."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._snapshot = MetadataSnapshot()
        self._waiting: list[Callable[[], None]] = []
        """For the first update."""

    @property
    def snapshot(self) -> MetadataSnapshot:
        return self._snapshot

    @property
    def is_received(self) -> bool:
        """Whether this broker has received an update since it started."""
        return self._snapshot.controller_epoch >= 0

    def when_received(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` once this broker has received an update: at once, or on the thread of the first."""
        with self._guard:
            if not self.is_received:
                self._waiting.append(go_on)
                return
        go_on()

    def forget(self, go_on: Callable[[], None]) -> bool:
        """Whether ``go_on`` still waits for the first update; it does not from now on."""
        with self._guard:
            if go_on not in self._waiting:
                return False
            self._waiting.remove(go_on)
            return True

    def may_exist(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition may exist. Before the controller's first update every partition may exist."""
        return not self.is_received or self.partition(topic_partition) is not None

    def update(self, request: UpdateMetadataRequest) -> ErrorCode | None:
        """Apply a controller's update, unless a newer controller has sent one; None for a late repetition.

        A controller sends the next update after the answer to the previous one. An update with an older
        number is therefore a delayed repetition. Applying it would restore stale metadata until the next
        update.
        """
        with self._guard:
            error = self._update(request)
            waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()
        return error

    def _update(self, request: UpdateMetadataRequest) -> ErrorCode | None:
        old = self._snapshot
        if request.controller_epoch < old.controller_epoch:
            return ErrorCode.stale_controller_epoch
        if request.controller_epoch == old.controller_epoch and -1 < request.push <= old.push:
            return None
        topics = {} if request.type_ == FULL else dict(old.topics)
        for state in request.topic_states:
            self._update_topic(topics, state)
        self._snapshot = MetadataSnapshot(
            controller_epoch=request.controller_epoch,
            push=request.push,
            brokers={
                BrokerId(broker.id_): Broker(
                    BrokerId(broker.id_), _endpoints(broker), BrokerEpoch(broker.epoch), broker.rack
                )
                for broker in request.live_brokers
            },
            topics=topics,
            names={topic.id: topic.name for topic in topics.values() if topic.id != NO_TOPIC_ID},
        )
        return ErrorCode.none

    def topic(self, name: str) -> CachedTopic | None:
        return self._snapshot.topics.get(name)

    def topic_name(self, topic_id: TopicId) -> str | None:
        return self._snapshot.names.get(topic_id)

    def topic_id(self, name: str) -> TopicId:
        topic = self._snapshot.topics.get(name)
        return topic.id if topic else NO_TOPIC_ID

    def node(self, broker_id: BrokerId, listener: str) -> Node | None:
        """The address of a live broker's ``listener``; None if the broker has no such listener, or is not
        live."""
        broker = self._snapshot.brokers.get(broker_id)
        return None if broker is None else broker.node(listener)

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        topic = self._snapshot.topics.get(topic_partition.topic)
        return topic.partitions.get(topic_partition.partition) if topic else None

    @staticmethod
    def _update_topic(topics: dict[str, CachedTopic], state: UpdateMetadataTopicState) -> None:
        known = topics.get(state.topic_name)
        if known is not None and known.id != state.topic_id:
            known = None
        partitions = dict(known.partitions) if known else {}
        offline = dict(known.offline) if known else {}
        for partition in state.partition_states:
            if partition.leader == LEADER_DELETING:
                partitions.pop(partition.partition_index, None)
                continue
            partitions[partition.partition_index] = partition_state(partition)
            offline[partition.partition_index] = tuple(map(BrokerId, partition.offline_replicas))
        if partitions:
            topics[state.topic_name] = CachedTopic(
                state.topic_name,
                state.topic_id,
                dict(state.configs),
                partitions,
                offline,
                state.schema_version,
            )
        else:
            topics.pop(state.topic_name, None)


def _endpoints(broker: UpdateMetadataBroker) -> dict[str, Endpoint]:
    """A broker's endpoints by listener, without those of an unknown security protocol."""
    known = {int(protocol) for protocol in SecurityProtocol}
    return {
        one.listener: Endpoint(one.host, one.port, SecurityProtocol(one.security_protocol))
        for one in broker.endpoints
        if one.security_protocol in known
    }


def partition_state(state: UpdateMetadataPartitionState) -> PartitionState:
    return PartitionState(
        leader=BrokerId(state.leader),
        leader_epoch=LeaderEpoch(state.leader_epoch),
        isr=broker_ids(state.isr),
        replicas=broker_ids(state.replicas),
        partition_epoch=state.zk_version,
        lost_in_epoch=LeaderEpoch(state.lost_in_epoch),
    )


def broker_ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))
