"""What follows in the operations that are under way, from the image, and from the pauses of restarts."""

from collections.abc import Mapping
from dataclasses import replace

from sparklog.core.controller.leaders.partition_writes import PartitionWrites, check_incarnations
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.availability import (
    led_or_in_sync,
    not_full_again,
    short_without,
    stays_in_sync,
)
from sparklog.core.controller.operations.moves import carry_on, drain, fill
from sparklog.core.controller.operations.operation_end import end
from sparklog.core.controller.operations.operation_writes import (
    Advance,
    OperationWrites,
    Wait,
    next_broker,
)
from sparklog.core.controller.operations.settling import Settling
from sparklog.core.controller.state.applications import KnownBroker, host_of
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.leader_choice import hand_over
from sparklog.core.controller.state.operations import Operation, OperationState, Phase
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import AdvanceOperation, Decision
from sparklog.model.ids import BrokerId

CRASH_LOOP = "crash loop"


def next_operation(
    image: ClusterImage, settling: Settling
) -> tuple[Decision | None, Mapping[int, tuple[Wait, ...]]]:
    """The next write of the first operation that has one; and what the others wait for, by their id."""
    waits: dict[int, tuple[Wait, ...]] = {}
    for operation in sorted(image.operations.values(), key=lambda one: one.id):
        if not operation.is_running:
            continue
        found = _advance(image, operation, settling)
        if isinstance(found, Decision):
            return found, waits
        waits[operation.id] = found
    return None, waits


def _advance(image: ClusterImage, operation: Operation, settling: Settling) -> Advance:
    match operation.kind:
        case OperationKind.start:
            return _start(image, operation)
        case OperationKind.stop:
            return _stop(image, operation)
        case OperationKind.restart:
            return _restart(image, operation, settling)
        case OperationKind.drain:
            return _drain(image, operation)
        case OperationKind.fill:
            moves = fill(image, operation)
            return _done(image, operation) if moves is None else moves
        case OperationKind.reassign:
            waits = carry_on(image, operation)
            return _done(image, operation) if waits is None else waits
        case OperationKind.remove:
            return _done(image, operation)


def _done(image: ClusterImage, operation: Operation) -> Decision:
    return end(image, operation, OperationState.done)


def _start(image: ClusterImage, operation: Operation) -> Advance:
    broker = operation.broker
    if broker is None:
        return _done(image, operation)
    return _await_start(image, operation, broker)


def _await_start(image: ClusterImage, operation: Operation, broker: BrokerId) -> Advance:
    """Until the broker, whose wish is to serve, is registered."""
    if broker in image.brokers:
        return next_broker(image, operation)
    known = image.known.get(broker, KnownBroker())
    application = host_of(image.applications, broker)
    if application is None:
        last = f"; the last one was {known.application}" if known.application else ""
        return (Wait(f"no application runs broker {broker}{last}"),)
    hosted = application.hosted(broker)
    if hosted is None or hosted.starts < known.starts:
        return ()
    if hosted.state == CRASH_LOOP:
        return end(
            image, operation, OperationState.failed, f"broker {broker} does not start: {hosted.reason}"
        )
    return (Wait(f"broker {broker}: {hosted.state} ({hosted.reason})"),) if hosted.reason else ()


def _stop(image: ClusterImage, operation: Operation) -> Advance:
    broker = operation.broker
    if broker is None:
        return _done(image, operation)
    if operation.phase is Phase.begun:
        return _begin_stop(image, operation, broker, Wish.stopped, together=operation.brokers)
    return next_broker(image, operation) if broker not in image.brokers else _await_end(image, broker)


def _begin_stop(
    image: ClusterImage, operation: Operation, broker: BrokerId, wish: Wish, together: tuple[BrokerId, ...]
) -> Advance:
    """Write the wish, in the step that checks that no partition falls below its minimum by it."""
    accepts = operation.accepts_unavailable
    short = short_without(image, broker, together, accepts_unavailable=accepts)
    if short:
        return short
    relied_on = {
        member
        for partition, state, _ in led_or_in_sync(image, broker)
        for member in stays_in_sync(image, partition, state)
    }
    writes = OperationWrites(image)
    writes.wish(broker, wish)
    writes.put(replace(operation, phase=Phase.stopping))
    return writes.decision(operation, check_incarnations(image, relied_on))


def _await_end(image: ClusterImage, broker: BrokerId) -> tuple[Wait, ...]:
    if host_of(image.applications, broker) is None:
        return (Wait(f"broker {broker} runs, and no application says that it hosts it"),)
    return ()


def _restart(image: ClusterImage, operation: Operation, settling: Settling) -> Advance:
    broker = operation.broker
    if broker is None:
        return not_full_again(image, operation, ()) or _done(image, operation)
    if operation.phase is Phase.begun:
        waits = not_full_again(image, operation, (broker,))
        if waits:
            settling.start_again(operation)
            return waits
        return settling.wait(operation) or _begin_stop(image, operation, broker, Wish.stopped, together=())
    if operation.phase is Phase.starting:
        return _await_start(image, operation, broker)
    if broker in image.brokers:
        return _await_end(image, broker)
    writes = OperationWrites(image)
    writes.wish(broker, Wish.serving)
    writes.put(replace(operation, phase=Phase.starting))
    return writes.decision(operation)


def _drain(image: ClusterImage, operation: Operation) -> Advance:
    broker = operation.broker
    if broker is None:
        return _done(image, operation)
    if operation.phase is not Phase.begun:
        return next_broker(image, operation) if broker not in image.brokers else _await_end(image, broker)
    leaders = _hand_over(image, operation, broker)
    if leaders is not None:
        return leaders
    moves = drain(image, operation, broker)
    if moves is not None:
        return moves
    named = _still_named(image, broker)
    return named or _begin_stop(image, operation, broker, Wish.drained, together=())


def _hand_over(image: ClusterImage, operation: Operation, broker: BrokerId) -> Decision | None:
    """Let others lead what this broker leads, where any can: the first replicas that are in sync, and not on
    brokers that are drained, which would hand over to this one.
    """
    if not image.counts.leaders[broker]:
        return None
    writes = PartitionWrites(image)
    for partition, state in image.partitions():
        if state is None or state.leader != broker:
            continue
        rules, candidates = image.topics[partition.topic].rules, image.candidates(partition)
        for other in sorted(stays_in_sync(image, partition, state), key=state.replicas.index):
            takes = image.takes_replicas(other)
            election = hand_over(state, other, candidates, rules) if takes else None
            if election is not None:
                if not writes.has_room_for(partition, election):
                    break
                writes.add(partition, election)
                break
    if not writes.states:
        return None
    step = AdvanceOperation(operation.id)
    return Decision(step, writes.operations(), writes.changes(), losses=tuple(writes.losses))


def _still_named(image: ClusterImage, broker: BrokerId) -> tuple[Wait, ...]:
    """What keeps a broker without replicas from stopping: its records may be needed, or deleted."""
    for partition, state in image.partitions():
        if broker in image.replicas_of(partition) or (state is not None and broker in state.eligible):
            return (Wait(f"broker {broker} may have records of {partition}", (partition.topic,)),)
    if broker in image.brokers:
        for topic, deletion in image.deletions.items():
            if broker in deletion.awaiting:
                return (Wait(f"broker {broker} deletes topic {topic}", (topic,)),)
    return ()
