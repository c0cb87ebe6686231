"""The requests that the controller serves on its own listener: of brokers, and of clients whose broker
forwards them.

A request is decoded here, becomes a command for the event loop, and is answered with the command's result. An
Envelope has the whole request of a client inside, with the client's principal and address. Its response has
the whole response inside, with the client's correlation id (KIP-590).

A request whose row in the table of APIs lacks the controller's listener closes the connection. One inside an
Envelope is refused unless brokers forward it: another Envelope, or a request between brokers, never is.
"""

import logging
import uuid
from collections.abc import Callable
from typing import Final

from sparklog.controller.ports import AnswerCommand
from sparklog.core.apis.api import ListenerKind
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.controller.commands.controller_command import Command, Result
from sparklog.core.security.audit import Audit
from sparklog.core.security.requester import Requester, decode_requester
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import TopicId
from sparklog.model.parts import Part, read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.access.access_control import AccessControl
from sparklog.network.exchange import Exchange
from sparklog.wire.access.acts import act_at_controller
from sparklog.wire.access.judging import Denied, Question, Verdict, judge
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
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse
from sparklog.wire.response_errors import errors_in
from sparklog.wire.versions import API_VERSIONS_KEY

logger: Final = logging.getLogger(__name__)

SIZE_PREFIX_BYTES: Final = 4

Submit = Callable[[Command, AnswerCommand], None]
Report = Callable[[ClusterReportRequest], ClusterReportResponse]
SendResponse = Callable[[Message], None]


class ControllerHandlers:
    """``handle`` is the reactor's handler. ``submit`` gives a command to the candidate, and ``new_topic_id``
    draws the id of a topic. ``report`` answers who asks what this controller knows.
    """

    def __init__(
        self,
        config: BrokerConfig,
        submit: Submit,
        report: Report,
        *,
        new_topic_id: NewTopicId = uuid.uuid4,
        access_control: AccessControl | None = None,
        topic_name: Callable[[TopicId], str | None] = lambda topic_id: None,
        audit: Audit | None = None,
    ) -> None:
        """``access_control``: None if there is no authorizer. ``topic_name``: of the topic with this id.
        ``audit``: gets acts of administration.
        """
        self._audit = audit
        self._access_control = access_control
        self._topic_name = topic_name
        self._config = config
        self._report = report
        self._submit = submit
        self._new_topic_id = new_topic_id

    def handle(self, exchange: Exchange) -> None:
        try:
            request = decode_request(exchange.frame)
        except UnsupportedVersion as unsupported:
            self._refuse_version(exchange, unsupported)
            return
        except WireError as error:
            self._refuse(exchange, error)
            return
        header = request.header
        api = APIS[header.api_key]
        if ListenerKind.controller not in api.listeners:
            self._refuse(exchange, WireError(f"{api.name} is not served on the controller's listener"))
            return

        def respond(response: Message) -> None:
            parts = _encode(response, header)
            if parts is None:
                exchange.close()
            else:
                exchange.reply(parts)

        requester = exchange.context.requester
        if isinstance(request.body, EnvelopeRequest):
            verdict = self._judge(request, requester)
            if isinstance(verdict, Denied):
                respond(verdict.response)
            else:
                self._open_envelope(request.body, requester, respond)
        elif isinstance(request.body, ApiVersionsRequest):
            respond(self._api_versions(ErrorCode.none))
        elif isinstance(request.body, ClusterReportRequest):
            respond(self._reported(request, requester))
        else:
            self._decide(request, requester, respond)

    def _decide(self, request: Request, requester: Requester, respond: SendResponse) -> None:
        """Let the event loop decide on what the requester may ask for, and answer it then."""
        api, body = COMMAND_APIS[request.header.api_key], request.body
        verdict = self._judge(request, requester)
        if isinstance(verdict, Denied):
            respond(verdict.response)
            return
        finish = None
        if verdict is not None:
            body, finish = verdict.request, verdict.finish

        header, asked = request.header, api.to_request(body, self._new_topic_id)
        act = None if self._audit is None else act_at_controller(APIS[header.api_key], body)

        def answer(result: Result) -> None:
            response = api.to_response(result, self._config)
            response = response if finish is None else finish(response)
            if self._audit is not None and act is not None:
                client_id, name = header.client_id or "", APIS[header.api_key].name
                self._audit.acted(requester, client_id, name, act, errors_in(response))
            respond(response)

        is_strict = header.api_version >= api.strict_from
        self._submit(Command(asked, requester, header.client_id or "", is_strict), answer)

    def _reported(self, request: Request, requester: Requester) -> Message:
        verdict = self._judge(request, requester)
        if isinstance(verdict, Denied):
            response: Message = verdict.response
            return response
        response = self._report(request.body)
        return response if verdict is None or verdict.finish is None else verdict.finish(response)

    def _judge(self, request: Request, requester: Requester) -> Verdict | None:
        """What of the request the requester may ask for; None if there is no authorizer."""
        if self._access_control is None:
            return None
        api, version = APIS[request.header.api_key], request.header.api_version
        access = self._access_control.of(requester, api.name)
        return judge(Question(api, request.body, version, access, self._topic_name))

    def _open_envelope(self, envelope: EnvelopeRequest, broker: Requester, respond: SendResponse) -> None:
        """Decide on the request inside for the requester that ``broker`` names, not for the broker."""
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
        if not api.is_forwarded:
            logger.warning(
                "refused an envelope from %s: %s asks for %s, which is not forwarded",
                *(broker, requester, api.name),
            )
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))
            return

        def respond_inside(response: Message) -> None:
            whole = _encode(response, inner.header)
            if whole is None:
                respond(EnvelopeResponse(error_code=ErrorCode.unknown_server_error))
            else:
                respond(EnvelopeResponse(response_data=read_parts(whole)[SIZE_PREFIX_BYTES:]))

        self._decide(inner, requester, respond_inside)

    def _refuse_version(self, exchange: Exchange, unsupported: UnsupportedVersion) -> None:
        """ApiVersions is answered in any version, with what is served, so that the caller can step down."""
        if unsupported.header.api_key != API_VERSIONS_KEY:
            self._refuse(exchange, unsupported)
            return
        response = self._api_versions(ErrorCode.unsupported_version)
        exchange.reply(encode_response(response, 0, unsupported.header.correlation_id))

    @staticmethod
    def _refuse(exchange: Exchange, error: WireError) -> None:
        logger.warning("closing the connection from %s: %s", exchange.context.client_host, error)
        exchange.close()

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
