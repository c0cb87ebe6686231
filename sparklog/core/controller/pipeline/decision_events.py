"""What a decision changed, as events: computed before its changes are replayed, one of each kind at most."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind, count_of
from sparklog.core.controller.state.image import (
    AssignmentsChanged,
    BrokerConfigsChanged,
    ClusterImage,
    DeletionStarted,
    PartitionChanged,
    SchemaChanged,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
)
from sparklog.core.controller.state.operations import Operation, OperationState, OperationWritten, Phase
from sparklog.core.controller.steps import (
    AddPartitions,
    AdvanceOperation,
    ChangeIsrs,
    Decision,
    Elect,
    Loss,
)
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, TopicPartition

NAMED_MAX: Final = 3
"""How many partitions an event names."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the controller is deciding: for the events of its decisions."""

    words: str
    since_ms: int


Changed = tuple[TopicPartition, PartitionState, PartitionState]
"""A partition, and its states before and after."""


def events_of(
    image: ClusterImage, decision: Decision, cause: Cause | None, now_ms: int
) -> list[ClusterEvent]:
    """``image`` is as before the decision."""
    changed = [
        (change.partition, before, change.state)
        for change in decision.changes
        if isinstance(change, PartitionChanged) and (before := image.state(change.partition)) is not None
    ]
    if isinstance(decision.step, AdvanceOperation):
        cause = Cause(str(image.operations[decision.step.operation]), now_ms)
    events = [*_elections(changed, cause, now_ms), *_moves(changed), *_of_topics(decision)]
    events += _of_operations(image, decision)
    if isinstance(decision.step, ChangeIsrs):
        events += _proposed_isrs(changed, decision.step.request.broker)
    else:
        events += _shrunk_isrs(changed, cause)
    losses = decision.step.losses if isinstance(decision.step, Elect) else decision.losses
    return [*events, *loss_events(losses)]


def loss_events(losses: Sequence[Loss]) -> list[ClusterEvent]:
    """One event about all ``losses``, if there are any."""
    if not losses:
        return []
    named = losses[:NAMED_MAX]
    more = f"; and in {count_of(len(losses) - len(named), 'more partition')}" if losses[NAMED_MAX:] else ""
    return [
        ClusterEvent(
            EventKind.loss,
            _subject([loss.partition for loss in losses]),
            f"{'; '.join(map(str, named))}{more}; acknowledged records may be lost",
            topics=_topics(loss.partition for loss in named),
            losses=len(losses),
            is_warning=True,
        )
    ]


def _elections(changed: Sequence[Changed], cause: Cause | None, now_ms: int) -> list[ClusterEvent]:
    led = [one for one, before, after in changed if after.has_leader and after.leader != before.leader]
    lost = [one for one, before, after in changed if before.has_leader and not after.has_leader]
    why = "" if cause is None else cause.words
    events = []
    if led:
        after_s = "" if cause is None else f" after {(now_ms - cause.since_ms) / 1_000:.2f} s"
        has = "has a new leader" if len(led) == 1 else "have new leaders"
        words = f"{count_of(len(led), 'partition')} {has}{after_s}"
        events.append(
            ClusterEvent(
                EventKind.election, _subject(led), words, why, _former(changed, led), topics=_topics_of(led)
            )
        )
    if lost:
        has = "has" if len(lost) == 1 else "have"
        words = f"{count_of(len(lost), 'partition')} {has} no leader"
        events.append(
            ClusterEvent(
                EventKind.election,
                _subject(lost),
                words,
                why,
                _former(changed, lost),
                topics=_topics_of(lost),
                is_warning=True,
            )
        )
    return events


def _former(changed: Sequence[Changed], partitions: Sequence[TopicPartition]) -> tuple[BrokerId, ...]:
    """The brokers that led the partitions before: an election is listed among their events."""
    chosen = set(partitions)
    return tuple(sorted({before.leader for one, before, _ in changed if one in chosen and before.has_leader}))


def _moves(changed: Sequence[Changed]) -> list[ClusterEvent]:
    """Moves that begin, are given another target, or end."""
    begun = [one for one, before, after in changed if _is_moving(after) and _moving(before) != _moving(after)]
    ended = [one for one, before, after in changed if _is_moving(before) and not _is_moving(after)]
    events = []
    if begun:
        move = "moves" if len(begun) == 1 else "move"
        words = f"{count_of(len(begun), 'partition')} {move} to other brokers"
        events.append(ClusterEvent(EventKind.move, _subject(begun), words, topics=_topics_of(begun)))
    if ended:
        has = "has" if len(ended) == 1 else "have"
        words = f"{count_of(len(ended), 'partition')} {has} ended moving"
        events.append(ClusterEvent(EventKind.move, _subject(ended), words, topics=_topics_of(ended)))
    return events


def _moving(state: PartitionState) -> tuple[object, object]:
    return state.adding, state.removing


