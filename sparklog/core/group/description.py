"""DescribeGroups and ListGroups."""

from sparklog.core.coordinator.actions import Token
from sparklog.core.group.requests import DescribeGroup, ListGroups
from sparklog.core.group.responses import DescribeGroupAnswer, ListedGroup, ListGroupsAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn
from sparklog.model.errors import ErrorCode


def describe(token: Token, request: DescribeGroup, turn: Turn) -> None:
    """Show a group's members; their metadata and assignments only while the group is stable."""
    group = turn.state.groups.get(request.group_id)
    if group is None:
        turn.reply(token, DescribeGroupAnswer(ErrorCode.none, request.group_id, GroupState.DEAD))
        return
    protocol = group.protocol if group.state is GroupState.STABLE else None
    response = DescribeGroupAnswer(
        ErrorCode.none,
        group.group_id,
        group.state,
        group.protocol_type or "",
        protocol or "",
        tuple(member.as_described(protocol) for member in group.members.values()),
    )
    turn.reply(token, response)


def list_groups(token: Token, request: ListGroups, turn: Turn) -> None:
    states = {state.lower() for state in request.states}
    groups = tuple(
        ListedGroup(group.group_id, group.protocol_type or "", group.state)
        for group in turn.state.groups.values()
        if not states or group.state.lower() in states
    )
    turn.reply(token, ListGroupsAnswer(ErrorCode.none, groups))
