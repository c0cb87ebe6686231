"""The next step of a leader for its partition in a remote store.

A step writes its objects first, then the head, in one compare-and-set. A step that fails, or whose leader was
replaced, leaves garbage: objects that no head names. A step deletes objects only after the head that named
them is replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.remote_log.decisions import next_copy
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.reach import LogReach, OffsetRange, SealedSegment


@dataclass(frozen=True, slots=True)
class ForgetBelow:
    """Raise the start of the history; delete the segments wholly below it."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class CutBack:
    """End the history at ``end_offset``: an unclean election lost the records after it.

    ``resumes_at`` is the leader's first offset after the cut. If it is greater than ``end_offset``, no
    replica has the offsets between: a hole. An earlier election made the others cut them, after this log had
    deleted them from its disk.
    """

    end_offset: int
    resumes_at: int


@dataclass(frozen=True, slots=True)
class BeginOnDisk:
    """Raise the log start to the first offset on disk: the store holds nothing earlier."""

    local_start_offset: int


@dataclass(frozen=True, slots=True)
class WritePage:
    """Put the tail into a page, because the head takes no more segments."""


@dataclass(frozen=True, slots=True)
class CopySegment:
    """Copy these offsets as a segment, and add it to the tail."""

    offsets: OffsetRange


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing can be copied: the log on this disk begins after the end of the history, and no election
    explains the gap.
    """

    end_offset: int
    local_start_offset: int


@dataclass(frozen=True, slots=True)
class Strange:
    """Nothing can be done: the log and the history differ, and the log does not know the leader epochs from
    before its disk, which would show how much of the history is its own.
    """

    local_start_offset: int


@dataclass(frozen=True, slots=True)
class SharedHistory:
    """The part of the history that a log shares, by its ``lineage``.

    ``end_offset`` is the end of that part; None if the two have no leader epoch in common. ``may_be_cut``:
    whether the log may cut the rest.
    """

    end_offset: int | None
    may_be_cut: bool = False


Step = ForgetBelow | CutBack | BeginOnDisk | Strange | WritePage | CopySegment | Gap


def next_step(
    head: Head,
    sealed: Sequence[SealedSegment],
    log: LogReach,
    *,
    shared: SharedHistory,
    copies: bool = True,
) -> Step | None:
    """The next step; None if there is nothing to do. ``copies``: whether segments are to be copied at all.

    ``sealed`` are the local segments without the active one, in order.
    """
    end = head.end_offset
    if end is None and head.is_cut and log.start_offset < log.local_start_offset:
        # The cut left nothing, so the offsets from before this disk are nowhere.
        return BeginOnDisk(log.local_start_offset)
    if end is not None and log.start_offset > head.start_offset:
        return ForgetBelow(log.start_offset)
    if end is not None and (shared.end_offset is None or shared.end_offset < end):
        step = _cut(head, shared.end_offset, log)
        # A log that may not cut the history copies nothing until it may: a copy would follow another log's.
        return step if shared.may_be_cut or isinstance(step, Strange) else None
    if not copies:
        return None
    offsets = next_copy(
        head, sealed, log_start_offset=log.start_offset, last_stable_offset=log.last_stable_offset
    )
    if offsets is None:
        return None
    if end is not None and offsets.base_offset > end and not head.is_cut:  # only a cut leaves a hole
        return Gap(end, offsets.base_offset)
    return WritePage() if head.needs_page else CopySegment(offsets)


def _cut(head: Head, shared_end: int | None, log: LogReach) -> CutBack | Strange:
    """The step that ends the history where the shared part ends.

    That may be below the start of the history: then nothing of it is left, and the history begins there anew.
    Else the log's records up to the former start would count as deleted.
    """
    start, local_start = max(log.start_offset, head.start_offset), log.local_start_offset
    end = log.start_offset if shared_end is None else max(log.start_offset, shared_end)
    if end >= local_start:
        return CutBack(end, end)
    # A log that lacks its first epochs may share more than those that it knows show.
    if log.epochs_from is None or log.epochs_from > start:
        return Strange(local_start)
    return CutBack(end, local_start)