def _is_moving(state: PartitionState) -> bool:
    return bool(state.adding or state.removing)


def _proposed_isrs(changed: Sequence[Changed], leader: BrokerId) -> list[ClusterEvent]:
    """What a leader had changed of its ISRs."""
    joined = {member for _, before, after in changed for member in set(after.isr) - set(before.isr)}
    left = {member for _, before, after in changed for member in set(before.isr) - set(after.isr)}
    if not (joined or left):
        return []
    parts = [f"{_brokers(joined)} joined"] * bool(joined) + [f"{_brokers(left)} left"] * bool(left)
    words = f"{' and '.join(parts)} the ISR of {count_of(len(changed), 'partition')} led by broker {leader}"
    cause = "late for longer than replica.lag.time.max.ms" if left else ""
    partitions = [one for one, _, _ in changed]
    return [
        ClusterEvent(
            EventKind.isr,
            _subject(partitions),
            words,
            cause,
            brokers=tuple(sorted(joined | left)),
            topics=_topics_of(partitions),
        )
    ]


def _shrunk_isrs(changed: Sequence[Changed], cause: Cause | None) -> list[ClusterEvent]:
    """Partitions that keep their leader, and lose replicas from their ISR by a decision of the controller."""
    left: set[BrokerId] = set()
    partitions = []
    for partition, before, after in changed:
        gone = set(before.isr) - set(after.isr)
        if gone and before.leader == after.leader and not _is_moving(before):
            partitions.append(partition)
            left |= gone
    if not partitions:
        return []
    words = f"{_brokers(left)} left the ISR of {count_of(len(partitions), 'partition')}"
    return [
        ClusterEvent(
            EventKind.isr,
            _subject(partitions),
            words,
            "" if cause is None else cause.words,
            brokers=tuple(sorted(left)),
            topics=_topics_of(partitions),
        )
    ]


def _of_topics(decision: Decision) -> list[ClusterEvent]:
    events = []
    for change in decision.changes:
        match change:
            case TopicCreated(name, node):
                replicas = len(node.assignments[0].replicas)
                count = count_of(len(node.assignments), "partition")
                events.append(_of_topic(name, f"is created with {count} and replication factor {replicas}"))
            case AssignmentsChanged(name, node) if isinstance(decision.step, AddPartitions):
                events.append(_of_topic(name, f"has {count_of(len(node.assignments), 'partition')} now"))
            case SchemaChanged(name, node):
                events.append(_of_topic(name, f"has version {node.schema_version} of its columns"))
            case TopicConfigsChanged(name):
                events.append(_of_topic(name, "has other settings"))
            case DeletionStarted(name):
                events.append(_of_topic(name, "is being deleted"))
            case TopicDeleted(name):
                events.append(_of_topic(name, "is deleted"))
            case BrokerConfigsChanged(broker):
                who = f"broker {broker}" if broker else "all brokers"
                ids = (BrokerId(int(broker)),) if broker else ()
                events.append(ClusterEvent(EventKind.broker, who, f"{who}: other settings", brokers=ids))
    return events


def _of_topic(name: str, words: str) -> ClusterEvent:
    return ClusterEvent(EventKind.topic, name, f"topic {name} {words}", topics=(name,))


def _of_operations(image: ClusterImage, decision: Decision) -> list[ClusterEvent]:
    """What begins, ends, or goes on to another broker or phase."""
    written = [change.operation for change in decision.changes if isinstance(change, OperationWritten)]
    return [
        ClusterEvent(
            EventKind.operation,
            f"operation {one.id}",
            f"{one} {words}",
            one.reason,
            brokers=one.brokers,
            is_warning=one.state in (OperationState.failed, OperationState.cancelled),
        )
        for one in written
        if (words := _what_happened(image.operations.get(one.id), one))
    ]


def _what_happened(before: Operation | None, after: Operation) -> str:
    if before is None:
        done = " and is done" if after.state is OperationState.done else ""
        return f"begins{done}, asked for by {after.requested_by}"
    if after.state is not before.state:
        return "is done" if after.state is OperationState.done else f"is {after.state}"
    if after.phase is not before.phase and after.phase is Phase.stopping:
        return f"stops broker {after.broker}"
    if after.phase is not before.phase and after.phase is Phase.starting:
        return f"starts broker {after.broker}"
    return ""


def _subject(partitions: Sequence[TopicPartition]) -> str:
    """The partition, or how many there are: it names a topic only if it names the only one."""
    return str(partitions[0]) if len(partitions) == 1 else count_of(len(partitions), "partition")


def _topics_of(partitions: Sequence[TopicPartition]) -> tuple[str, ...]:
    """The topics that ``_subject`` names."""
    return _topics(partitions) if len(partitions) == 1 else ()


def _topics(partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(partition.topic for partition in partitions))


def _brokers(members: Iterable[BrokerId]) -> str:
    ids = sorted(members)
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))}"
