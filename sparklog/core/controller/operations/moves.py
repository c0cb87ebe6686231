"""Moves of replicas for operations: planned from the image in bounded rounds, and begun in one write each.

A move that has begun counts as done in the next plan. Where a destination dies, or loses the disk, another is
planned. The moves of other tools are left alone: their partitions wait, and are moved after that.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sparklog.core.controller.commands.partition_commands import Move
from sparklog.core.controller.events.cluster_event import count_of
from sparklog.core.controller.leaders.partition_writes import PartitionWrites
from sparklog.core.controller.leaders.reassignment import begin_move
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.availability import named, topics_of
from sparklog.core.controller.operations.operation_writes import Advance, Wait
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation
from sparklog.core.controller.steps import AdvanceOperation, Decision
from sparklog.core.placement.least_moves import plan_drain, plan_fill
from sparklog.model.errors import KafkaError
from sparklog.model.ids import BrokerId, TopicPartition

ROUND_MAX: Final = 50
"""How many partitions an operation moves at a time."""

NEXT_ROUND_AT: Final = ROUND_MAX // 2
"""The next round begins when that many are left."""


def moves_of(image: ClusterImage, operation: Operation) -> list[TopicPartition]:
    """Moves under way away from drained brokers, to filled ones, or of a plan."""
    if operation.kind is OperationKind.reassign:
        return [one for one in operation.partitions if one in image.moving]
    brokers = set(operation.brokers)
    is_drain = operation.kind is OperationKind.drain
    if not is_drain and operation.kind is not OperationKind.fill:
        return []
    assigned = ((partition, image.assignment_of(partition)) for partition in sorted(image.moving))
    return [
        partition
        for partition, one in assigned
        if not brokers.isdisjoint(one.removing if is_drain else one.adding)
    ]


def revert(image: ClusterImage, operation: Operation, moves: Iterable[TopicPartition]) -> Decision | None:
    """The write that takes moves back, as many as it has room for; None if none can be."""
    return _write(image, operation, dict.fromkeys(moves))[0]


def drain(image: ClusterImage, operation: Operation, broker: BrokerId) -> Advance | None:
    """The next moves away from this broker; None once no partition has a replica there."""
    own = moves_of(image, operation)
    lost = {one: found for one in own if (found := _bad_destinations(image, one))}
    placement = _placement(image) if lost or len(own) <= NEXT_ROUND_AT else {}
    waits: list[Wait] = []
    if lost:
        bad = frozenset(one for found in lost.values() for one in found)
        again, stuck = _plan_drain(image, operation, placement, list(lost), bad)
        decision, refused = _write(image, operation, again)
        if decision is not None:
            return decision
        waits = _no_place(stuck) + refused
    if len(own) > NEXT_ROUND_AT:
        return tuple(waits)
    left = [one for one, replicas in placement.items() if broker in replicas]
    free = [one for one in left if one not in image.moving][: ROUND_MAX - len(own)]
    planned, stuck = _plan_drain(image, operation, placement, free, frozenset())
    decision, refused = _write(image, operation, planned)
    if decision is not None:
        return decision
    if not own and not left:
        return None
    waits += _no_place(stuck) + refused + _moved_by_others(image, left)
    return _unless_something_moves(image, own, waits)


def fill(image: ClusterImage, operation: Operation) -> Advance | None:
    """The next moves to the operation's brokers; None once they have their share."""
    away = [one for one in operation.brokers if not image.takes_replicas(one)]
    if away:
        return (Wait(f"broker {away[0]} does not serve"),)
    own = moves_of(image, operation)
    if len(own) > NEXT_ROUND_AT:
        return ()
    brokers = _takers(image)
    leaderless = [one for one, state in image.partitions() if state is None or not state.has_leader]
    planned = plan_fill(
        _placement(image),
        operation.brokers,
        brokers,
        at_most=ROUND_MAX - len(own),
        fixed={*image.moving, *leaderless},
    )
    decision, refused = _write(image, operation, {one: _ids(found) for one, found in planned.items()})
    if decision is not None:
        return decision
    return _unless_something_moves(image, own, refused) if own or refused else None


