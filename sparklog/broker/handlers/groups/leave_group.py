"""LeaveGroup: members leave at once, before their sessions time out.

Up to version 2 one member leaves, and the response has one error. Later versions have an error for each
member beside that of the whole request.
"""

from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask
from sparklog.core.group.requests import LeaveGroup, LeavingMember
from sparklog.core.group.responses import LeaveGroupAnswer
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

SEVERAL_MEMBERS_FROM: Final = 3


def handle(call: Call, request: LeaveGroupRequest) -> None:
    if call.version >= SEVERAL_MEMBERS_FROM:
        members = [LeavingMember(one.member_id, one.group_instance_id, one.reason) for one in request.members]
        answer = _response
    else:
        members = [LeavingMember(request.member_id)]
        answer = _response_for_one
    ask(call, LeaveGroup(group_id=request.group_id, members=tuple(members)), answer)


def _response(left: LeaveGroupAnswer) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=left.error,
        members=[
            MemberResponse(
                member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=one.error
            )
            for one in left.members
        ],
    )


def _response_for_one(left: LeaveGroupAnswer) -> LeaveGroupResponse:
    errors = (left.error, *(one.error for one in left.members))
    first = next((error for error in errors if error is not ErrorCode.none), ErrorCode.none)
    return LeaveGroupResponse(error_code=first)
