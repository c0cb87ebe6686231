"""The controller's in-memory replay of what ZooKeeper holds.

A ``ClusterSnapshot`` is what was read. The ``ClusterImage`` starts as its copy. It changes only by ``replay``
of changes whose write ZooKeeper has confirmed. Decisions never change it. The image also has facts that only
this controller knows: which brokers are shutting down, which replicas are offline, where logs end. They are
forgotten with the broker's incarnation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparklog.core.client_quotas.quota_book import QuotaBook
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.acl_nodes import AclNode
from sparklog.core.controller.state.applications import Application, KnownBroker
from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.incarnation import StoredIncarnation
from sparklog.core.controller.state.leader_choice import Rules
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.core.controller.state.operations import Operation, OperationForgotten, OperationWritten
from sparklog.core.controller.state.partition_counts import PartitionCounts
from sparklog.core.controller.state.partition_rules import check_partition
from sparklog.core.controller.state.report_waits import ReportWaits
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.state.znodes import Assignment, ProducerIdBlock, TopicNode
from sparklog.core.security.rules import Pattern
from sparklog.model.cluster_facts import Broker, PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicId, TopicPartition
from sparklog.model.settings.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker, and what its registration proves about its logs."""

    broker: Broker
    incarnation: StoredIncarnation


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A topic as read. A state is None where the partition's state node is missing."""

    name: str
    node: TopicNode
    configs: Mapping[str, str]
    states: tuple[PartitionState | None, ...]
    schema: bytes = b""
    """As ``TopicImage``."""


@dataclass(frozen=True, slots=True)
class EntityNode:
    """The settings of a user, a client or an address, and the version of the node that has them."""

    configs: Mapping[str, str]
    version: int


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Everything that a controller reads when it becomes active."""

    controller_epoch: ControllerEpoch
    controller_epoch_version: int
    brokers: Mapping[BrokerId, LiveBroker] = field(default_factory=dict)
    topics: tuple[TopicSnapshot, ...] = ()
    deletions: frozenset[str] = frozenset()
    producer_block: ProducerIdBlock | None = None
    producer_block_version: int = -1
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    known: Mapping[BrokerId, KnownBroker] = field(default_factory=dict)
    """Every broker that has registered, with what is wished of it."""
    operations: Mapping[int, Operation] = field(default_factory=dict)
    quotas: Mapping[str, EntityNode] = field(default_factory=dict)
    acls: Mapping[Pattern, AclNode] = field(default_factory=dict)
    """Empty without an authorizer."""


@dataclass(slots=True)
class TopicImage:
    name: str
    node: TopicNode
    configs: Mapping[str, str]
    states: list[PartitionState | None]
    rules: Rules
    schema: bytes = b""
    """The encoded ``SchemaDocument``; empty if the topic has no columns."""

    @property
    def id(self) -> TopicId:
        return self.node.id

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(len(self.states))]


@dataclass(slots=True)
class Deletion:
    """A topic that is being deleted, and the replicas whose brokers have not yet confirmed it."""

    awaiting: dict[BrokerId, set[TopicPartition]]

    @property
    def is_confirmed(self) -> bool:
        return not self.awaiting

    def confirm(self, broker: BrokerId, partition: TopicPartition) -> None:
        remaining = self.awaiting.get(broker, set())
        remaining.discard(partition)
        if not remaining:
            self.awaiting.pop(broker, None)


# ------------------------------------------------------------------------------------------- changes


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """``roles_changed``: replicas must be sent their roles (LeaderAndIsr), besides the metadata caches."""

    partition: TopicPartition
    state: PartitionState
    roles_changed: bool = True


@dataclass(frozen=True, slots=True)
class TopicCreated:
    name: str
    node: TopicNode
    configs: Mapping[str, str]
    schema: bytes = b""


@dataclass(frozen=True, slots=True)
class AssignmentsChanged:
    """The topic has other replicas, or more partitions; the new ones have no state yet."""

    topic: str
    node: TopicNode


@dataclass(frozen=True, slots=True)
class SchemaChanged:
    """The topic has another version of its columns; ``schema`` is the encoded ``SchemaDocument``."""

    topic: str
    node: TopicNode
    schema: bytes


@dataclass(frozen=True, slots=True)
class TopicConfigsChanged:
    topic: str
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BrokerConfigsChanged:
    """``broker`` is an id as text, or empty for the settings of all brokers."""

    broker: str
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QuotasChanged:
    """The node at ``path`` exists, and holds ``configs``."""

    path: str
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AclsChanged:
    """The rules of ``pattern`` are those of ``node``; None: it has none any more."""

    pattern: Pattern
    node: AclNode | None


@dataclass(frozen=True, slots=True)
class DeletionStarted:
    topic: str


@dataclass(frozen=True, slots=True)
class PartitionNodesDeleted:
    """The state nodes of these partitions were deleted, because their topic is being deleted."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    topic: str


