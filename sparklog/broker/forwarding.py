"""Requests that only the controller can decide on, forwarded to it whole (KIP-590).

A request travels in an Envelope with the principal and address of its client. The controller's response
carries the client's own correlation id, and becomes the response of this broker.
"""

import logging
from typing import Any, Final

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.network.exchange import RequestContext
from sparklog.wire.codec import Message, decode_response, parse_request_header
from sparklog.wire.commands.command_apis import COMMAND_APIS, refuse
from sparklog.wire.messages.control.envelope import EnvelopeRequest

logger: Final = logging.getLogger(__name__)

MARGIN_MS: Final = 5_000
"""How much longer than the client to wait for the controller."""

NO_CONTROLLER: Final = "no controller answered; try again"


def forward(call: Call, request: Message) -> None:
    """Answer ``request``, which is the whole of ``call``, as ``response_to`` says. The controller says how
    long the client must wait, and this broker mutes its connection.
    """
    response = response_to(call, request, call.frame)
    call.reply(response, getattr(response, "throttle_time_ms", 0))


def response_to(call: Call, request: Message, frame: memoryview | bytes) -> Any:
    """The controller's response to ``request``, encoded in ``frame``; if there is none, a response that says
    REQUEST_TIMED_OUT.
    """
    timeout_ms = COMMAND_APIS[request.API_KEY].timeout_ms(request)
    try:
        return ask_controller(call, frame, bounded_timeout_ms(timeout_ms) + MARGIN_MS)
    except (OSError, WireError, KafkaError) as error:
        name = type(request).__name__
        logger.info("%s of %s could not be forwarded: %s", name, call.context.requester, error)
        return refuse(request, ErrorCode.request_timed_out, NO_CONTROLLER, call.broker.config)


def ask_controller(call: Call, frame: memoryview | bytes, timeout_ms: int) -> Any:
    """The controller's response to the request in ``frame``, asked for the client of ``call``.

    Raises OSError if no controller answers in time, KafkaError if it refuses the Envelope, WireError if its
    response is malformed.
    """
    answer = call.broker.controller.call_when_reachable(seal(frame, call.context), timeout_ms=timeout_ms)
    if answer.error_code is not ErrorCode.none or answer.response_data is None:
        raise KafkaError(answer.error_code, "the controller refused the envelope")
    header, _ = parse_request_header(frame)
    _, response = decode_response(header.api_key, header.api_version, answer.response_data)
    return response


def seal(frame: memoryview | bytes, context: RequestContext) -> EnvelopeRequest:
    """The request in ``frame`` as the controller is sent it for the client in ``context``."""
    return EnvelopeRequest(
        request_data=bytes(frame),
        request_principal=context.principal.encode(),
        client_host_address=context.client_host.encode(),
    )
