"""FindCoordinator: COORDINATOR_NOT_AVAILABLE, because there are no consumer groups and transactions yet."""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_BATCHED_VERSION = 4


def handle(call: Call, request: FindCoordinatorRequest) -> None:
    what = "consumer groups" if request.key_type == GROUP_KEY else "transactions"
    message = f"{what} are not supported yet: assign partitions and offsets instead"
    error = ErrorCode.coordinator_not_available
    if call.version >= FIRST_BATCHED_VERSION:
        coordinators = [
            Coordinator(key=key, error_code=error, error_message=message) for key in request.coordinator_keys
        ]
        call.reply(FindCoordinatorResponse(coordinators=coordinators))
    else:
        call.reply(FindCoordinatorResponse(error_code=error, error_message=message))