@dataclass(frozen=True, slots=True)
class BrokerNoted:
    """The node of a known broker exists, and holds ``known``."""

    broker: BrokerId
    known: KnownBroker


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    block: ProducerIdBlock
    version: int


Change = (
    PartitionChanged
    | TopicCreated
    | AssignmentsChanged
    | SchemaChanged
    | TopicConfigsChanged
    | BrokerConfigsChanged
    | QuotasChanged
    | AclsChanged
    | DeletionStarted
    | PartitionNodesDeleted
    | TopicDeleted
    | ProducerIdsAllocated
    | BrokerNoted
    | OperationWritten
    | OperationForgotten
)


# ------------------------------------------------------------------------------------------- the image


@dataclass(slots=True)
class ClusterImage:
    static_config: BrokerConfig
    controller_epoch: ControllerEpoch
    controller_epoch_version: int
    brokers: dict[BrokerId, LiveBroker] = field(default_factory=dict)
    registered: frozenset[BrokerId] = frozenset()
    """All brokers that ever registered; read when a request names a broker that is not alive."""
    known: dict[BrokerId, KnownBroker] = field(default_factory=dict)
    """Every broker that has registered, with what is wished of it."""
    applications: tuple[Application, ...] = ()
    """Those that run now, by name."""
    operations: dict[int, Operation] = field(default_factory=dict)
    """By id: those under way, and the last ones that ended."""
    moving: set[TopicPartition] = field(default_factory=set)
    """Partitions that are being moved, without those of topics that are being deleted."""
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topic_names: dict[TopicId, str] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    shutting_down: set[BrokerId] = field(default_factory=set)
    offline: dict[BrokerId, set[TopicPartition]] = field(default_factory=dict)
    """Replicas that a live broker cannot host, because their log directory or their log is broken."""
    log_ends: dict[BrokerId, dict[TopicPartition, LogEnd]] = field(default_factory=dict)
    """The ends of the logs of partitions without a leader, as live brokers reported them."""
    report_waits: ReportWaits = field(default_factory=ReportWaits)
    ended: dict[BrokerId, BrokerEpoch] = field(default_factory=dict)
    """Brokers that left and are known to have ended, with the epoch of that incarnation, until they are
    registered again."""
    producer_block: ProducerIdBlock | None = None
    producer_block_version: int = -1
    broker_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Settings that were changed while the cluster runs, by broker id as text; those of all brokers under
    "".
    """
    quotas: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Settings of users, clients and addresses by the path of their node, with every node above them."""
    quota_versions: dict[str, int] = field(default_factory=dict)
    """The versions of these nodes when they were last read, which is before each command about them."""
    quota_book: QuotaBook = field(default_factory=QuotaBook)
    counts: PartitionCounts = field(default_factory=PartitionCounts)
    changes: int = 0
    """How often anything changed of what a report of the cluster shows."""
    acls: dict[Pattern, AclNode] = field(default_factory=dict)
    """The access rules; empty without an authorizer."""
    config: BrokerConfig = field(init=False)
    """The settings of the cluster: those of all brokers over those that the controller was started with."""

    def __post_init__(self) -> None:
        self._apply_broker_configs()

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, config: BrokerConfig) -> "ClusterImage":
        image = cls(
            static_config=config,
            controller_epoch=snapshot.controller_epoch,
            controller_epoch_version=snapshot.controller_epoch_version,
            brokers=dict(snapshot.brokers),
            producer_block=snapshot.producer_block,
            producer_block_version=snapshot.producer_block_version,
            broker_configs=dict(snapshot.broker_configs),
            known=dict(snapshot.known),
            operations=dict(snapshot.operations),
            acls=dict(snapshot.acls),
        )
        image.take_entities(snapshot.quotas)
        for topic in snapshot.topics:
            image._add_topic(topic.name, topic.node, topic.configs, list(topic.states), topic.schema)
        for name in snapshot.deletions:
            if name in image.topics:
                image._start_deletion(name)
        return image

    # -- questions

    def has_known(self, broker: str) -> bool:
        """Whether a broker of this id ever registered, or has settings that could be deleted."""
        known = self.brokers.keys() | self.registered
        return bool(self.broker_configs.get(broker)) or broker in map(str, known)

    def state(self, partition: TopicPartition) -> PartitionState | None:
        topic = self.topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.states):
            return None
        return topic.states[partition.partition]

    def epoch_of(self, broker: BrokerId) -> BrokerEpoch | None:
        live = self.brokers.get(broker)
        return None if live is None else live.broker.epoch

    def is_current(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        return self.epoch_of(broker) == epoch

    def wish(self, broker: BrokerId) -> Wish:
        known = self.known.get(broker)
        return Wish.serving if known is None else known.wish

    def is_being_drained(self, broker: BrokerId) -> bool:
        return any(
            operation.is_running and operation.kind is OperationKind.drain and broker in operation.brokers
            for operation in self.operations.values()
        )

    def takes_replicas(self, broker: BrokerId) -> bool:
        """Whether new replicas may be placed there: it is alive, and is to stay."""
        if broker not in self.brokers or broker in self.shutting_down:
            return False
        return self.wish(broker) is Wish.serving and not self.is_being_drained(broker)

    def rules(self, configs: Mapping[str, str]) -> Rules:
        """The rules of elections of a topic with these settings."""
        settings = self.config.topic(configs)
        return Rules(
            min_insync_replicas=settings.get_int("min.insync.replicas"),
            allows_unclean=settings.get_bool("unclean.leader.election.enable"),
        )

    def dynamic_configs(self, broker: BrokerId) -> Mapping[str, str]:
        """The settings of this broker that were changed while it ran."""
        return self.broker_configs.get(str(broker), {})

    @property
    def default_configs(self) -> Mapping[str, str]:
        """The settings of all brokers that were changed while they ran; a broker's own go over them."""
        return self.broker_configs.get("", {})

    def is_deleting(self, topic: str) -> bool:
        return topic in self.deletions

    def candidates(self, partition: TopicPartition) -> Candidates:
        """The live brokers that can host this partition."""
        failed = {broker for broker, partitions in self.offline.items() if partition in partitions}
        live = {broker: one.incarnation for broker, one in self.brokers.items() if broker not in failed}
        ends = {
            broker: ends_of[partition] for broker, ends_of in self.log_ends.items() if partition in ends_of
        }
        topic = self.topics.get(partition.topic)
        log = None if topic is None else (topic.id, partition.partition)
        has_waited_enough = partition in self.report_waits.over
        return Candidates(live, self.shutting_down, failed, ends, log, has_waited_enough)

    def live_brokers(self) -> tuple[Broker, ...]:
        return tuple(self.brokers[broker].broker for broker in sorted(self.brokers))

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState | None]]:
        """Every partition of every topic that is not being deleted."""
        for name, topic in self.topics.items():
            if name not in self.deletions:
                for number, state in enumerate(topic.states):
                    yield TopicPartition(name, number), state

    def assignment_of(self, partition: TopicPartition) -> Assignment:
        return self.topics[partition.topic].node.assignments[partition.partition]

    def replicas_of(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        return self.assignment_of(partition).replicas

    def hosted_by(self, broker: BrokerId) -> list[TopicPartition]:
        """The partitions that have a replica on this broker, without those being deleted. Those that it leads
        come first: if it is gone, no replica serves them.
        """
        hosted = [one for one in self.partitions() if broker in self.replicas_of(one[0])]
        hosted.sort(key=lambda one: one[1] is None or one[1].leader != broker)
        return [partition for partition, _ in hosted]

    # -- changes

    def _put_acls(self, pattern: Pattern, node: AclNode | None) -> None:
        if node is None:
            self.acls.pop(pattern, None)
        else:
            self.acls[pattern] = node

    def take_entities(self, nodes: Mapping[str, EntityNode]) -> None:
        """The nodes of users, clients and addresses were read again."""
        self.quotas = {path: node.configs for path, node in nodes.items()}
        self.quota_versions = {path: node.version for path, node in nodes.items()}
        self.quota_book.replace(self.quotas)

    def replay(self, change: Change) -> None:
        self.changes += 1
        match change:
            case PartitionChanged(partition, state):
                self._set_state(partition, state)
                self._forget_ends(partition)
                self._note_wait(partition, state)
            case TopicCreated(name, node, configs, schema):
                self._add_topic(name, node, configs, [None] * len(node.assignments), schema)
            case AssignmentsChanged(name, node):
                self._set_node(self.topics[name], node)
            case SchemaChanged(name, node, schema):
                self._set_node(self.topics[name], node)
                self.topics[name].schema = schema
            case TopicConfigsChanged(name, configs):
                self.topics[name].configs = dict(configs)
                self.topics[name].rules = self.rules(configs)
            case BrokerConfigsChanged(broker, configs):
                self.broker_configs[broker] = dict(configs)
                self._apply_broker_configs()
            case QuotasChanged(path, configs):
                self.quotas[path] = dict(configs)
                self.quota_book.put(path, configs)
            case AclsChanged(pattern, node):
                self._put_acls(pattern, node)
            case DeletionStarted(topic):
                self._start_deletion(topic)
            case PartitionNodesDeleted(partitions):
                for partition in partitions:
                    self.topics[partition.topic].states[partition.partition] = None
                    self._forget_ends(partition)
                    self.report_waits.forget(partition)
            case TopicDeleted(topic):
                self.deletions.pop(topic)
                del self.topic_names[self.topics.pop(topic).id]
                self._forget_logs(topic)
            case BrokerNoted() | OperationWritten() | OperationForgotten():
                self._note_operation(change)
            case ProducerIdsAllocated(block, version):
                self.producer_block = block
                self.producer_block_version = version

    def _note_operation(self, change: BrokerNoted | OperationWritten | OperationForgotten) -> None:
        match change:
            case BrokerNoted(broker, known):
                self.known[broker] = known
                if known.wish is Wish.removed:
                    self._forget_broker(broker)
            case OperationWritten(operation):
                self.operations[operation.id] = operation
            case OperationForgotten(number):
                del self.operations[number]

    def _forget_broker(self, broker: BrokerId) -> None:
        """A removed broker has no settings and no proven logs, and no deletion of a topic waits for it."""
        self.registered -= {broker}
        self.broker_configs.pop(str(broker), None)
        for deletion in self.deletions.values():
            deletion.awaiting.pop(broker, None)

    def _note_move(self, partition: TopicPartition, state: PartitionState | None) -> None:
        is_moving = state is not None and bool(state.adding or state.removing)
        if is_moving and not self.is_deleting(partition.topic):
            self.moving.add(partition)
        else:
            self.moving.discard(partition)

    def _set_state(self, partition: TopicPartition, state: PartitionState) -> None:
        topic = self.topics[partition.topic]
        before, assignment = topic.states[partition.partition], self.assignment_of(partition)
        topic.states[partition.partition] = state
        self._note_move(partition, state)
        if not self.is_deleting(partition.topic):
            self.counts.remove(assignment, before)
            self.counts.add(assignment, state)

    def _set_node(self, topic: TopicImage, node: TopicNode) -> None:
        if not self.is_deleting(topic.name):
            both = zip(topic.node.assignments, node.assignments, strict=False)
            for (before, after), state in zip(both, topic.states, strict=True):
                if state is None and before != after:
                    self.counts.remove(before, None)
                    self.counts.add(after, None)
            for assignment in node.assignments[len(topic.states) :]:
                self.counts.add(assignment, None)
        topic.states += [None] * (len(node.assignments) - len(topic.states))
        topic.node = node

    def begin_shutdown(self, broker: BrokerId) -> None:
        self.changes += 1
        self.shutting_down.add(broker)

    def add_broker(self, live: LiveBroker) -> None:
        self.changes += 1
        self.brokers[live.broker.id] = live
        self.known.setdefault(live.broker.id, KnownBroker())
        self.ended.pop(live.broker.id, None)

    def remove_broker(self, broker: BrokerId) -> None:
        self.changes += 1
        del self.brokers[broker]
        self.shutting_down.discard(broker)
        self.offline.pop(broker, None)
        self.log_ends.pop(broker, None)

    def note_log_ends(self, broker: BrokerId, ends: Mapping[TopicPartition, LogEnd]) -> None:
        """A live broker reported these ends. They hold until the partition's state changes or the broker
        fails.
        """
        self.log_ends.setdefault(broker, {}).update(ends)

    def _forget_ends(self, partition: TopicPartition) -> None:
        for ends_of in self.log_ends.values():
            ends_of.pop(partition, None)

    def _note_wait(self, partition: TopicPartition, state: PartitionState | None) -> None:
        if state is None or state.has_leader:
            self.report_waits.forget(partition)
        else:
            self.report_waits.lost_its_leader(partition)

    def _forget_logs(self, topic: str) -> None:
        """Forget the logs of the topic: another topic of that name has other logs."""
        for broker, partitions in self.offline.items():
            self.offline[broker] = {one for one in partitions if one.topic != topic}

    def _add_topic(
        self,
        name: str,
        node: TopicNode,
        configs: Mapping[str, str],
        states: list[PartitionState | None],
        schema: bytes,
    ) -> None:
        self.topics[name] = TopicImage(name, node, dict(configs), states, self.rules(configs), schema)
        self.topic_names[node.id] = name
        for number, state in enumerate(states):
            self.counts.add(node.assignments[number], state)
            self._note_move(TopicPartition(name, number), state)
            self._note_wait(TopicPartition(name, number), state)

    def _apply_broker_configs(self) -> None:
        self.config = self.static_config.with_dynamic(self.broker_configs.get("", {}))
        for topic in self.topics.values():
            topic.rules = self.rules(topic.configs)

    def _start_deletion(self, name: str) -> None:
        awaiting: dict[BrokerId, set[TopicPartition]] = {}
        for partition in self.topics[name].topic_partitions():
            self.counts.remove(self.assignment_of(partition), self.state(partition))
            self.moving.discard(partition)
            for replica in self.replicas_of(partition):
                if self.wish(replica) is not Wish.removed:
                    awaiting.setdefault(replica, set()).add(partition)
        self.deletions[name] = Deletion(awaiting)

    # -- invariants

    def check_invariants(self) -> None:
        assert self.shutting_down <= self.brokers.keys(), (self.shutting_down, sorted(self.brokers))
        assert self.offline.keys() <= self.brokers.keys(), (self.offline, sorted(self.brokers))
        assert self.log_ends.keys() <= self.brokers.keys(), (self.log_ends, sorted(self.brokers))
        assert self.deletions.keys() <= self.topics.keys(), (self.deletions, sorted(self.topics))
        assert self.counts == self._recounted(), (self.counts, self._recounted())
        assert len(self.moving) == self.counts.moving, (self.moving, self.counts)
        assert {topic.id: name for name, topic in self.topics.items()} == self.topic_names
        for name, topic in self.topics.items():
            assert bool(topic.schema) == (topic.node.schema_version > 0), name
            for number, state in enumerate(topic.states):
                if state is not None:
                    assigned = topic.node.assignments[number]
                    of_state = (state.replicas, state.adding, state.removing)
                    assert of_state == (assigned.replicas, assigned.adding, assigned.removing), (name, number)
                    check_partition(TopicPartition(name, number), state)

    def _recounted(self) -> PartitionCounts:
        counts = PartitionCounts()
        for partition, state in self.partitions():
            counts.add(self.assignment_of(partition), state)
        return counts
