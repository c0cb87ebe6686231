"""OpenWrite: attempts become members of a write, and members report their state.

    Idle(B)          v > B: the write of v is opened       v <= B: already committed
                     by a run that was not aborted
    Open v           v: one member more, of whatever run   later than v: v is aborted first
                                                           earlier than v: older version
    Prepared         ask again

An attempt that names another producer id than its living member's is over. It may have been silent for so
long that its write has ended, and another write is open under the same version.
"""

from dataclasses import replace

from sparklog.core.transaction_coordinator.transitions import merged
from sparklog.core.write_coordinator.app import App, Change
from sparklog.core.write_coordinator.ending import aborted_whole, is_run_aborted
from sparklog.core.write_coordinator.records import NO_VERSION, Head, Member
from sparklog.core.write_coordinator.requests import OpenWrite
from sparklog.core.write_coordinator.responses import NO_PRODUCER_ID, OpenedWrite
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import LeaderEpoch
from sparklog.model.write_ids import MEMBER_NUMBERS, MEMBERS_MAX, WRITE_NUMBER_MAX, producer_id_of
from sparklog.model.write_outcomes import MemberState, OpenOutcome

_BEING_ENDED = OpenedWrite(outcome=OpenOutcome.BEING_ENDED)
_MEMBER_ENDED = OpenedWrite(outcome=OpenOutcome.MEMBER_ENDED)


def opened(
    app: App | None, request: OpenWrite, wall_ms: int, leader_epoch: LeaderEpoch
) -> Change | OpenedWrite:
    """The change for the request, or the answer if nothing changes.

    ``leader_epoch`` is the coordinator's.
    """
    if app is None:
        return _first_member(request, None, wall_ms, leader_epoch)
    head = app.head
    if app.is_ending:
        return _BEING_ENDED
    if request.version <= head.committed_version:
        return OpenedWrite(outcome=OpenOutcome.ALREADY_COMMITTED, version=head.committed_version)
    if head.state is AppState.IDLE:
        return _first_member(request, head, wall_ms, leader_epoch)
    if request.version < head.version:
        return OpenedWrite(outcome=OpenOutcome.OLDER_VERSION, version=head.version)
    if request.version > head.version:
        if not _may_join(request):
            return _MEMBER_ENDED
        return aborted_whole(app, wall_ms, _BEING_ENDED, "replaced")
    number = app.numbers.get((request.run, request.attempt))
    return _next_member(app, request) if number is None else _known_member(app, number, request)


def _first_member(
    request: OpenWrite, idle: Head | None, wall_ms: int, leader_epoch: LeaderEpoch
) -> Change | OpenedWrite:
    """The opening of a write. ``idle`` is the app's head; None for an unknown app."""
    if not _may_join(request) or (idle and is_run_aborted(idle, request.version, request.run)):
        return _MEMBER_ENDED
    if request.fresh_write_number is None:
        return OpenedWrite(outcome=OpenOutcome.NEEDS_WRITE_NUMBER)
    if not 0 <= request.fresh_write_number <= WRITE_NUMBER_MAX:
        return request.refused(ErrorCode.unknown_server_error)
    head = Head(
        state=AppState.OPEN,
        version=request.version,
        write_number=request.fresh_write_number,
        committed_version=idle.committed_version if idle else NO_VERSION,
        timeout_ms=request.timeout_ms,
        is_plain=request.is_plain,
        start_ms=wall_ms,
        last_update_ms=wall_ms,
        aborted_runs=idle.aborted_runs if idle and idle.version == request.version else (),
        opened_in=leader_epoch,
        owner=(idle.owner if idle else "") or request.claim.owner,
    )
    return _joined(0, request, head)


def _next_member(app: App, request: OpenWrite) -> Change | OpenedWrite:
    if not _may_join(request) or is_run_aborted(app.head, request.version, request.run):
        return _MEMBER_ENDED
    if len(app.members) >= MEMBERS_MAX or app.next_number >= MEMBER_NUMBERS:
        return OpenedWrite(outcome=OpenOutcome.TOO_MANY_MEMBERS)
    return _joined(app.next_number, request, app.head)


def _may_join(request: OpenWrite) -> bool:
    """Whether the attempt asks to become a member; one with a producer id was a member before."""
    return request.producer_id == NO_PRODUCER_ID and request.state is MemberState.WORKING


def _joined(number: int, request: OpenWrite, head: Head) -> Change:
    member = Member(MemberState.WORKING, request.run, request.attempt, merged((), request.topics))
    return Change(
        head=head if number == 0 else None,
        members={number: member},
        answer=OpenedWrite(producer_id=producer_id_of(head.write_number, number)),
        counts_as="opened" if number == 0 else "joined",
    )


def _known_member(app: App, number: int, request: OpenWrite) -> Change | OpenedWrite:
    member, producer_id = app.members[number], app.producer_id(number)
    if app.decision(number) is not None or request.producer_id not in (NO_PRODUCER_ID, producer_id):
        return _MEMBER_ENDED
    topics = merged(member.topics, request.topics)
    if member.state is MemberState.FINISHED and topics != member.topics:
        return request.refused(ErrorCode.invalid_request)
    # The greater state counts: a late sign of life does not make a finished member work again.
    moved = replace(member, topics=topics, state=max(member.state, request.state))
    answer = OpenedWrite(producer_id=producer_id)
    if moved == member:
        return answer
    return Change(members={number: moved}, answer=answer)
