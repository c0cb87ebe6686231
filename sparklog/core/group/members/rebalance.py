"""Rebalances: members join again, a generation begins, members that miss their time are removed.

A rebalance goes on as soon as all members have joined, and without the missing ones when the longest
rebalance time-out of the members is over. The first rebalance of an empty group instead waits for
``group.initial.rebalance.delay.ms``, so that members which start together share one generation (KIP-134).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sparklog.core.coordinator.actions import WriteOutcome
from sparklog.core.group.group import Group
from sparklog.core.group.member import Member, WaitingJoin
from sparklog.core.group.responses import JoinGroupAnswer, SyncGroupAnswer
from sparklog.core.group.states import STATES_BEFORE, GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.model.errors import ErrorCode
from sparklog.model.time import MonotonicMs


def maybe_prepare_rebalance(group: Group, turn: Turn, reason: str) -> None:
    """Begin a rebalance, unless one is being prepared already."""
    if group.state in STATES_BEFORE[GroupState.PREPARING_REBALANCE]:
        prepare_rebalance(group, turn, reason)


def prepare_rebalance(group: Group, turn: Turn, reason: str) -> None:
    turn.note(group, f"rebalance after generation {group.generation_id}: {reason}")
    if group.state is GroupState.COMPLETING_REBALANCE:
        fail_syncs(group, turn, ErrorCode.rebalance_in_progress)
    group.pending_syncs.clear()
    group.sync_deadline_ms = None
    delay_ms = turn.settings.initial_rebalance_delay_ms
    if group.state is GroupState.EMPTY:
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _wait_for_joins(group, turn.in_ms(delay_ms))
    else:
        group.initial_remaining_ms = None
        _wait_for_joins(group, turn.in_ms(group.rebalance_timeout_ms))
    group.has_new_member = False
    group.enter(GroupState.PREPARING_REBALANCE, turn.now.wall_ms)
    maybe_complete_join(group, turn)


def _wait_for_joins(group: Group, deadline_ms: MonotonicMs) -> None:
    group.rebalance_deadline_ms = deadline_ms
    group.wake_at(deadline_ms)


def maybe_complete_join(group: Group, turn: Turn) -> None:
    """Go on if all members have joined; the initial delay is waited for in any case."""
    is_preparing = group.state is GroupState.PREPARING_REBALANCE
    if is_preparing and group.initial_remaining_ms is None and group.has_all_joined:
        _complete_join(group, turn)


def on_rebalance_deadline(group: Group, turn: Turn) -> None:
    """Go on without the missing members, or delay a first rebalance further if a member has just joined."""
    remaining_ms = group.initial_remaining_ms
    if not (group.has_new_member and remaining_ms):
        _complete_join(group, turn)
        return
    delay_ms = min(turn.settings.initial_rebalance_delay_ms, remaining_ms)
    group.has_new_member = False
    group.initial_remaining_ms = remaining_ms - delay_ms
    _wait_for_joins(group, turn.in_ms(delay_ms))


def _complete_join(group: Group, turn: Turn) -> None:
    """Remove the dynamic members that have not joined; then begin a generation, if there is a leader for it.

    Static members stay until their session is over, because they may be restarting (KIP-345).
    """
    for member in list(group.members.values()):
        if member.waiting_join is None and not member.is_static:
            group.remove(member.member_id)
            turn.note(group, f"{member.member_id} has not joined in time")
    if group.members and not _find_leader(group):
        group.initial_remaining_ms = None
        _wait_for_joins(group, turn.in_ms(group.rebalance_timeout_ms))
        return
    group.rebalance_deadline_ms = group.initial_remaining_ms = None
    group.generation_id += 1
    if group.members:
        _begin_generation(group, turn)
    else:
        _become_empty(group, turn)


def _find_leader(group: Group) -> bool:
    """Keep a leader that has joined, else take the oldest member that has; False if no member has joined."""
    joined = [member.member_id for member in group.members.values() if member.waiting_join is not None]
    if joined and group.leader not in joined:
        group.leader = joined[0]
    return bool(joined)


def _begin_generation(group: Group, turn: Turn) -> None:
    group.protocol = group.select_protocol()
    turn.state.find_topics(group)
    group.enter(GroupState.COMPLETING_REBALANCE, turn.now.wall_ms)
    group.pending_syncs = set(group.members)
    group.sync_deadline_ms = turn.in_ms(group.rebalance_timeout_ms)
    group.wake_at(group.sync_deadline_ms)
    turn.note(group, f"generation {group.generation_id} of {len(group.members)} members, {group.protocol}")
    for member in group.members.values():
        member.is_new = False
        waiting = group.take_join(member)
        if waiting is not None:
            turn.reply(waiting.token, generation_answer(group, member))
        renew_session(group, member, turn)


def _become_empty(group: Group, turn: Turn) -> None:
    group.protocol = None
    turn.state.find_topics(group)
    group.enter(GroupState.EMPTY, turn.now.wall_ms)
    turn.note(group, f"empty in generation {group.generation_id}")
    turn.write(group, (turn.group_record(group),), AfterEmptyGeneration(), holds_key=True)


@dataclass(slots=True)
class AfterEmptyGeneration:
    """Nobody waits for an empty generation. If it was refused, the group's next write has it once more.

    A coordinator that loads meanwhile revives the members of the generation before, whose sessions then end.
    """

    def on_outcome(self, outcome: WriteOutcome, turn: Turn) -> None:
        """Nothing depends on it."""

    def take_waiting(self) -> list[Waiting]:
        return []


def generation_answer(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinGroupAnswer:
    """The current generation, as the member sees it: only the leader gets the other members."""
    assert group.protocol is not None, group.group_id
    is_leader = member.member_id == group.leader
    others = group.members.values() if is_leader else ()
    return JoinGroupAnswer(
        ErrorCode.none,
        member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        members=tuple(one.as_joined(group.protocol) for one in others),
    )


def on_sync_deadline(group: Group, turn: Turn) -> None:
    """Remove the members that were given a generation and have not asked for their assignment."""
    group.sync_deadline_ms = None
    late = [member_id for member_id in group.members if member_id in group.pending_syncs]
    if late:
        for member_id in late:
            group.remove(member_id)
        prepare_rebalance(group, turn, f"no SyncGroup from {', '.join(late)}")


def fail_syncs(group: Group, turn: Turn, error: ErrorCode) -> None:
    """Answer the SyncGroups that wait: there will be no assignment in this generation."""
    answer_syncs(group, turn, lambda _: SyncGroupAnswer(error))


def answer_syncs(group: Group, turn: Turn, answer: Callable[[Member], SyncGroupAnswer]) -> None:
    """Answer the SyncGroups that wait; sessions begin anew, as their members could not send heartbeats."""
    for member in group.members.values():
        waiting = group.take_sync(member)
        if waiting is not None:
            turn.reply(waiting.token, answer(member))
            renew_session(group, member, turn)


def renew_session(group: Group, member: Member, turn: Turn) -> None:
    """The member gave a sign of life."""
    member.session_deadline_ms = turn.in_ms(member.session_timeout_ms)
    group.wake_at(member.session_deadline_ms)


def take_part(group: Group, member: Member, waiting: WaitingJoin, turn: Turn) -> None:
    """Take over what a JoinGroup says of its member, and let it wait; one that waited before is void."""
    request = waiting.request
    group.change_protocols(member, request.protocols)
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    void = group.take_join(member)
    if void is not None:
        turn.reply(void.token, void.request.refused(ErrorCode.rebalance_in_progress))
    group.park_join(member, waiting)
