"""Elections as ZooKeeper writes: which partitions need one, and the operations that carry it out.

Every write checks the incarnation node of each broker that it relies on. If one of them restarted since the
image was read, the write fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from sparklog.core.controller.state.image import AssignmentsChanged, Change, ClusterImage, PartitionChanged
from sparklog.core.controller.state.leader_choice import Election, Rules, initial_state, move, settle
from sparklog.core.controller.state.write_size import (
    MOVING_TOPIC_BYTES_MAX,
    WRITE_BYTES_MAX,
    bytes_of_node,
    bytes_of_state,
)
from sparklog.core.controller.state.znodes import (
    Assignment,
    encode_state,
    encode_topic,
    incarnation_path,
    partition_path,
    state_path,
    topic_path,
)
from sparklog.core.controller.steps import Decision, Elect, Loss
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.zookeeper import ANY_VERSION, Check, Create, Operation, SetData

PARTITIONS_PER_WRITE_MAX: Final = 500
"""Keeps a multi-op short; ``write_size`` says what keeps it small."""


def check_incarnations(image: ClusterImage, brokers: Iterable[BrokerId]) -> list[Operation]:
    """The operations that fail if one of these live brokers has registered again."""
    return [
        Check(incarnation_path(broker), image.brokers[broker].incarnation.number)
        for broker in sorted(set(brokers))
    ]


def create_state(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> list[Operation]:
    data = encode_state(state, image.controller_epoch)
    return [Create(partition_path(*partition)), Create(state_path(*partition), data)]


def create_states(
    image: ClusterImage,
    name: str,
    numbered: Iterable[tuple[int, Assignment]],
    rules: Rules,
    room_bytes: int,
) -> tuple[list[Operation], list[PartitionChanged]]:
    """The first states of new partitions, as many as one write takes, with checks of the brokers that they
    rely on.

    Further partitions, and those without a live replica, get their first state from an election.
    """
    operations: list[Operation] = []
    changes: list[PartitionChanged] = []
    relied_on: set[BrokerId] = set()
    for number, assignment in islice(numbered, PARTITIONS_PER_WRITE_MAX):
        partition = TopicPartition(name, number)
        room_bytes -= bytes_of_state(name, assignment)
        if room_bytes < 0:
            break
        election = initial_state(assignment.replicas, image.candidates(partition), rules)
        if election is not None:
            operations += create_state(image, partition, election.state)
            changes.append(PartitionChanged(partition, election.state))
            relied_on.update(election.relies_on)
    return [*check_incarnations(image, relied_on), *operations], changes


def change_state(
    image: ClusterImage, partition: TopicPartition, before: PartitionState, after: PartitionState
) -> Operation:
    data = encode_state(after, image.controller_epoch)
    return SetData(state_path(*partition), data, before.partition_epoch)


def elect_one(image: ClusterImage, partition: TopicPartition) -> Election | None:
    """The election that this partition needs; None if it needs none, is gone, or is being deleted."""
    topic = image.topics.get(partition.topic)
    if topic is None or image.is_deleting(partition.topic):
        return None
    state = topic.states[partition.partition]
    if state is None:
        return initial_state(image.replicas_of(partition), image.candidates(partition), topic.rules)
    election = settle(state, image.candidates(partition), topic.rules)
    return election or _finish_move(image, partition, state)


def _finish_move(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> Election | None:
    """End a reassignment: when all replicas of its target are in the ISR, the other replicas are removed."""
    if not (state.adding or state.removing):
        return None
    target = image.assignment_of(partition).target
    if not set(target) <= set(state.isr):
        return None
    rules = image.topics[partition.topic].rules
    return move(state, target, (), (), image.candidates(partition), rules)


@dataclass(slots=True)
class PartitionWrites:
    """Changes of partitions that become one ZooKeeper write, with the topics whose replicas change."""

    image: ClusterImage
    states: list[PartitionChanged] = field(default_factory=list)
    assignments: dict[str, dict[int, Assignment]] = field(default_factory=dict)
    relied_on: set[BrokerId] = field(default_factory=set)
    losses: list[Loss] = field(default_factory=list)
    size_bytes: int = 0
    node_bytes: dict[str, int] = field(default_factory=dict)

    def has_room_for(self, partition: TopicPartition, election: Election) -> bool:
        """Whether the write has room for this as well. It always has for a single partition."""
        if not self.states:
            return True
        return not self.is_full and self.size_bytes + self._bytes_of(partition, election) <= WRITE_BYTES_MAX

    def check_node(self, partition: TopicPartition, election: Election) -> None:
        """Raises KafkaError if the topic's node has no room for another move."""
        assignment = _assignment(election.state)
        grown = bytes_of_node([assignment], self.image.brokers)
        if self._bytes_of_node(partition.topic) + grown > MOVING_TOPIC_BYTES_MAX:
            message = (
                f"Too many partitions of topic '{partition.topic}' are being moved: let some of them end."
            )
            raise KafkaError(ErrorCode.invalid_request, message)

    def _bytes_of(self, partition: TopicPartition, election: Election) -> int:
        assignment = _assignment(election.state)
        size = bytes_of_state(partition.topic, assignment)
        if partition.topic in self.assignments or assignment == self.image.assignment_of(partition):
            return size
        return size + self._bytes_of_node(partition.topic)

    def _bytes_of_node(self, topic: str) -> int:
        """The size of the topic's node, with what the moves of this write add."""
        if topic not in self.node_bytes:
            assignments = self.image.topics[topic].node.assignments
            self.node_bytes[topic] = bytes_of_node(assignments, self.image.brokers)
        return self.node_bytes[topic]

    def add(self, partition: TopicPartition, election: Election) -> None:
        state = election.state
        self.states.append(PartitionChanged(partition, state))
        self.relied_on.update(election.relies_on)
        if election.loss:
            self.losses.append(Loss(partition, election.loss))
        self.size_bytes += self._bytes_of(partition, election)
        assignment = _assignment(state)
        if assignment != self.image.assignment_of(partition):
            grown = bytes_of_node([assignment], self.image.brokers)
            self.node_bytes[partition.topic] = self._bytes_of_node(partition.topic) + grown
            self.size_bytes += grown
            self.assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    @property
    def is_full(self) -> bool:
        return len(self.states) >= PARTITIONS_PER_WRITE_MAX

    def operations(self) -> tuple[Operation, ...]:
        checks = check_incarnations(self.image, self.relied_on)
        nodes = [SetData(topic_path(one.topic), encode_topic(one.node), ANY_VERSION) for one in self._nodes()]
        states: list[Operation] = []
        for change in self.states:
            before = self.image.state(change.partition)
            if before is None:
                states += create_state(self.image, change.partition, change.state)
            else:
                states.append(change_state(self.image, change.partition, before, change.state))
        return (*checks, *nodes, *states)

    def changes(self) -> tuple[Change, ...]:
        return (*self._nodes(), *self.states)

    def _nodes(self) -> list[AssignmentsChanged]:
        """The nodes of topics with other replicas. Only the controller writes them: its epoch guards them."""
        changed = []
        for topic, moved in self.assignments.items():
            node = self.image.topics[topic].node
            assignments = tuple(moved.get(number, one) for number, one in enumerate(node.assignments))
            changed.append(AssignmentsChanged(topic, replace(node, assignments=assignments)))
        return changed


def _assignment(state: PartitionState) -> Assignment:
    return Assignment(state.replicas, state.adding, state.removing)


def decide_elections(
    image: ClusterImage, partitions: Sequence[TopicPartition]
) -> tuple[Decision | None, Sequence[TopicPartition]]:
    """A write for those of ``partitions`` that need an election (None if none does), and the partitions left
    over.
    """
    writes, left = PartitionWrites(image), partitions[:0]
    for position, partition in enumerate(partitions):
        election = elect_one(image, partition)
        if election is not None:
            if not writes.has_room_for(partition, election):
                left = partitions[position:]
                break
            writes.add(partition, election)
    if not writes.states:
        return None, left
    step = Elect(tuple(change.partition for change in writes.states), tuple(writes.losses))
    return Decision(step, writes.operations(), writes.changes()), left


def waiting_for_leader(image: ClusterImage) -> dict[TopicPartition, PartitionState]:
    """The partitions without a leader, for status and log."""
    return {
        partition: state
        for partition, state in image.partitions()
        if state is not None and not state.has_leader
    }
