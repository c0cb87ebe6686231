"""JoinGroup: new members, members that take part in a rebalance, and members that start one."""

from dataclasses import replace
from typing import Final

from sparklog.core.coordinator.actions import Token
from sparklog.core.group.group import Group
from sparklog.core.group.member import Member, WaitingJoin
from sparklog.core.group.members.member_checks import member_error
from sparklog.core.group.members.rebalance import (
    generation_answer,
    maybe_complete_join,
    maybe_prepare_rebalance,
    take_part,
)
from sparklog.core.group.members.static_members import join_as_known_instance
from sparklog.core.group.requests import UNKNOWN_MEMBER_ID, JoinGroup
from sparklog.core.group.responses import JoinGroupAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn
from sparklog.model.errors import ErrorCode

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60_000
"""How long the JoinGroup of a new member may wait. If its client has gone, nothing else shows it."""

PENDING_MEMBERS_MAX: Final = 1_000
"""Member ids of one group that were given out and have not joined yet; the oldest is forgotten first."""


def join(token: Token, request: JoinGroup, turn: Turn) -> None:
    """Answer at once, or let the request wait for the generation in which its member takes part."""
    settings = turn.settings
    timeout_ms = request.session_timeout_ms
    if not settings.session_timeout_min_ms <= timeout_ms <= settings.session_timeout_max_ms:
        turn.reply(token, request.refused(ErrorCode.invalid_session_timeout))
        return
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID
    group = turn.state.groups.get(request.group_id)
    if group is None:
        if not is_unknown:
            turn.reply(token, request.refused(ErrorCode.unknown_member_id))
            return
        group = turn.state.groups[request.group_id] = Group(request.group_id, turn.now.wall_ms)
    # the first of several protocols with one name counts
    distinct = {protocol.name: protocol for protocol in reversed(request.protocols)}
    protocols = tuple(one for one in request.protocols if distinct[one.name] is one)
    request = replace(request, protocols=protocols)
    if not _has_room(group, request.member_id, settings.size_max):
        group.remove(request.member_id)
        turn.reply(token, JoinGroupAnswer(ErrorCode.group_max_size_reached, UNKNOWN_MEMBER_ID))
    elif not group.supports(request.protocol_type, request.protocols):
        turn.reply(token, request.refused(ErrorCode.inconsistent_group_protocol))
    elif is_unknown:
        _join_as_new(group, WaitingJoin(token, request), turn)
    else:
        _join_as_known(group, WaitingJoin(token, request), turn)
    maybe_complete_join(group, turn)


def _has_room(group: Group, member_id: str, size_max: int) -> bool:
    """Whether ``group.max.size`` lets the member join.

    While a rebalance is prepared, those count that have joined already. So a group that is too large, because
    the limit was lowered, loses the members that join last.
    """
    member = group.members.get(member_id)
    match group.state:
        case GroupState.EMPTY:
            return True
        case GroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.waiting_join is not None
            return has_joined or group.waiting_joins < size_max
        case _:
            return member is not None or len(group.members) < size_max


def _join_as_new(group: Group, waiting: WaitingJoin, turn: Turn) -> None:
    """A client without member id: a known instance, a new member, or from version 4 on a member id first."""
    request = waiting.request
    name = request.client_id if request.group_instance_id is None else request.group_instance_id
    member_id = f"{name}-{request.member_id_suffix}"
    if request.group_instance_id is not None and request.group_instance_id in group.static_members:
        join_as_known_instance(group, request.group_instance_id, member_id, waiting, turn)
    elif request.group_instance_id is None and request.requires_member_id:
        _give_member_id(group, member_id, request.session_timeout_ms, turn)
        turn.reply(waiting.token, JoinGroupAnswer(ErrorCode.member_id_required, member_id))
    else:
        _add_member(group, member_id, waiting, turn)


def _give_member_id(group: Group, member_id: str, session_timeout_ms: int, turn: Turn) -> None:
    if len(group.pending_members) >= PENDING_MEMBERS_MAX:
        del group.pending_members[next(iter(group.pending_members))]
    group.pending_members[member_id] = turn.in_ms(session_timeout_ms)
    group.wake_at(group.pending_members[member_id])


def _join_as_known(group: Group, waiting: WaitingJoin, turn: Turn) -> None:
    request = waiting.request
    if request.member_id in group.pending_members and request.group_instance_id is None:
        _add_member(group, request.member_id, waiting, turn)
        return
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        turn.reply(waiting.token, request.refused(error))
        return
    member = group.members[request.member_id]
    has_changed = member.protocols != request.protocols
    match group.state:
        case GroupState.COMPLETING_REBALANCE if not has_changed:
            # the answer to its first JoinGroup was probably lost
            turn.reply(waiting.token, generation_answer(group, member))
        case GroupState.STABLE if not has_changed and member.member_id != group.leader:
            turn.reply(waiting.token, generation_answer(group, member))
        case _:
            # a leader joins again because something else has changed that its assignment depends on
            take_part(group, member, waiting, turn)
            maybe_prepare_rebalance(group, turn, f"{member.member_id} joins again in {group.state}")


def _add_member(group: Group, member_id: str, waiting: WaitingJoin, turn: Turn) -> None:
    request = waiting.request
    if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
        group.has_new_member = True
    if not group.members:
        group.protocol_type = request.protocol_type
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=request.protocols,
        session_deadline_ms=turn.in_ms(NEW_MEMBER_JOIN_TIMEOUT_MS),
        is_new=True,
    )
    group.add(member)
    group.park_join(member, waiting)
    maybe_prepare_rebalance(group, turn, f"{member_id} joins")
