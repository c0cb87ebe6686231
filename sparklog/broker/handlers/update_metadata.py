"""UpdateMetadata: the controller says which brokers live and who leads what."""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle(call: Call, request: UpdateMetadataRequest) -> None:
    error = call.broker.replicas.accept_controller(request.controller_epoch, request.broker_epoch)
    if error is ErrorCode.none:
        error = call.broker.metadata.update(request)
    call.reply(UpdateMetadataResponse(error_code=error))
