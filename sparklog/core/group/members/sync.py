"""SyncGroup and Heartbeat: members get their assignment, and show that they live."""

from dataclasses import dataclass

from sparklog.core.coordinator.actions import InDoubt, Refused, Token, WriteOutcome, Written
from sparklog.core.group.group import Group
from sparklog.core.group.member import Member, WaitingSync
from sparklog.core.group.members.member_checks import generation_error as membership_error
from sparklog.core.group.members.rebalance import (
    answer_syncs,
    fail_syncs,
    maybe_prepare_rebalance,
    renew_session,
)
from sparklog.core.group.requests import Heartbeat, SyncGroup
from sparklog.core.group.responses import HeartbeatAnswer, SyncGroupAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.core.group.write_errors import generation_error
from sparklog.model.errors import ErrorCode


def sync(token: Token, request: SyncGroup, turn: Turn) -> None:
    """Answer a stable group's member; let the others wait until the leader's assignment is in the log."""
    group = turn.state.groups.get(request.group_id)
    error = _sync_error(group, request)
    if group is None or error is not ErrorCode.none:
        turn.reply(token, request.refused(error))
        return
    member = group.members[request.member_id]
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        group.sync_deadline_ms = None
    if group.state is GroupState.STABLE:
        turn.reply(token, _assignment_answer(group, member))
        renew_session(group, member, turn)
        return
    void = group.take_sync(member)
    if void is not None:
        turn.reply(void.token, void.request.refused(ErrorCode.rebalance_in_progress))
    member.waiting_sync = WaitingSync(token, request)
    if member.member_id == group.leader:
        _write_assignment(group, request, turn)


def _sync_error(group: Group | None, request: SyncGroup) -> ErrorCode:
    if group is None:
        return ErrorCode.unknown_member_id
    error = membership_error(group, request.generation_id, request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        return error
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.inconsistent_group_protocol
    if request.protocol not in (None, group.protocol):
        return ErrorCode.inconsistent_group_protocol
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _write_assignment(group: Group, request: SyncGroup, turn: Turn) -> None:
    """Write the generation. Members that the leader left out get nothing; strangers are ignored."""
    assignments = dict(request.assignments)
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    turn.write(group, (turn.group_record(group),), AfterAssignment(group), holds_key=True)


@dataclass(slots=True)
class AfterAssignment:
    """The leader's assignment is being written; no request reaches the group meanwhile."""

    group: Group

    def on_outcome(self, outcome: WriteOutcome, turn: Turn) -> None:
        """After ``InDoubt`` the members are to join again; they find the group stable if it was written."""
        group = self.group
        error = generation_error(outcome)
        match outcome:
            case Written():
                # the time stays that of the record, so that a coordinator that loads has the same
                group.enter(GroupState.STABLE, group.state_timestamp_ms)
                turn.state.counters.rebalances += 1
                turn.note(group, f"generation {group.generation_id} is stable")
                answer_syncs(group, turn, lambda member: _assignment_answer(group, member))
            case InDoubt():
                answer_syncs(group, turn, lambda _: SyncGroupAnswer(error))
            case Refused():
                fail_syncs(group, turn, error)
                maybe_prepare_rebalance(group, turn, f"the assignment was not written: {error.name}")

    def take_waiting(self) -> list[Waiting]:
        """None: the SyncGroups wait in their members."""
        return []


def _assignment_answer(group: Group, member: Member) -> SyncGroupAnswer:
    return SyncGroupAnswer(ErrorCode.none, group.protocol_type, group.protocol, member.assignment)


def heartbeat(token: Token, request: Heartbeat, turn: Turn) -> None:
    """A sign of life. While a rebalance is prepared the answer calls the member to join it."""
    group = turn.state.groups.get(request.group_id)
    if group is None:
        turn.reply(token, request.refused(ErrorCode.unknown_member_id))
        return
    error = membership_error(group, request.generation_id, request.member_id, request.group_instance_id)
    if error is ErrorCode.none:
        renew_session(group, group.members[request.member_id], turn)
        if group.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.rebalance_in_progress
    turn.reply(token, HeartbeatAnswer(error))
