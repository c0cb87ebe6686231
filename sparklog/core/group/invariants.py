"""What holds after every step of the group machine. Used by tests and by the simulation."""

from collections import Counter

from sparklog.core.coordinator.actions import Token
from sparklog.core.group.group import Group
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import PartitionState


def check_partition(state: PartitionState) -> None:
    """Each write belongs to a group that is there, and no request waits in two places."""
    for write_id, pending in state.writes.items():
        group = state.groups[pending.write.key]
        assert not pending.write.holds_key or write_id in group.holds, pending
    for group in state.groups.values():
        assert group.holds.keys() <= state.writes.keys(), group.group_id
        of_group = sum(pending.write.key == group.group_id for pending in state.writes.values())
        assert group.writes_in_flight == of_group, group.group_id
    tokens = Counter(_waiting_in_members(state))
    assert not tokens or max(tokens.values()) == 1, tokens


def _waiting_in_members(state: PartitionState) -> list[Token]:
    return [
        waiting.token
        for group in state.groups.values()
        for member in group.members.values()
        for waiting in (member.waiting_join, member.waiting_sync)
        if waiting is not None
    ]


def check_group(group: Group, state: PartitionState) -> None:
    _check_members(group)
    _check_state(group)
    _check_time(group)
    if group.state is GroupState.STABLE and not group.holds:
        written = state.applied.groups.get(group.group_id)
        assert written == group.as_value(), f"{group.group_id} differs from its record: {written}"
    in_flight = group.commits_in_flight
    assert all(count > 0 for count in in_flight.values()), in_flight


def _check_members(group: Group) -> None:
    members = group.members
    assert group.leader in members if members else group.leader is None, group
    assert all(member_id == member.member_id for member_id, member in members.items()), members
    static = {one.group_instance_id: one.member_id for one in members.values() if one.is_static}
    assert static == group.static_members, group
    assert not group.pending_members.keys() & members.keys(), group
    assert group.pending_syncs <= members.keys(), group
    assert group.waiting_joins == sum(one.waiting_join is not None for one in members.values()), group
    names = Counter(protocol.name for one in members.values() for protocol in one.protocols)
    assert group.protocol_counts == names, group


def _check_state(group: Group) -> None:
    members = group.members.values()
    if group.state is not GroupState.PREPARING_REBALANCE:
        assert group.waiting_joins == 0, group
        assert group.rebalance_deadline_ms is None, group
        assert group.initial_remaining_ms is None, group
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert all(member.waiting_sync is None for member in members), group
    match group.state:
        case GroupState.EMPTY:
            assert not members, group
            assert group.sync_deadline_ms is None, group
            assert group.protocol is None, group
        case GroupState.PREPARING_REBALANCE:
            assert group.rebalance_deadline_ms is not None, group
            assert not group.pending_syncs, group
            assert group.sync_deadline_ms is None, group
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            assert members, group
            assert group.protocol is not None, group
            assert all(member.supports(group.protocol) for member in members), group
            assert bool(group.pending_syncs) == (group.sync_deadline_ms is not None), group


def _check_time(group: Group) -> None:
    deadline_ms = group.next_deadline_ms()
    if deadline_ms is not None and not group.holds:
        assert group.alarm_ms is not None, group
        assert group.alarm_ms <= deadline_ms, group
