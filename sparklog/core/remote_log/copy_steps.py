"""What a leader does next for its partition in a remote store: one step at a time.

Each step writes its objects first and then the head, in one compare-and-set. A step that fails, or whose
leader was replaced, leaves objects that no head leads to; they are garbage. Objects are deleted after the
head no longer leads to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.remote_log.decisions import next_copy
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.tier import LogReach, OffsetRange, SealedSegment


@dataclass(frozen=True, slots=True)
class ForgetBelow:
    """Raise the start of the history; delete what is wholly below it."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class CutBack:
    """End the history at ``end_offset``: an unclean election lost the records after it.

    ``goes_on_at`` is the leader's first offset after the cut. If it exceeds ``end_offset``, an earlier
    election made others cut what this log had given up on its disk, and no replica has the offsets between.
    """

    end_offset: int
    goes_on_at: int


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
    """Nothing can be copied: the log on this disk begins behind the end of the history in the store, and no
    election explains it.
    """

    end_offset: int
    local_start_offset: int


@dataclass(frozen=True, slots=True)
class Strange:
    """Nothing can be done: the log and the history differ, and the log does not know its leader epochs from
    before its disk, so nothing shows how much of the history is its own.
    """

    local_start_offset: int


@dataclass(frozen=True, slots=True)
class SharedHistory:
    """What a log shares with the history, as ``lineage`` says. ``end_offset`` is the end of it; None if they
    have no leader epoch in common. ``may_be_cut``: whether the log may cut what it does not share.
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

    ``sealed`` are the local segments without the active one, in order. A log that does not share all of the
    history, and may not cut it, copies nothing until it may.
    """
    end = head.end_offset
    if end is None and head.is_cut and log.start_offset < log.local_start_offset:
        return BeginOnDisk(log.local_start_offset)
    if end is not None and log.start_offset > head.start_offset:
        return ForgetBelow(log.start_offset)
    if end is not None and (shared.end_offset is None or shared.end_offset < end):
        step = _cut(head, shared.end_offset, log)
        return step if shared.may_be_cut or isinstance(step, Strange) else None
    if not copies:
        return None
    offsets = next_copy(
        head, sealed, log_start_offset=log.start_offset, last_stable_offset=log.last_stable_offset
    )
    if offsets is None:
        return None
    if end is not None and offsets.base_offset > end and not head.is_cut:
        return Gap(end, offsets.base_offset)
    return WritePage() if head.needs_page else CopySegment(offsets)


def _cut(head: Head, shared_end: int | None, log: LogReach) -> CutBack | Strange:
    """A log that knows its epochs from its start on shows what is shared, if anything is."""
    start, local_start = max(log.start_offset, head.start_offset), log.local_start_offset
    end = start if shared_end is None else max(start, shared_end)
    if end >= local_start:
        return CutBack(end, end)
    if log.epochs_from is None or log.epochs_from > start:
        return Strange(local_start)
    return CutBack(end, local_start)
