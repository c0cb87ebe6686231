"""JoinGroup: become a member of a group. The answer waits until the group's next generation is complete."""

import uuid
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask, is_too_long
from sparklog.core.group.requests import JoinGroup, JoinProtocol
from sparklog.core.group.responses import JoinGroupAnswer
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

REBALANCE_TIMEOUT_FROM: Final = 1
"""Before this version the session time-out is the rebalance time-out too."""

MEMBER_ID_REQUIRED_FROM: Final = 4
NULL_PROTOCOL_FROM: Final = 7
SKIP_ASSIGNMENT_FROM: Final = 9


def handle(call: Call, request: JoinGroupRequest) -> None:
    client_id = call.header.client_id or ""
    problem = _problem(request, client_id)
    if problem is not None:
        call.reply(_response(call, JoinGroupAnswer(problem, request.member_id)))
        return
    join = JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=f"/{call.context.client_host}",  # as Java writes an address, and Kafka stores it
        protocol_type=request.protocol_type,
        protocols=tuple(JoinProtocol(one.name, bytes(one.metadata)) for one in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms
            if call.version >= REBALANCE_TIMEOUT_FROM
            else request.session_timeout_ms
        ),
        requires_member_id=call.version >= MEMBER_ID_REQUIRED_FROM and request.group_instance_id is None,
        supports_skip_assignment=call.version >= SKIP_ASSIGNMENT_FROM,
        member_id_suffix=str(uuid.uuid4()),
        reason=request.reason,
    )
    ask(call, join, lambda joined: _response(call, joined))


def _problem(request: JoinGroupRequest, client_id: str) -> ErrorCode | None:
    if is_too_long(request.group_id):
        return ErrorCode.invalid_group_id
    protocols = (one.name for one in request.protocols)
    if is_too_long(client_id, request.group_instance_id, request.protocol_type, *protocols):
        return ErrorCode.invalid_request
    return None


def _response(call: Call, joined: JoinGroupAnswer) -> JoinGroupResponse:
    """Versions that know no null protocol get an empty name for it."""
    protocol = joined.protocol
    if protocol is None and call.version < NULL_PROTOCOL_FROM:
        protocol = ""
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in joined.members
        ],
    )
