"""CreateTopics and DeleteTopics: forwarded to the controller as they came (KIP-590).

The request travels whole in an Envelope with the principal and address of who sent it, and the controller's
answer goes back whole: the correlation id in it is the client's own.
"""

import logging
import struct
from typing import Any

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode, WireError
from sparklog.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from sparklog.wire.messages.envelope import EnvelopeRequest

logger = logging.getLogger(__name__)

MARGIN_MS = 5_000
"""How much longer than the request's own time-out to wait for the controller."""

SIZE = struct.Struct(">i")


def handle_create_topics(call: Call, request: CreateTopicsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error, message = ErrorCode.request_timed_out, "no controller answered; try again"
        results = [
            CreatableTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        ]
        call.reply(CreateTopicsResponse(topics=results))


def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> None:
    if not _forward(call, request.timeout_ms):
        error, message = ErrorCode.request_timed_out, "no controller answered; try again"
        names: list[Any] = [*request.topics, *request.topic_names]
        results = [
            DeletableTopicResult(
                name=topic if isinstance(topic, str) else topic.name, error_code=error, error_message=message
            )
            for topic in names
        ]
        call.reply(DeleteTopicsResponse(responses=results))


def _forward(call: Call, timeout_ms: int) -> bool:
    """Whether the controller answered; its answer is then on its way to the client."""
    envelope = EnvelopeRequest(
        request_data=bytes(call.frame),
        request_principal=call.context.principal.encode(),
        client_host_address=call.context.client_host.encode(),
    )
    try:
        response = call.broker.controller.call(envelope, timeout_ms=max(timeout_ms, 0) + MARGIN_MS)
    except (OSError, WireError) as error:
        logger.info("an admin request could not be forwarded to the controller: %s", error)
        return False
    if response.error_code is not ErrorCode.none or response.response_data is None:
        logger.info("the controller refused an admin request with %s", response.error_code.name)
        return False
    data = bytes(response.response_data)
    call.exchange.reply([SIZE.pack(len(data)) + data])
    return True
