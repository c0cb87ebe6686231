"""The end of an operation before it is done: what it began, and has not done, is reverted in the same write.

Moves for which the write has no room go on, as those of other tools do.
"""

from sparklog.core.controller.commands.operation_commands import OperationResult
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.moves import moves_of, revert
from sparklog.core.controller.operations.operation_end import ended
from sparklog.core.controller.operations.operation_writes import OperationWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import OperationState, Phase
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.steps import CancelOperationStep, Decision
from sparklog.model.errors import ErrorCode


def decide_cancel(image: ClusterImage, step: CancelOperationStep) -> Decision | OperationResult:
    operation = image.operations.get(step.operation)
    if operation is None:
        return OperationResult(ErrorCode.invalid_request, f"there is no operation {step.operation}")
    if operation.state is OperationState.cancelled:
        return OperationResult(operation=operation.id)  # also by a former try of this request
    if not operation.is_running:
        words = f"{operation} has ended: {operation.state}"
        return OperationResult(ErrorCode.invalid_request, words)
    writes = OperationWrites(image)
    broker = operation.broker
    if broker is not None and operation.phase is Phase.stopping and operation.kind is not OperationKind.start:
        writes.wish(broker, Wish.serving)
    writes.put(ended(image, operation, OperationState.cancelled))
    moves = revert(image, operation, moves_of(image, operation))
    operations, changes = tuple(writes.operations), tuple(writes.changes)
    if moves is not None:
        operations, changes = (*moves.operations, *operations), (*moves.changes, *changes)
    losses = () if moves is None else moves.losses
    return Decision(step, operations, changes, OperationResult(operation=operation.id), losses=losses)
