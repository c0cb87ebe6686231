"""IncrementalAlterConfigs: changes of topics and brokers go to the controller, those of loggers stay here."""

from sparklog.broker.call import Call
from sparklog.broker.forwarding import forward, response_to
from sparklog.broker.handlers.configs.broker_loggers import alter_loggers
from sparklog.broker.handlers.configs.describe_configs import check_own_id
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.kafka_numbers import BROKER_LOGGER_RESOURCE
from sparklog.wire.codec import encode_request
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


def handle(call: Call, request: IncrementalAlterConfigsRequest) -> None:
    of_loggers = [one for one in request.resources if one.resource_type == BROKER_LOGGER_RESOURCE]
    if not of_loggers:
        forward(call, request)
        return
    responses = [_alter_loggers(call, one, validate_only=request.validate_only) for one in of_loggers]
    others = [one for one in request.resources if one.resource_type != BROKER_LOGGER_RESOURCE]
    if others:
        rest = IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)
        header = call.header
        frame = encode_request(rest, header.api_version, header.correlation_id, header.client_id)
        responses += response_to(call, rest, frame[FRAME_PREFIX.size :]).responses
    call.reply(IncrementalAlterConfigsResponse(responses=responses))


def _alter_loggers(
    call: Call, resource: IncrementalAlterConfigsResource, *, validate_only: bool
) -> IncrementalAlterConfigsResourceResponse:
    response = IncrementalAlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    if not call.allows(AclOperation.alter_configs, ResourceType.cluster):
        response.error_code = ErrorCode.cluster_authorization_failed
        return response
    try:
        check_own_id(call, resource.resource_name)
        alter_loggers(resource.configs, validate_only=validate_only)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message
    else:
        response.error_code = ErrorCode.none
    return response
