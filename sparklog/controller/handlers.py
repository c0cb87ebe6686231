"""What the controller serves on its own listener: requests of brokers, and those that brokers forward.

A request is decoded here, becomes a command for the event loop, and is answered when its result comes. An
Envelope has a client's whole request inside, with the principal that sent it; the answer goes back the same
way, so that the broker can pass it on as it is (KIP-590).
"""

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparklog.controller import admin_messages, messages
from sparklog.controller.ports import AnswerCommand
from sparklog.core.controller.commands.command import Command
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import TopicId
from sparklog.model.parts import Part, read_parts
from sparklog.network.exchange import Exchange
from sparklog.wire.codec import (
    Message,
    Request,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    encode_response,
)
from sparklog.wire.messages.admin.alter_configs import AlterConfigsRequest
from sparklog.wire.messages.admin.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest
from sparklog.wire.messages.admin.create_topics import CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest
from sparklog.wire.messages.admin.incremental_alter_configs import IncrementalAlterConfigsRequest
from sparklog.wire.messages.admin.list_partition_reassignments import ListPartitionReassignmentsRequest
from sparklog.wire.messages.control.allocate_producer_ids import AllocateProducerIdsRequest
from sparklog.wire.messages.control.alter_partition import AlterPartitionRequest
from sparklog.wire.messages.control.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest
from sparklog.wire.messages.control.envelope import EnvelopeRequest, EnvelopeResponse
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import API_VERSIONS_KEY, KNOWN_VERSIONS

logger: Final = logging.getLogger(__name__)

SIZE_PREFIX_BYTES: Final = 4

Submit = Callable[[Command, AnswerCommand], None]
SendResponse = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Api:
    """How one API's request becomes a command, and the command's result a response."""

    to_command: Callable[[Any], Command]
    to_response: Callable[[Any], Message]


class ControllerHandlers:
    """``handle`` is the reactor's; ``submit`` gives a command to whoever may be controller; ``new_topic_id``
    draws the ids of topics that are created."""

    def __init__(
        self, config: BrokerConfig, submit: Submit, *, new_topic_id: Callable[[], TopicId] = uuid.uuid4
    ) -> None:
        self._submit = submit

        def create_topics(request: CreateTopicsRequest) -> Command:
            return messages.create_topics(request, [new_topic_id() for _ in request.topics])

        self._apis: Mapping[int, Api] = {
            AlterPartitionRequest.API_KEY: Api(messages.alter_partition, messages.alter_partition_response),
            ControlledShutdownRequest.API_KEY: Api(
                messages.controlled_shutdown, messages.controlled_shutdown_response
            ),
            AllocateProducerIdsRequest.API_KEY: Api(
                messages.allocate_producer_ids, messages.allocate_producer_ids_response
            ),
            AssignReplicasToDirsRequest.API_KEY: Api(messages.lose_logs, messages.lose_logs_response),
            CreateTopicsRequest.API_KEY: Api(
                create_topics, lambda result: messages.create_topics_response(result, config)
            ),
            DeleteTopicsRequest.API_KEY: Api(messages.delete_topics, messages.delete_topics_response),
            CreatePartitionsRequest.API_KEY: Api(
                admin_messages.create_partitions, admin_messages.create_partitions_response
            ),
            AlterConfigsRequest.API_KEY: Api(
                admin_messages.alter_configs, admin_messages.alter_configs_response
            ),
            ElectLeadersRequest.API_KEY: Api(
                admin_messages.elect_leaders, admin_messages.elect_leaders_response
            ),
            AlterPartitionReassignmentsRequest.API_KEY: Api(
                admin_messages.alter_reassignments, admin_messages.alter_reassignments_response
            ),
            ListPartitionReassignmentsRequest.API_KEY: Api(
                admin_messages.list_reassignments, admin_messages.list_reassignments_response
            ),
            IncrementalAlterConfigsRequest.API_KEY: Api(
                admin_messages.incremental_alter_configs, admin_messages.incremental_alter_configs_response
            ),
        }

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

        if isinstance(request.body, EnvelopeRequest):
            self._open_envelope(request.body, respond)
        elif not self._serve(request, respond):
            exchange.close()

    def _serve(self, request: Request, respond: SendResponse) -> bool:
        """Answer the request, now or later; False if it is nothing that a controller serves."""
        if isinstance(request.body, ApiVersionsRequest):
            respond(self._api_versions(ErrorCode.none))
            return True
        api = self._apis.get(request.header.api_key)
        if api is None:
            return False
        self._submit(api.to_command(request.body), lambda result: respond(api.to_response(result)))
        return True

    def _open_envelope(self, envelope: EnvelopeRequest, respond: SendResponse) -> None:
        try:
            inner = decode_request(envelope.request_data)
        except UnsupportedVersion:
            respond(EnvelopeResponse(error_code=ErrorCode.unsupported_version))
            return
        except WireError:
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))
            return

        def respond_inside(response: Message) -> None:
            whole = _encode(response, inner.header)
            if whole is None:
                respond(EnvelopeResponse(error_code=ErrorCode.unknown_server_error))
            else:
                respond(EnvelopeResponse(response_data=read_parts(whole)[SIZE_PREFIX_BYTES:]))

        if not self._serve(inner, respond_inside):
            respond(EnvelopeResponse(error_code=ErrorCode.invalid_request))

    def _refuse_version(self, exchange: Exchange, unsupported: UnsupportedVersion) -> None:
        """ApiVersions is answered in any version, with what is served, so that the caller can step down."""
        if unsupported.header.api_key != API_VERSIONS_KEY:
            exchange.close()
            return
        response = self._api_versions(ErrorCode.unsupported_version)
        exchange.reply(encode_response(response, 0, unsupported.header.correlation_id))

    def _api_versions(self, error: ErrorCode) -> ApiVersionsResponse:
        served = sorted([*self._apis, API_VERSIONS_KEY, EnvelopeRequest.API_KEY])
        keys = [
            ApiVersion(api_key=key, min_version=KNOWN_VERSIONS[key].min, max_version=KNOWN_VERSIONS[key].max)
            for key in served
        ]
        return ApiVersionsResponse(error_code=error, api_keys=keys)


def _encode(response: Message, header: RequestHeader) -> list[Part] | None:
    """None if it cannot be: a bug of ours, or words about a name that are too long for this version.

    This runs on the event loop's thread, and must cost no more than this answer, least of all the office.
    """
    try:
        return encode_response(response, header.api_version, header.correlation_id)
    except Exception:
        logger.exception("a response to API key %d cannot be encoded", header.api_key)
        return None
