"""Moves of a plan with a throttle: the same write begins the moves and an operation that has the throttle.

The operation ends when none of its partitions moves any more; so its throttle needs nobody who takes it away.
A later plan with a throttle takes the partitions that both name over, so that the later throttle counts.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from sparklog.core.controller.commands.partition_commands import PartitionsResult
from sparklog.core.controller.leaders.reassignment import decide_moves
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.operation_writes import OperationWrites
from sparklog.core.controller.state.image import ClusterImage, PartitionChanged
from sparklog.core.controller.state.operations import Operation, encode_operation
from sparklog.core.controller.steps import Decision, Reassign
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

OPERATION_BYTES_MAX: Final = 60_000
"""Limit of the node of such an operation, which names its partitions: its write has moves, too."""


def decide_plan(image: ClusterImage, step: Reassign) -> Decision | PartitionsResult:
    """The moves that fit one write, with the operation that limits them if they have a throttle."""
    if not step.throttle:
        return decide_moves(image, step)
    new = _operation(image, step)
    asked = frozenset(one.partition for one in step.moves if one.target is not None)
    size = len(encode_operation(replace(new, partitions=_sorted({*new.partitions, *asked}))))
    if size > OPERATION_BYTES_MAX:
        message = (
            f"A throttle of {len(asked)} moves takes {size} bytes in ZooKeeper, more than "
            f"{OPERATION_BYTES_MAX}; split the plan."
        )
        return PartitionsResult(step.results, ErrorCode.policy_violation, message)
    verdict = decide_moves(image, step)
    moving = _moving(image, verdict, asked)
    running = _with_this_throttle(image, step, moving)
    if running is not None:
        return _answering(verdict, running)
    if not moving:
        return verdict if step.operation < 0 else _answering(verdict, step.operation)
    writes = OperationWrites(image)
    writes.forget_ended()
    taken = _sorted({*new.partitions, *moving})
    writes.put(replace(new, partitions=taken, total=len(taken)))
    for other in _others(image, new.id):
        left = _sorted(set(other.partitions) - moving)
        if len(left) < len(other.partitions):
            writes.put(replace(other, partitions=left))
    return _with(verdict, step, writes, new.id)


def _operation(image: ClusterImage, step: Reassign) -> Operation:
    """The one that an earlier write of this step has begun, or a new one."""
    begun = image.operations.get(step.operation)
    if begun is not None and begun.is_running:
        return begun
    return Operation(
        id=max(image.operations, default=0) + 1,
        kind=OperationKind.reassign,
        requested_by=step.requested_by,
        since_ms=step.asked_ms,
        throttle=step.throttle,
    )


def _moving(
    image: ClusterImage, verdict: Decision | PartitionsResult, asked: Collection[TopicPartition]
) -> frozenset[TopicPartition]:
    """Those of ``asked`` that move after the write, if their move was accepted by then."""
    begun: set[TopicPartition] = set()
    results: PartitionsResult | None = None
    if isinstance(verdict, PartitionsResult):
        results = verdict
    else:
        begun = {
            one.partition
            for one in verdict.changes
            if isinstance(one, PartitionChanged) and (one.state.adding or one.state.removing)
        }
        if isinstance(verdict.result, PartitionsResult):
            results = verdict.result
    answered = () if results is None else results.partitions
    accepted = {one.partition for one in answered if one.error is ErrorCode.none}
    before = {one for one in accepted if one in image.moving}
    return frozenset(begun | before) & frozenset(asked)


def _with_this_throttle(image: ClusterImage, step: Reassign, moving: frozenset[TopicPartition]) -> int | None:
    """The operation that limits all these moves to the same rate already, as when a request is sent again."""
    for one in _others(image, -1):
        if moving and one.throttle == step.throttle and moving <= frozenset(one.partitions):
            return one.id
    return None


def _others(image: ClusterImage, own: int) -> list[Operation]:
    return [
        one
        for one in image.operations.values()
        if one.is_running and one.kind is OperationKind.reassign and one.id != own
    ]


def _with(
    verdict: Decision | PartitionsResult, step: Reassign, writes: OperationWrites, operation: int
) -> Decision:
    if isinstance(verdict, PartitionsResult):
        result = replace(verdict, operation=operation)
        return Decision(step, tuple(writes.operations), tuple(writes.changes), result)
    return replace(
        _answered(verdict, operation),
        operations=(*verdict.operations, *writes.operations),
        changes=(*verdict.changes, *writes.changes),
    )


def _answering(verdict: Decision | PartitionsResult, operation: int) -> Decision | PartitionsResult:
    if isinstance(verdict, PartitionsResult):
        return replace(verdict, operation=operation)
    return _answered(verdict, operation)


def _answered(decision: Decision, operation: int) -> Decision:
    """The write names the operation in its answer, or in the step that goes on."""
    rest, result = decision.rest, decision.result
    if isinstance(rest, Reassign):
        rest = replace(rest, operation=operation)
    if isinstance(result, PartitionsResult):
        result = replace(result, operation=operation)
    return replace(decision, rest=rest, result=result)


def _sorted(partitions: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partitions))
