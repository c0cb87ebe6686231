"""What a leader does next for its partition in a remote store: one step at a time.

Each step writes its objects first and then the head, in one compare-and-set. A step that fails, or whose
leader was replaced, leaves objects that no head leads to; they are garbage. Objects are deleted after the
head no longer leads to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.tiering.decisions import next_copy
from sparklog.core.tiering.head import Head
from sparklog.core.tiering.tier import LogReach, OffsetRange, SealedSegment


@dataclass(frozen=True, slots=True)
class ForgetBelow:
    """Raise the start of the history; delete what is wholly below it."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class CutBack:
    """End the history here: an unclean election has lost what it has behind."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class WritePage:
    """Put the tail into a page, because the head takes no more segments."""


@dataclass(frozen=True, slots=True)
class CopySegment:
    """Copy these offsets as a segment, and add it to the tail."""

    offsets: OffsetRange


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing can be copied: the log on this disk begins behind the end of the history in the store."""

    end_offset: int
    local_start_offset: int


@dataclass(frozen=True, slots=True)
class Strange:
    """Nothing can be done: the log shares the history up to an offset that is not on this disk, or nowhere.

    ``shared_end`` is None if they have no leader epoch in common.
    """

    shared_end: int | None
    local_start_offset: int


Step = ForgetBelow | CutBack | Strange | WritePage | CopySegment | Gap


def next_step(
    head: Head,
    sealed: Sequence[SealedSegment],
    log: LogReach,
    *,
    shared_end: int | None,
    copies: bool = True,
) -> Step | None:
    """The next step; None if there is nothing to do. ``copies``: whether segments are to be copied at all.

    ``sealed`` are the local segments without the active one, in order. ``shared_end``: the end of what the
    log shares with the history, as ``lineage`` says.
    """
    end = head.end_offset
    if end is not None and log.start_offset > head.start_offset:
        return ForgetBelow(log.start_offset)
    if end is not None and (shared_end is None or shared_end < end):
        return _cut(shared_end, log)
    if not copies:
        return None
    offsets = next_copy(
        head, sealed, log_start_offset=log.start_offset, last_stable_offset=log.last_stable_offset
    )
    if offsets is None:
        return None
    if end is not None and offsets.base_offset > end:
        return Gap(end, offsets.base_offset)
    return WritePage() if head.needs_page else CopySegment(offsets)


def _cut(shared_end: int | None, log: LogReach) -> CutBack | Strange:
    """A log that is on its disk as a whole knows all its epochs: with none in common, nothing is shared.
    Any other has its front from the history, so what they share must reach that far.
    """
    if shared_end is None and log.local_start_offset == log.start_offset:
        return CutBack(log.start_offset)
    if shared_end is None or shared_end < log.local_start_offset:
        return Strange(shared_end, log.local_start_offset)
    return CutBack(shared_end)
