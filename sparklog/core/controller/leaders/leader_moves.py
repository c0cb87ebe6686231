"""Leaders moved back to preferred replicas, and elections that an administrator demands.

The *preferred* leader of a partition is the first of its assigned replicas. Placement spreads those evenly,
so a cluster in which they lead is balanced. Failures move leaders elsewhere. ElectLeaders (KIP-460) moves
them back, and with ``auto.leader.rebalance.enable`` the controller does so by itself: every
``leader.imbalance.check.interval.seconds`` it moves the leaders back to each broker that lacks more than
``leader.imbalance.per.broker.percentage`` of the partitions that prefer it.

A preferred election loses nothing, because the new leader is a member of the ISR that is alive, proven and
not shutting down. An *unclean* election is for partitions without a leader, and may lose acknowledged
records. One that is demanded takes the greatest log that live replicas have reported. *Without the store* it
also ends a leader's wait for the history in the remote store, and gives up what that has beyond the leader's
log.
"""

from collections import defaultdict
from dataclasses import replace

from sparklog.core.controller.commands.partition_commands import PartitionResult, PartitionsResult
from sparklog.core.controller.leaders.partition_writes import PartitionWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.leader_choice import (
    Election,
    hand_over,
    settle_unclean,
    settle_without_store,
)
from sparklog.core.controller.steps import Decision, MoveLeaders
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition


def decide_leaders(image: ClusterImage, step: MoveLeaders) -> Decision | PartitionsResult:
    """The elections that fit one write, or the answer if nothing is left to write."""
    writes, results = PartitionWrites(image), list(step.results)
    taken = 0
    for partition in step.partitions:
        if writes.is_full:
            break
        taken += 1
        try:
            election = _elect(image, partition, step)
        except KafkaError as error:
            if not (step.keeps_quiet and error.code == ErrorCode.election_not_needed):
                results.append(PartitionResult(partition, error.code, error.message))
            continue
        writes.add(partition, election)
        results.append(PartitionResult(partition))
    result = PartitionsResult(tuple(results))
    if not writes.states:
        return result
    rest = replace(step, partitions=step.partitions[taken:], results=result.partitions)
    if rest.partitions:
        return Decision(step, writes.operations(), writes.changes(), rest=rest, losses=tuple(writes.losses))
    return Decision(step, writes.operations(), writes.changes(), result, losses=tuple(writes.losses))


def _elect(image: ClusterImage, partition: TopicPartition, step: MoveLeaders) -> Election:
    """The election that was asked for. Raises KafkaError with the reason if it is impossible."""
    state = image.state(partition)
    if image.is_deleting(partition.topic):
        raise KafkaError(ErrorCode.invalid_topic_exception, "The topic is being deleted")
    if state is None:
        raise KafkaError(ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
    if not step.unclean:
        return _preferred(image, partition, state)
    return _unclean(image, partition, state, without_store=step.without_store)


def _preferred(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> Election:
    preferred = state.replicas[0]
    if state.leader == preferred:
        message = "Leader election not needed for topic partition."
        raise KafkaError(ErrorCode.election_not_needed, message)
    rules = image.topics[partition.topic].rules
    election = hand_over(state, preferred, image.candidates(partition), rules)
    if election is None:
        message = (
            f"The preferred leader, broker {preferred}, is not alive and in the ISR {list(state.isr)} of "
            f"{partition}."
        )
        raise KafkaError(ErrorCode.preferred_leader_not_available, message)
    return election


def _unclean(
    image: ClusterImage, partition: TopicPartition, state: PartitionState, *, without_store: bool
) -> Election:
    may_wait_for_store = without_store and state.lost_in_epoch > state.store_given_up_in_epoch
    if state.has_leader and not may_wait_for_store:
        message = "Leader election not needed for topic partition."
        raise KafkaError(ErrorCode.election_not_needed, message)
    rules = image.topics[partition.topic].rules
    settle = settle_without_store if without_store else settle_unclean
    election = settle(state, image.candidates(partition), rules)
    if election is None or not election.state.has_leader:
        message = f"No replica of {partition} is alive: {list(state.replicas)}."
        if not image.candidates(partition).live.keys().isdisjoint(state.replicas):
            message = f"No live replica of {partition} has reported its log yet; try again in a second."
        raise KafkaError(ErrorCode.eligible_leaders_not_available, message)
    return election


def find_imbalanced(image: ClusterImage) -> tuple[TopicPartition, ...]:
    """The partitions to move so that brokers with too few of their preferred leaderships get them back."""
    preferred: defaultdict[BrokerId, int] = defaultdict(int)
    elsewhere: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for partition, state in image.partitions():
        if state is None or not state.has_leader or state.adding or state.removing:
            continue
        broker = state.replicas[0]
        preferred[broker] += 1
        if state.leader != broker:
            elsewhere[broker].append(partition)
    percentage = image.config.get_int("leader.imbalance.per.broker.percentage")
    return tuple(
        partition
        for broker, partitions in sorted(elsewhere.items())
        if broker in image.brokers and not image.is_being_drained(broker)
        if len(partitions) * 100 > preferred[broker] * percentage
        for partition in partitions
        if _can_move(image, partition)
    )


def _can_move(image: ClusterImage, partition: TopicPartition) -> bool:
    state = image.state(partition)
    assert state is not None, partition
    rules = image.topics[partition.topic].rules
    return hand_over(state, state.replicas[0], image.candidates(partition), rules) is not None
