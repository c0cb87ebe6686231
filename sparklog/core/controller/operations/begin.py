"""The beginning of an operation: refused with the reason, or written with what it does at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sparklog.core.controller.commands.operation_commands import OperateBrokers, OperationResult
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.availability import (
    lagging,
    named,
    never_available,
    stays,
)
from sparklog.core.controller.operations.broker_removal import check_removal, remove
from sparklog.core.controller.operations.operation_progress import total_of
from sparklog.core.controller.operations.operation_writes import OperationWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import (
    Operation,
    OperationState,
)
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import BeginOperation, Decision
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId

BROKERS_MAX: Final = 1_000
LAGGING_MAX: Final = 200
"""A restart remembers that many partitions whose ISR was not full before; with more it is refused."""


def decide_begin(image: ClusterImage, step: BeginOperation) -> Decision | OperationResult:
    """The write that begins it, or the answer if it is refused, or has begun by an earlier try."""
    asked = step.request
    for begun in image.operations.values():
        if begun.request == asked.request:
            return OperationResult(operation=begun.id)
    try:
        brokers = _brokers(image, asked)
        _check_conflicts(image, brokers)
        _check(image, asked, brokers)
        operation = Operation(
            id=max(image.operations, default=0) + 1,
            kind=asked.kind,
            brokers=brokers,
            request=asked.request,
            requested_by=step.requested_by,
            since_ms=step.asked_ms,
            accepts_unavailable=asked.accepts_unavailable,
            throttle=asked.throttle,
        )
        operation = replace(operation, total=total_of(image, operation))
        if asked.kind is OperationKind.restart:
            operation = _with_state_before(image, operation)
    except KafkaError as refused:
        return OperationResult(refused.code, refused.message)
    return _write(image, step, operation)


def _write(image: ClusterImage, step: BeginOperation, operation: Operation) -> Decision:
    writes = OperationWrites(image)
    if operation.kind is OperationKind.remove:
        for broker in operation.brokers:
            remove(writes, broker)
        all_of_them = len(operation.brokers)
        operation = replace(operation, state=OperationState.done, position=all_of_them, done=all_of_them)
    if operation.kind is OperationKind.start:
        for broker in operation.brokers:
            writes.wish(broker, Wish.serving)
    writes.put(operation)
    writes.forget_ended()
    result = OperationResult(operation=operation.id)
    return Decision(step, tuple(writes.operations), tuple(writes.changes), result)


def _brokers(image: ClusterImage, asked: OperateBrokers) -> tuple[BrokerId, ...]:
    """Raises KafkaError for brokers that there are not."""
    listed = sorted(broker for broker in image.known if image.wish(broker) is not Wish.removed)
    if asked.is_all:
        if asked.kind is not OperationKind.restart or asked.brokers:
            raise _refused("only a restart can be of all brokers, and then it names none")
        brokers = tuple(broker for broker in listed if image.wish(broker) is Wish.serving)
    else:
        brokers = tuple(dict.fromkeys(asked.brokers))
    if not brokers or len(brokers) > BROKERS_MAX:
        raise _refused(f"name between one broker and {BROKERS_MAX} brokers, not {len(brokers)}")
    may_return = asked.kind is OperationKind.start
    for broker in brokers:
        if broker not in listed and not (may_return and broker in image.known):
            removed = " any more: it was removed" if broker in image.known else f": there are {listed}"
            raise _refused(f"there is no broker {broker}{removed}")
    return brokers


def _check_conflicts(image: ClusterImage, brokers: Sequence[BrokerId]) -> None:
    for running in image.operations.values():
        for broker in brokers:
            if running.is_running and broker in running.brokers:
                raise _refused(
                    f"{running} is under way on broker {broker}; wait for its end, or cancel it with: "
                    f"sparklog brokers cancel {running.id}"
                )


def _check(image: ClusterImage, asked: OperateBrokers, brokers: Sequence[BrokerId]) -> None:
    match asked.kind:
        case OperationKind.stop:
            _check_unavailable(image, asked, brokers, together=brokers)
        case OperationKind.restart:
            _check_unavailable(image, asked, brokers, together=())
        case OperationKind.drain:
            _check_room(image, brokers)
        case OperationKind.fill:
            for broker in brokers:
                if not stays(image, broker):
                    raise _refused(f"broker {broker} does not serve, so it cannot be filled")
        case OperationKind.remove:
            for broker in brokers:
                check_removal(image, broker)
        case OperationKind.start:
            pass
        case OperationKind.reassign:
            raise _refused("moves of a plan begin with: sparklog reassign execute")


def _check_unavailable(
    image: ClusterImage, asked: OperateBrokers, brokers: Sequence[BrokerId], together: Sequence[BrokerId]
) -> None:
    """Refuse what makes partitions unavailable however long it waits, unless that is accepted."""
    if asked.accepts_unavailable:
        return
    if asked.kind is OperationKind.stop:
        _check_last(image, brokers)
    for broker in brokers:
        never = never_available(image, broker, together)
        if never:
            are = "partition needs" if len(never) == 1 else "partitions need"
            raise KafkaError(
                ErrorCode.policy_violation,
                f"{len(never)} {are} broker {broker}, because too few replicas would be left for their "
                f"min.insync.replicas: {named(never)}. They cannot be written while it is stopped; that is "
                "accepted with --accept-unavailable",
            )


def _check_last(image: ClusterImage, brokers: Sequence[BrokerId]) -> None:
    left = [one for one in image.brokers if stays(image, one) and one not in brokers]
    if not left and any(one in image.brokers for one in brokers):
        raise KafkaError(
            ErrorCode.policy_violation,
            f"no broker would be left that serves, after {', '.join(map(str, sorted(brokers)))}; that is "
            "accepted with --accept-unavailable",
        )


def _check_room(image: ClusterImage, brokers: Sequence[BrokerId]) -> None:
    """Refuse a drain that leaves too few brokers for the replicas of a partition."""
    left = sorted(one for one in image.brokers if stays(image, one) and one not in brokers)
    if not left:
        named_brokers = ", ".join(map(str, brokers))
        raise _refused(f"no broker would be left that serves, after {named_brokers}; start another one first")
    for partition, _ in image.partitions():
        target = image.assignment_of(partition).target
        if len(target) > len(left) and not set(target).isdisjoint(brokers):
            raise _refused(
                f"{partition} has {len(target)} replicas, and {len(left)} brokers would be left: {left}; "
                "start another broker, or lower its replication factor with: sparklog reassign plan"
            )


def _with_state_before(image: ClusterImage, operation: Operation) -> Operation:
    away = tuple(sorted(one for one in image.known if one not in image.brokers))
    slow = tuple(partition for partition, _ in lagging(image, away))
    if len(slow) > LAGGING_MAX:
        raise KafkaError(
            ErrorCode.policy_violation,
            f"{len(slow)} partitions have replicas on living brokers that are not in sync: {named(slow)}; "
            "wait until they are",
        )
    return replace(operation, away=away, lagging=slow)


def _refused(words: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, words)
