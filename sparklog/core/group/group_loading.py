"""The groups of a coordinator that has read its log.

A generation with members is stable: they go on where they were, and their sessions begin now. What was under
way at the coordinator before (a rebalance, member ids that were given out) was not written, and is lost.
"""

from sparklog.core.group.group import Group
from sparklog.core.group.member import Member
from sparklog.core.group.members.rebalance import prepare_rebalance
from sparklog.core.group.records import GroupValue, MemberValue
from sparklog.core.group.requests import JoinProtocol
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn
from sparklog.model.time import WallMs


def load_groups(turn: Turn) -> None:
    """Make a group of each group id of the applied state."""
    applied = turn.state.applied
    for group_id in dict.fromkeys([*applied.groups, *applied.offsets, *applied.unstable]):
        value = applied.groups.get(group_id)
        group = Group(group_id, turn.now.wall_ms) if value is None else _load(group_id, value, turn)
        turn.state.groups[group_id] = group
        if len(group.members) > turn.settings.size_max:
            prepare_rebalance(group, turn, f"more than group.max.size ({turn.settings.size_max}) members")


def _load(group_id: str, value: GroupValue, turn: Turn) -> Group:
    """The group of a record. No coordinator writes members that share an id; of those, the last counts."""
    group = Group(group_id, WallMs(value.state_timestamp_ms), generation_id=value.generation_id)
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    for one in value.members:
        if one.group_instance_id is not None and one.group_instance_id in group.static_members:
            group.remove(group.static_members[one.group_instance_id])
        group.remove(one.member_id)
        group.add(_load_member(one, value.protocol or "", turn))
    if value.members:
        group.protocol = value.protocol or ""
        group.leader = value.leader if value.leader in group.members else group.leader
        group.state = GroupState.STABLE
    turn.state.find_topics(group)
    return group


def _load_member(value: MemberValue, protocol: str, turn: Turn) -> Member:
    return Member(
        member_id=value.member_id,
        group_instance_id=value.group_instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        session_timeout_ms=value.session_timeout_ms,
        protocols=(JoinProtocol(protocol, value.subscription),),
        session_deadline_ms=turn.in_ms(value.session_timeout_ms),
        assignment=value.assignment,
    )
