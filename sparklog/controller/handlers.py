"""The requests that the controller serves on its own listener: of brokers, and of clients whose broker
forwards them.

A request is decoded here, becomes a command for the event loop, and is answered with the command's result. An
Envelope has the whole request of a client inside, with the client's principal and address. Its response has
the whole response inside, with the client's correlation id (KIP-590).
"""

import logging
import uuid
from collections.abc import Callable
from typing import Final

from sparklog.controller.ports import AnswerCommand
from sparklog.core.apis.api import ListenerKind
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.security.requester import Requester, decode_requester
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.parts import Part, read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.exchange import Exchange
from sparklog.wire.codec import (
    Message,
    Request,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    encode_response,
)
from sparklog.wire.commands.command_apis import COMMAND_APIS, NewTopicId
from sparklog.wire.messages.control.envelope import EnvelopeRequest, EnvelopeResponse
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import API_VERSIONS_KEY

logger: Final = logging.getLogger(__name__)

SIZE_PREFIX_BYTES: Final = 4

Submit = Callable[[Command, AnswerCommand], None]
SendResponse = Callable[[Message], None]


class ControllerHandlers:
    """``handle`` is the reactor's handler. ``submit`` gives a command to the candidate, and ``new_topic_id``
    draws the id of a topic.
    """

    def __init__(
        self, config: BrokerConfig, submit: Submit, *, new_topic_id: NewTopicId = uuid.uuid4
    ) -> None:
        self._config = config
        self._submit = submit
        self._new_topic_id = new_topic_id

    def handle(self, exchange: Exchange) -> None:
        try:
            request = decode_request(exchange.frame)
        except UnsupportedVersion as unsupported:
            self._refuse_version(exchange, unsupported)
            return
        except WireError:
            exchange.close()
            return
        header = request.header

        def respond(response: Message) -> None:
            parts = _encode(response, header)
            if parts is None:
                exchange.close()
            else:
                exchange.reply(parts)

        requester = exchange.context.requester
        if isinstance(request.body, EnvelopeRequest):
            self._open_envelope(request.body, requester, respond)
        elif not self._serve(request, requester, respond):
            exchange.close()

    def _serve(self, request: Request, requester: Requester, respond: SendResponse) -> bool:
        """Answer the request, now or later; False if it is nothing that a controller serves."""
        if isinstance(request.body, ApiVersionsRequest):
            respond(self._api_versions(ErrorCode.none))
            return True
        api = COMMAND_APIS.get(request.header.api_key)
        if api is None:
            return False
        command = Command(api.to_request(request.body, self._new_topic_id), requester)
        self._submit(command, lambda result: respond(api.to_response(result, self._config)))
        return True

    def _open_envelope(self, envelope: EnvelopeRequest, broker: Requester, respond: SendResponse) -> None:
        """Serve the request inside for the requester that ``broker`` names, not for the broker."""
        try:
            requester = decode_requester(envelope.request_principal, envelope.client_host_address)
            inner = decode_request(envelope.request_data)
        except UnsupportedVersion:
            respond(EnvelopeResponse(error_code=ErrorCode.unsupported_version))
            return
        except WireError as error:
            logger.warning("refused an envelope from %s: %s", broker, error)
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))
            return
        api = APIS[inner.header.api_key]
        if not api.is_for_clients:
            logger.warning("refused an envelope from %s: %s asks for %s", broker, requester, api.name)
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))
            return

        def respond_inside(response: Message) -> None:
            whole = _encode(response, inner.header)
            if whole is None:
                respond(EnvelopeResponse(error_code=ErrorCode.unknown_server_error))
            else:
                respond(EnvelopeResponse(response_data=read_parts(whole)[SIZE_PREFIX_BYTES:]))

        if not self._serve(inner, requester, respond_inside):
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))

    def _refuse_version(self, exchange: Exchange, unsupported: UnsupportedVersion) -> None:
        """ApiVersions is answered in any version, with what is served, so that the caller can step down."""
        if unsupported.header.api_key != API_VERSIONS_KEY:
            exchange.close()
            return
        response = self._api_versions(ErrorCode.unsupported_version)
        exchange.reply(encode_response(response, 0, unsupported.header.correlation_id))

    def _api_versions(self, error: ErrorCode) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=api.key, min_version=api.min, max_version=api.max)
            for api in ROWS
            if ListenerKind.controller in api.listeners
        ]
        return ApiVersionsResponse(error_code=error, api_keys=keys)


def _encode(response: Message, header: RequestHeader) -> list[Part] | None:
    """None if the response cannot be encoded: by a bug, or because an error message is too long for this
    version.

    It runs on the event loop's thread, where an exception would end the term of office.
    """
    try:
        return encode_response(response, header.api_version, header.correlation_id)
    except Exception:
        logger.exception("a response to API key %d cannot be encoded", header.api_key)
        return None