def carry_on(image: ClusterImage, operation: Operation) -> Advance | None:
    """What the moves of a plan wait for; None once all have ended."""
    own = moves_of(image, operation)
    return _unless_something_moves(image, own, []) if own else None


def _bad_destinations(image: ClusterImage, partition: TopicPartition) -> list[BrokerId]:
    """Destinations that will not get in sync as things are."""
    return [
        one
        for one in image.assignment_of(partition).adding
        if not image.takes_replicas(one) or partition in image.offline.get(one, frozenset())
    ]


def _placement(image: ClusterImage) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The replicas of all partitions, of those that are being moved their target."""
    return {one: image.assignment_of(one).target for one, _ in image.partitions()}


def _plan_drain(
    image: ClusterImage,
    operation: Operation,
    placement: Mapping[TopicPartition, tuple[BrokerId, ...]],
    partitions: list[TopicPartition],
    bad: frozenset[BrokerId],
) -> tuple[dict[TopicPartition, tuple[BrokerId, ...] | None], list[TopicPartition]]:
    if not partitions:
        return {}, []
    planned, stuck = plan_drain(placement, partitions, {*operation.brokers, *bad}, _takers(image))
    return {one: _ids(found) for one, found in planned.items()}, stuck


def _takers(image: ClusterImage) -> dict[int, str | None]:
    """The brokers that may take replicas, with their racks."""
    return {one: live.broker.rack for one, live in image.brokers.items() if image.takes_replicas(one)}


def _ids(found: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(one) for one in found)


def _write(
    image: ClusterImage,
    operation: Operation,
    targets: Mapping[TopicPartition, tuple[BrokerId, ...] | None],
) -> tuple[Decision | None, list[Wait]]:
    """The write that begins these moves, as many as it has room for; and those that cannot begin."""
    writes, refused = PartitionWrites(image), []
    for partition, target in targets.items():
        try:
            election = begin_move(image, Move(partition, target))
            if election is None:
                continue
            if target is not None:
                writes.check_node(partition, election)
        except KafkaError as error:
            refused.append(Wait(f"{partition} cannot be moved: {error.message}", (partition.topic,)))
            continue
        if not writes.has_room_for(partition, election):
            break
        writes.add(partition, election)
    if not writes.states:
        return None, refused[:1]
    step = AdvanceOperation(operation.id)
    decision = Decision(step, writes.operations(), writes.changes(), losses=tuple(writes.losses))
    return decision, refused[:1]


def _no_place(stuck: list[TopicPartition]) -> list[Wait]:
    if not stuck:
        return []
    return [Wait(f"no broker is left that could take a replica of {named(stuck)}", topics_of(stuck))]


def _moved_by_others(image: ClusterImage, left: list[TopicPartition]) -> list[Wait]:
    others = [one for one in left if one in image.moving]
    if not others:
        return []
    return [Wait(f"another tool moves {named(others)}", topics_of(others))]


def _unless_something_moves(
    image: ClusterImage, own: list[TopicPartition], waits: list[Wait]
) -> tuple[Wait, ...]:
    """Nothing to wait for while any move can go on; else also the moves that cannot."""
    stuck = [one for one in own if not _can_go_on(image, one)]
    if len(stuck) < len(own):
        return ()
    if stuck:
        words = f"{count_of(len(stuck), 'move')} cannot go on: {named(stuck)}, {_what_lacks(image, stuck[0])}"
        waits = [*waits, Wait(words, topics_of(stuck))]
    return tuple(waits)


def _can_go_on(image: ClusterImage, partition: TopicPartition) -> bool:
    state = image.state(partition)
    return state is not None and state.has_leader and not _missing(image, partition)


def _missing(image: ClusterImage, partition: TopicPartition) -> list[BrokerId]:
    """Replicas that have to be in sync at the end of a move, and will not be as things are."""
    state, target = image.state(partition), image.assignment_of(partition).target
    in_sync = () if state is None else state.isr
    return [
        one
        for one in target
        if one not in in_sync
        and (not image.takes_replicas(one) or partition in image.offline.get(one, frozenset()))
    ]


def _what_lacks(image: ClusterImage, partition: TopicPartition) -> str:
    missing = _missing(image, partition)
    if not missing:
        return "which has no leader"
    return f"as replicas on brokers {missing} cannot get in sync"
