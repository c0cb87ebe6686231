"""Elections as ZooKeeper writes: which partitions need one, and the operations that make it true.

Every write checks the incarnation node of each broker that it relies on, so that a broker which restarted
since we last looked makes the write fail instead of being trusted on a stale view.
"""

from collections.abc import Iterable
from typing import Final

from sparklog.core.controller.election import Election, initial_state, settle
from sparklog.core.controller.image import ClusterImage, PartitionChanged
from sparklog.core.controller.steps import Decision, Elect
from sparklog.core.controller.znodes import encode_state, incarnation_path, partition_path, state_path
from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.zookeeper import Check, Create, Operation, SetData

PARTITIONS_PER_WRITE_MAX: Final = 500
"""Keeps a multi-op well below ZooKeeper's limit of one megabyte."""


def check_incarnations(image: ClusterImage, brokers: Iterable[BrokerId]) -> list[Operation]:
    """The operations that fail if one of these live brokers has registered again."""
    return [
        Check(incarnation_path(broker), image.brokers[broker].incarnation.number)
        for broker in sorted(set(brokers))
    ]


def create_state(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> list[Operation]:
    data = encode_state(state, image.controller_epoch)
    return [Create(partition_path(*partition)), Create(state_path(*partition), data)]


def change_state(
    image: ClusterImage, partition: TopicPartition, before: PartitionState, after: PartitionState
) -> Operation:
    data = encode_state(after, image.controller_epoch)
    return SetData(state_path(*partition), data, before.partition_epoch)


def elect_one(image: ClusterImage, partition: TopicPartition) -> Election | None:
    """What this partition needs now; None if it is as it should be, gone, or being deleted."""
    topic = image.topics.get(partition.topic)
    if topic is None or image.is_deleting(partition.topic):
        return None
    state = topic.states[partition.partition]
    if state is None:
        return initial_state(image.replicas_of(partition), image.candidates(partition))
    return settle(state, image.candidates(partition), topic.rules)


def decide_elections(image: ClusterImage, partitions: Iterable[TopicPartition]) -> Decision | None:
    """One write for all of ``partitions`` that need an election; None if none does."""
    operations: list[Operation] = []
    changes: list[PartitionChanged] = []
    relied_on: set[BrokerId] = set()
    losses: list[str] = []
    for partition in partitions:
        election = elect_one(image, partition)
        if election is None:
            continue
        before = image.state(partition)
        if before is None:
            operations += create_state(image, partition, election.state)
        else:
            operations.append(change_state(image, partition, before, election.state))
        changes.append(PartitionChanged(partition, election.state))
        relied_on.update(election.relies_on)
        if election.loss:
            losses.append(f"{partition}: {election.loss}; acknowledged records may be lost")
    if not changes:
        return None
    step = Elect(tuple(change.partition for change in changes), tuple(losses))
    return Decision(step, (*check_incarnations(image, relied_on), *operations), tuple(changes))


def waiting_for_leader(image: ClusterImage) -> dict[TopicPartition, PartitionState]:
    """The partitions that nobody leads, for status and log."""
    return {
        partition: state
        for partition, state in image.partitions()
        if state is not None and not state.has_leader
    }
