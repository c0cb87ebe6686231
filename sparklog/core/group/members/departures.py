"""Members that leave or fail, and everything else that a group does because its time has come."""

from sparklog.core.group.group import Group
from sparklog.core.group.member import Member
from sparklog.core.group.members.rebalance import (
    maybe_complete_join,
    maybe_prepare_rebalance,
    on_rebalance_deadline,
    on_sync_deadline,
)
from sparklog.core.group.requests import UNKNOWN_MEMBER_ID
from sparklog.core.group.responses import JoinGroupAnswer, SyncGroupAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn
from sparklog.model.errors import ErrorCode
from sparklog.model.time import MonotonicMs


def remove_member(group: Group, member: Member, turn: Turn, reason: str) -> None:
    """Remove a member that left or failed; the others share its partitions in a rebalance."""
    answer_as_unknown(group, member, turn)
    group.remove(member.member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        turn.note(group, reason)
        maybe_complete_join(group, turn)
    else:
        maybe_prepare_rebalance(group, turn, reason)


def answer_as_unknown(group: Group, member: Member, turn: Turn) -> None:
    """Answer what the member waits for with UNKNOWN_MEMBER_ID, so that it begins anew if it lives."""
    join = group.take_join(member)
    if join is not None:
        turn.reply(join.token, JoinGroupAnswer(ErrorCode.unknown_member_id, UNKNOWN_MEMBER_ID))
    sync = group.take_sync(member)
    if sync is not None:
        turn.reply(sync.token, SyncGroupAnswer(ErrorCode.unknown_member_id))


def remove_pending_member(group: Group, member_id: str, turn: Turn) -> None:
    group.remove(member_id)
    maybe_complete_join(group, turn)


def on_group_time(group: Group, turn: Turn) -> None:
    """Everything of the group whose time has come, until its requests must wait for a write."""
    now_ms = turn.now.monotonic_ms
    for member_id in [one for one, deadline_ms in group.pending_members.items() if deadline_ms <= now_ms]:
        if not group.holds:
            turn.note(group, f"{member_id} was given out and never joined")
            remove_pending_member(group, member_id, turn)
    for member in list(group.members.values()):
        expires_at_ms = member.expires_at_ms()
        is_member = group.members.get(member.member_id) is member
        if is_member and not group.holds and expires_at_ms is not None and expires_at_ms <= now_ms:
            remove_member(group, member, turn, f"the session of {member.member_id} is over")
    if not group.holds and _is_over(group.rebalance_deadline_ms, now_ms):
        on_rebalance_deadline(group, turn)
    if not group.holds and _is_over(group.sync_deadline_ms, now_ms):
        on_sync_deadline(group, turn)
    group.alarm_ms = group.next_deadline_ms()


def _is_over(deadline_ms: MonotonicMs | None, now_ms: MonotonicMs) -> bool:
    return deadline_ms is not None and deadline_ms <= now_ms
