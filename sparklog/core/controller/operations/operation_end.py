"""The end of an operation, with how far it came."""

from dataclasses import replace

from sparklog.core.controller.operations.operation_progress import done_of
from sparklog.core.controller.operations.operation_writes import put
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation, OperationState
from sparklog.core.controller.steps import Decision


def ended(image: ClusterImage, operation: Operation, state: OperationState, reason: str = "") -> Operation:
    done = operation.total if state is OperationState.done else done_of(image, operation)
    return replace(operation, state=state, reason=reason, done=done)


def end(image: ClusterImage, operation: Operation, state: OperationState, reason: str = "") -> Decision:
    return put(image, ended(image, operation, state, reason))
