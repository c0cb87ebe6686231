"""The end of an operation before it is done: what it began, and has not done, is reverted."""

from dataclasses import replace

from sparklog.core.controller.commands.operation_commands import OperationResult
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.moves import moves_of, revert
from sparklog.core.controller.operations.operation_end import ended
from sparklog.core.controller.operations.operation_writes import Advance, OperationWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation, OperationState, Phase
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import CancelOperationStep, Decision
from sparklog.model.errors import ErrorCode


def decide_cancel(image: ClusterImage, step: CancelOperationStep) -> Decision | OperationResult:
    operation = image.operations.get(step.operation)
    if operation is None:
        return OperationResult(ErrorCode.invalid_request, f"there is no operation {step.operation}")
    if not operation.is_running:
        words = f"{operation} has ended: {operation.state}"
        return OperationResult(ErrorCode.invalid_request, words)
    if operation.is_cancelling:
        return OperationResult(operation=operation.id)
    writes = OperationWrites(image)
    writes.put(replace(operation, is_cancelling=True))
    return Decision(
        step, tuple(writes.operations), tuple(writes.changes), OperationResult(operation=operation.id)
    )


def revert_next(image: ClusterImage, operation: Operation) -> Advance:
    """The moves that are under way return, in rounds; then the broker that was to stop serves again."""
    moves = revert(image, operation, moves_of(image, operation))
    if moves is not None:
        return moves
    writes = OperationWrites(image)
    broker = operation.broker
    if broker is not None and operation.phase is Phase.stopping and operation.kind is not OperationKind.start:
        writes.wish(broker, Wish.serving)
    writes.put(ended(image, operation, OperationState.cancelled))
    return writes.decision(operation)
