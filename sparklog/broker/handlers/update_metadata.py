"""UpdateMetadata: the controller says which brokers live and who leads what."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.from_controller import judge
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle(call: Call, request: UpdateMetadataRequest) -> None:
    error = judge(call, request.controller_epoch, request.broker_epoch)
    if error is None:
        return
    if error is ErrorCode.none:
        error = call.broker.metadata.update(request)
    call.reply(UpdateMetadataResponse(error_code=error))
