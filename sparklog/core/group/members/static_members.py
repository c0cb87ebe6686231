"""Static members that come back with their instance id, and the twins that they fence (KIP-345, KIP-814).

A client whose instance id is known, but which brings no member id, is a process that was started again, or a
twin with the same configuration. It takes over the member, and the old member id is fenced from then on. In a
stable group this causes no rebalance, unless the group would choose another protocol: the new member id is
written into the generation, and counts once it is in the log.
"""

from dataclasses import dataclass, replace

from sparklog.core.coordinator.actions import StateRecord, WriteOutcome, Written
from sparklog.core.group.group import Group
from sparklog.core.group.member import Member, WaitingJoin
from sparklog.core.group.members.rebalance import (
    generation_answer,
    maybe_prepare_rebalance,
    renew_session,
    take_part,
)
from sparklog.core.group.records import GroupKey, GroupValue
from sparklog.core.group.requests import UNKNOWN_MEMBER_ID, JoinGroup
from sparklog.core.group.responses import JoinGroupAnswer, SyncGroupAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.core.group.write_errors import generation_error
from sparklog.model.errors import ErrorCode


def join_as_known_instance(
    group: Group, group_instance_id: str, member_id: str, waiting: WaitingJoin, turn: Turn
) -> None:
    """Let the client take over the member with its instance id, as ``member_id``."""
    member = group.members[group.static_members[group_instance_id]]
    if group.state is GroupState.STABLE and _keeps_protocol(group, member, waiting.request):
        turn.note(group, f"{member_id} takes over from {member.member_id} without a rebalance")
        value = _value_after(group, member, member_id, waiting.request)
        after = AfterTakeover(group, member, member_id, waiting.request, Waiting(*waiting))
        turn.write(group, (StateRecord(GroupKey(group.group_id), value),), after, holds_key=True)
        return
    _fence(group, member, turn)
    group.rename(member, member_id)
    take_part(group, member, waiting, turn)
    renew_session(group, member, turn)
    # a leader may have been sent the old member id already, and would assign nothing to the new one
    maybe_prepare_rebalance(group, turn, f"{member_id} takes over in {group.state}")


def _keeps_protocol(group: Group, member: Member, request: JoinGroup) -> bool:
    """Whether the group would choose the same protocol if the member had the protocols of the request."""
    before = member.protocols
    group.change_protocols(member, request.protocols)
    chosen = group.select_protocol()
    group.change_protocols(member, before)
    return chosen == group.protocol


def _value_after(group: Group, member: Member, member_id: str, request: JoinGroup) -> GroupValue:
    """The record of the generation with the new member id in the member's place."""
    value = group.as_value()
    assert group.protocol is not None, group.group_id
    changed = replace(
        member.as_value(group.protocol),
        member_id=member_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        subscription=dict(request.protocols)[group.protocol],
    )
    return replace(
        value,
        leader=member_id if value.leader == member.member_id else value.leader,
        members=tuple(changed if one.member_id == member.member_id else one for one in value.members),
    )


def _fence(group: Group, member: Member, turn: Turn) -> None:
    """Answer what the older process waits for."""
    join = group.take_join(member)
    if join is not None:
        turn.reply(join.token, JoinGroupAnswer(ErrorCode.fenced_instance_id, member.member_id))
    sync = group.take_sync(member)
    if sync is not None:
        turn.reply(sync.token, SyncGroupAnswer(ErrorCode.fenced_instance_id))


@dataclass(slots=True)
class AfterTakeover:
    """A stable group's generation with a new member id is being written."""

    group: Group
    member: Member
    member_id: str
    request: JoinGroup
    waiting: Waiting | None

    def on_outcome(self, outcome: WriteOutcome, turn: Turn) -> None:
        leader_before = self.group.leader
        if isinstance(outcome, Written):
            self._take_over(turn)
        for token, _ in self.take_waiting():
            turn.reply(token, self._answer(leader_before, outcome))

    def _take_over(self, turn: Turn) -> None:
        group, member = self.group, self.member
        group.rename(member, self.member_id)
        group.change_protocols(member, self.request.protocols)
        member.rebalance_timeout_ms = self.request.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        renew_session(group, member, turn)
        turn.state.find_topics(group)

    def _answer(self, leader_before: str | None, outcome: WriteOutcome) -> JoinGroupAnswer:
        """Before version 9 a leader that came back is answered with the leader's old member id.

        It then takes itself for a follower, and makes no assignment that a stable group would ignore. From
        version 9 on the answer says to skip the assignment, and it goes on to watch the topics' metadata.
        """
        error = generation_error(outcome)
        if error is ErrorCode.none and self.request.supports_skip_assignment:
            is_leader = self.group.leader == self.member_id
            return generation_answer(self.group, self.member, skip_assignment=is_leader)
        return JoinGroupAnswer(
            error,
            self.member_id if error is ErrorCode.none else UNKNOWN_MEMBER_ID,
            generation_id=self.group.generation_id,
            protocol_type=self.group.protocol_type,
            protocol=self.group.protocol,
            leader=leader_before or "",
        )

    def take_waiting(self) -> list[Waiting]:
        waiting, self.waiting = self.waiting, None
        return [] if waiting is None else [waiting]
