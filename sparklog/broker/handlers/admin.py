"""What administrators ask and the controller decides: forwarded to it as it came (KIP-590).

The request travels whole in an Envelope with the principal and address of who sent it, and the controller's
answer goes back whole: the correlation id in it is the client's own.
"""

import logging
import struct
from typing import Any

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.model.errors import ErrorCode, WireError
from sparklog.wire.messages.admin.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from sparklog.wire.messages.admin.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from sparklog.wire.messages.admin.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.admin.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from sparklog.wire.messages.admin.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from sparklog.wire.messages.control.envelope import EnvelopeRequest

logger = logging.getLogger(__name__)

MARGIN_MS = 5_000
"""How much longer than the request's own time-out to wait for the controller."""

CONFIGS_TIMEOUT_MS = 25_000
"""For requests that name no time-out of their own; with the margin below the 30 s that clients wait."""

NO_CONTROLLER = "no controller answered; try again"

SIZE = struct.Struct(">i")


def handle_create_topics(call: Call, request: CreateTopicsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error, message = ErrorCode.request_timed_out, NO_CONTROLLER
        results = [
            CreatableTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        ]
        call.reply(CreateTopicsResponse(topics=results))


def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error, message = ErrorCode.request_timed_out, NO_CONTROLLER
        names: list[Any] = [*request.topics, *request.topic_names]
        results = [
            DeletableTopicResult(
                name=topic if isinstance(topic, str) else topic.name, error_code=error, error_message=message
            )
            for topic in names
        ]
        call.reply(DeleteTopicsResponse(responses=results))


def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        results = [
            CreatePartitionsTopicResult(
                name=topic.name, error_code=ErrorCode.request_timed_out, error_message=NO_CONTROLLER
            )
            for topic in request.topics
        ]
        call.reply(CreatePartitionsResponse(results=results))


def handle_incremental_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> None:
    if not _forward(call, CONFIGS_TIMEOUT_MS):
        responses = [
            IncrementalAlterConfigsResourceResponse(
                error_code=ErrorCode.request_timed_out,
                error_message=NO_CONTROLLER,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
        call.reply(IncrementalAlterConfigsResponse(responses=responses))


def handle_alter_configs(call: Call, request: AlterConfigsRequest) -> None:
    if not _forward(call, CONFIGS_TIMEOUT_MS):
        responses = [
            AlterConfigsResourceResponse(
                error_code=ErrorCode.request_timed_out,
                error_message=NO_CONTROLLER,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
        call.reply(AlterConfigsResponse(responses=responses))


def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> None:
    if not _forward(call, request.timeout_ms):
        call.reply(ElectLeadersResponse(error_code=ErrorCode.request_timed_out))


def handle_alter_reassignments(call: Call, request: AlterPartitionReassignmentsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error = ErrorCode.request_timed_out
        call.reply(AlterPartitionReassignmentsResponse(error_code=error, error_message=NO_CONTROLLER))


def handle_list_reassignments(call: Call, request: ListPartitionReassignmentsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error = ErrorCode.request_timed_out
        call.reply(ListPartitionReassignmentsResponse(error_code=error, error_message=NO_CONTROLLER))


def _forward(call: Call, timeout_ms: int) -> bool:
    """Whether the controller answered; its answer is then on its way to the client."""
    envelope = EnvelopeRequest(
        request_data=bytes(call.frame),
        request_principal=call.context.principal.encode(),
        client_host_address=call.context.client_host.encode(),
    )
    try:
        wait_ms = bounded_timeout_ms(timeout_ms) + MARGIN_MS
        response = call.broker.controller.call(envelope, timeout_ms=wait_ms)
    except (OSError, WireError) as error:
        logger.info("an admin request could not be forwarded to the controller: %s", error)
        return False
    if response.error_code is not ErrorCode.none or response.response_data is None:
        logger.info("the controller refused an admin request with %s", response.error_code.name)
        return False
    data = bytes(response.response_data)
    call.exchange.reply([SIZE.pack(len(data)) + data])
    return True
