"""LeaveGroup: members that leave, several at once from version 3 on, also by their instance ids (KIP-345)."""

from sparklog.core.coordinator.actions import Token
from sparklog.core.group.group import Group
from sparklog.core.group.members.departures import remove_member, remove_pending_member
from sparklog.core.group.members.member_checks import member_error
from sparklog.core.group.requests import UNKNOWN_MEMBER_ID, LeaveGroup, LeavingMember
from sparklog.core.group.responses import LeaveGroupAnswer, LeftMember
from sparklog.core.group.turn import Turn
from sparklog.model.errors import ErrorCode


def leave(token: Token, request: LeaveGroup, turn: Turn) -> None:
    group = turn.state.groups.get(request.group_id)
    left = tuple(
        LeftMember(one.member_id, one.group_instance_id, _leave_one(group, one, turn))
        for one in request.members
    )
    turn.reply(token, LeaveGroupAnswer(ErrorCode.none, left))


def _leave_one(group: Group | None, leaving: LeavingMember, turn: Turn) -> ErrorCode:
    if group is None:
        return ErrorCode.unknown_member_id
    member_id: str | None = leaving.member_id
    if leaving.member_id == UNKNOWN_MEMBER_ID:  # an administrator names the instance alone
        member_id = group.static_members.get(leaving.group_instance_id or "")
    elif leaving.member_id in group.pending_members:
        remove_pending_member(group, leaving.member_id, turn)
        return ErrorCode.none
    else:
        error = member_error(group, leaving.member_id, leaving.group_instance_id)
        if error is not ErrorCode.none:
            return error
    if member_id is None:
        return ErrorCode.unknown_member_id
    reason = leaving.reason or "no reason given"
    remove_member(group, group.members[member_id], turn, f"{member_id} leaves: {reason}")
    return ErrorCode.none
