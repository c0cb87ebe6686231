"""Operations on brokers: requests as commands, results as responses."""

from typing import Final

from sparklog.core.controller.commands.operation_commands import (
    CancelOperation,
    OperateBrokers,
    OperationResult,
    RefusedOperation,
)
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.model.ids import BrokerId
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest, OperateBrokersResponse

CANCEL: Final = "cancel"
BEGUN_BY_REQUEST: Final = tuple(kind for kind in OperationKind if kind is not OperationKind.reassign)
REQUEST_CHARACTERS_MAX: Final = 64


def operate_brokers(request: OperateBrokersRequest) -> OperateBrokers | CancelOperation | RefusedOperation:
    if request.action == CANCEL:
        return CancelOperation(request.operation)
    if request.action not in BEGUN_BY_REQUEST:
        actions = ", ".join((*BEGUN_BY_REQUEST, CANCEL))
        return RefusedOperation(f"there is no action {request.action[:20]!r}; there are {actions}")
    if not 0 < len(request.request) <= REQUEST_CHARACTERS_MAX:
        return RefusedOperation(f"the request's own id has 1 to {REQUEST_CHARACTERS_MAX} characters")
    if request.throttle < 0:
        return RefusedOperation(f"a throttle of {request.throttle} bytes a second is none: 0 sets no limit")
    return OperateBrokers(
        kind=OperationKind(request.action),
        brokers=tuple(map(BrokerId, request.brokers)),
        request=request.request,
        is_all=request.is_all,
        accepts_unavailable=request.accepts_unavailable,
        throttle=request.throttle,
    )


def operate_brokers_response(result: OperationResult) -> OperateBrokersResponse:
    return OperateBrokersResponse(
        error_code=result.error, error_message=result.message or None, operation=result.operation
    )
