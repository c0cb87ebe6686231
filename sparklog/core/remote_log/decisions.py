"""Which segment is copied next, which local ones may go, and where the history begins.

The rules are KIP-405's. Local segments are deleted only below the end of the tier, so while a store is away
they stay, whatever ``local.retention.*`` says. Only what is below the last stable offset is copied, because
what is above may still be aborted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.remote_log.tier import OffsetRange, Reach, SealedSegment, Tier


@dataclass(frozen=True, slots=True)
class Limits:
    """A topic's ``retention.*`` or ``local.retention.*``; None: without a limit."""

    age_ms: int | None = None
    size_bytes: int | None = None


def next_copy(
    tier: Reach, sealed: Sequence[SealedSegment], *, log_start_offset: int, last_stable_offset: int
) -> OffsetRange | None:
    """What to copy next; None if there is nothing.

    ``sealed`` are the local segments without the active one, in order. Replicas seal at different offsets, so
    the copy begins where the tier ends, which may be within a segment, and ends with that segment. Segments
    that are wholly below the log's start are not copied.
    """
    start, end = max(tier.start_offset, log_start_offset), tier.end_offset
    for segment in sealed:
        if segment.end_offset <= start or (end is not None and segment.end_offset <= end):
            continue
        if segment.end_offset > last_stable_offset:
            return None
        begin = segment.base_offset if end is None else max(end, segment.base_offset)
        return OffsetRange(begin, segment.end_offset)
    return None


def local_start_after_deletion(
    tier: Reach,
    sealed: Sequence[SealedSegment],
    limits: Limits,
    *,
    shared_end: int,
    active_bytes: int,
    now_ms: int,
) -> int | None:
    """The offset below which local segments may be deleted; None if none may.

    ``shared_end``: the end of what the tier has of this very log (``lineage``); behind it there may be other
    records, that an unclean election has lost.

    Segments go from the oldest on: while they are older than the limit, or while what is left, the active
    segment included, would still be at least as large as the limit. None goes that is not in the tier.
    """
    end = tier.end_offset
    if end is None:
        return None
    copied = [segment for segment in sealed if segment.end_offset <= min(end, shared_end)]
    size = active_bytes + sum(segment.size_bytes for segment in sealed)
    expired = _expired(copied, limits, size, now_ms)
    return expired[-1].end_offset if expired else None


def start_after_retention(
    tier: Tier, limits: Limits, *, log_start_offset: int, local_only_bytes: int, now_ms: int
) -> int:
    """Where the history begins: at the log's start (DeleteRecords), or behind the last expired segment.

    ``local_only_bytes`` is the size of what is not in the tier; it counts for ``retention.bytes``.
    """
    start = max(tier.start_offset, log_start_offset)
    live = [segment for segment in tier.segments if segment.end_offset > start]
    size = local_only_bytes + sum(segment.size_bytes for segment in live)
    expired = _expired(live, limits, size, now_ms)
    return max(start, expired[-1].end_offset) if expired else start


def _expired(
    oldest_first: Sequence[SealedSegment], limits: Limits, size_bytes: int, now_ms: int
) -> Sequence[SealedSegment]:
    """The first segments that a limit no longer allows, of a log of ``size_bytes``."""
    for nth, segment in enumerate(oldest_first):
        is_old = limits.age_ms is not None and now_ms - segment.max_timestamp_ms > limits.age_ms
        size_bytes -= segment.size_bytes
        is_too_much = limits.size_bytes is not None and size_bytes >= limits.size_bytes
        if not (is_old or is_too_much):
            return oldest_first[:nth]
    return oldest_first
