"""The end of a write: by its driver, by silence, or after its markers.

    Open v           commit: prepared, with its winners    abort of a run: its members are aborted, and with
                                                           them the write if no other member is living
    Prepared v       the same commit waits                 anything else: ask again, unless it is committed
    Idle(B)          v <= B: already committed             v > B: not open; a commit of nothing counts as v,
                                                           an abort is remembered

A version of which nothing was written is committed like any other, so that the next attempt to write it is
answered so.

A job may fail before its last task begins, and then no driver ends that task's write. So an aborted run stays
aborted until a later version is opened: none of its attempts becomes a member.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sparklog.core.write_coordinator.app import App, Change
from sparklog.core.write_coordinator.records import NO_VERSION, NO_WRITE_NUMBER, Head
from sparklog.core.write_coordinator.requests import EndWrite
from sparklog.core.write_coordinator.responses import EndedWrite, OpenedWrite
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.write_ids import write_and_member
from sparklog.model.write_outcomes import EndOutcome, MemberState

RUNS_MAX: Final = 100
"""Most aborted runs of a version that are remembered, the latest ones. An earlier run has no task left."""

_ABORTED = EndedWrite(outcome=EndOutcome.ABORTED)
_BEING_ENDED = EndedWrite(outcome=EndOutcome.BEING_ENDED)


class WaitsForMarkers:
    """The answer to a repeated commit, which is decided already."""


def ended(app: App | None, request: EndWrite, wall_ms: int) -> Change | EndedWrite | WaitsForMarkers:
    """The change for the driver's request, or the answer if nothing changes."""
    if app is None:
        return _not_open(request, None, wall_ms)
    head = app.head
    if request.version <= head.committed_version:  # a later write does not change that
        return EndedWrite(outcome=EndOutcome.ALREADY_COMMITTED, version=head.committed_version)
    if app.is_ending:
        return WaitsForMarkers() if _is_decided(app, request) else _BEING_ENDED
    if head.state is AppState.IDLE:
        return _not_open(request, head, wall_ms)
    if request.version < head.version:
        return EndedWrite(outcome=EndOutcome.OLDER_VERSION, version=head.version)
    if request.version > head.version:
        if request.is_commit and not request.winners:  # an empty version replaces the open one
            return aborted_whole(app, wall_ms, _BEING_ENDED, "replaced")
        return EndedWrite(outcome=EndOutcome.NOT_OPEN) if request.is_commit else _ABORTED
    return _committed(app, request, wall_ms) if request.is_commit else _run_aborted(app, request, wall_ms)


def _not_open(request: EndWrite, head: Head | None, wall_ms: int) -> Change | EndedWrite:
    """The end of a version that is not open. ``head`` is the idle app's; None for an unknown app."""
    if not request.is_commit:
        return _run_remembered(request, head, wall_ms)
    if request.winners:
        return EndedWrite(outcome=EndOutcome.NOT_OPEN)
    owner = "" if head is None else head.owner
    head = _idle(request, wall_ms, committed_version=request.version)
    return Change(head=replace(head, owner=owner or head.owner), answer=EndedWrite(), counts_as="committed")


def _run_remembered(request: EndWrite, head: Head | None, wall_ms: int) -> Change | EndedWrite:
    """Remember an aborted run of an idle app, so that no late attempt of it becomes a member."""
    if head is None:
        head = _idle(request, wall_ms, committed_version=NO_VERSION)
    elif request.version < head.version or is_run_aborted(head, request.version, request.run):
        return _ABORTED
    elif request.version > head.version:
        head = replace(head, version=request.version, aborted_runs=())
    head = replace(head, aborted_runs=_with_run(head, request.run), last_update_ms=wall_ms)
    return Change(head=head, answer=_ABORTED, counts_as="run_aborted")


def _idle(request: EndWrite, wall_ms: int, *, committed_version: int) -> Head:
    return Head(
        state=AppState.IDLE,
        version=request.version,
        write_number=NO_WRITE_NUMBER,
        committed_version=committed_version,
        timeout_ms=0,
        is_plain=request.is_plain,
        start_ms=wall_ms,
        last_update_ms=wall_ms,
        owner=request.claim.owner,
    )


def is_run_aborted(head: Head, version: int, run: str) -> bool:
    """Whether the run is aborted for this version, so that none of its attempts becomes a member."""
    return version == head.version and run in head.aborted_runs


def _with_run(head: Head, run: str) -> tuple[str, ...]:
    return (*(known for known in head.aborted_runs if known != run), run)[-RUNS_MAX:]


def _committed(app: App, request: EndWrite, wall_ms: int) -> Change | EndedWrite:
    if app.lost_topics:
        lost = EndedWrite(outcome=EndOutcome.LOST_TOPIC, topic=min(app.lost_topics).name)
        return aborted_whole(app, wall_ms, lost, "aborted")
    winners = set[int]()
    for producer_id in request.winners:
        write_number, number = write_and_member(producer_id)
        member = app.members.get(number) if write_number == app.head.write_number else None
        if member is None or member.state is not MemberState.FINISHED or app.decision(number) is not None:
            return EndedWrite(outcome=EndOutcome.LOST_MEMBER, producer_id=producer_id)
        winners.add(number)
    head = replace(
        app.head, state=AppState.PREPARED_COMMIT, winners=frozenset(winners), last_update_ms=wall_ms
    )
    return Change(head=head, counts_as="prepared")


def _is_decided(app: App, request: EndWrite) -> bool:
    """Whether the prepared commit is this one."""
    return (
        request.is_commit
        and app.head.state is AppState.PREPARED_COMMIT
        and app.head.version == request.version
        and {app.producer_id(number) for number in app.head.winners} == set(request.winners)
    )


def _run_aborted(app: App, request: EndWrite, wall_ms: int) -> Change | EndedWrite:
    """Abort the members of a run, and the write if they are its only living ones."""
    runs = _with_run(app.head, request.run)
    if all(app.members[number].run == request.run for number in app.living()):
        change = aborted_whole(app, wall_ms, _ABORTED, "aborted")
        assert change.head is not None
        return replace(change, head=replace(change.head, aborted_runs=runs))
    if request.run in app.head.aborted_runs:
        return _ABORTED
    return Change(
        head=replace(app.head, aborted_runs=runs, last_update_ms=wall_ms),
        answer=_ABORTED,
        counts_as="run_aborted",
    )


def aborted_whole(app: App, wall_ms: int, answer: OpenedWrite | EndedWrite | None, counts_as: str) -> Change:
    """The abort of the whole open write."""
    head = replace(app.head, state=AppState.PREPARED_ABORT, last_update_ms=wall_ms)
    return Change(head=head, answer=answer, counts_as=counts_as)


def members_aborted(app: App, numbers: Iterable[int]) -> Change:
    """The abort of members that were silent for too long."""
    members = {number: replace(app.members[number], state=MemberState.ABORTED) for number in numbers}
    return Change(members=members, counts_as="silent")


def completed(app: App, wall_ms: int) -> Change:
    """The end of a prepared write, once all its markers are written."""
    head, is_commit = app.head, app.head.state is AppState.PREPARED_COMMIT
    return Change(
        head=replace(
            head,
            state=AppState.IDLE,
            committed_version=head.version if is_commit else head.committed_version,
            winners=frozenset(),
            aborted_runs=() if is_commit else head.aborted_runs,
            last_update_ms=wall_ms,
        ),
        counts_as="committed" if is_commit else "completed_abort",
    )
