"""SyncGroup: the leader brings the assignment of the generation, and each member is answered with its own."""

from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask
from sparklog.core.group.requests import Assignment, SyncGroup
from sparklog.core.group.responses import SyncGroupAnswer
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_FROM: Final = 5
"""From this version on a member names the protocol that it believes in (KIP-559)."""


def handle(call: Call, request: SyncGroupRequest) -> None:
    if call.version >= PROTOCOL_REQUIRED_FROM and None in (request.protocol_type, request.protocol_name):
        call.reply(SyncGroupResponse(error_code=ErrorCode.inconsistent_group_protocol))
        return
    sync = SyncGroup(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple(Assignment(one.member_id, bytes(one.assignment)) for one in request.assignments),
    )
    ask(call, sync, _response)


def _response(synced: SyncGroupAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
