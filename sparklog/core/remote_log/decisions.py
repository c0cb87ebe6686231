"""The next segment to copy, the local segments to delete, and the start of the history.

The rules are KIP-405's. Local segments below the end of the remote log alone are deleted: they stay while the
store is away, whatever ``local.retention.*`` says. Records from the last stable offset on are not copied,
because they may still be aborted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.remote_log.reach import OffsetRange, Reach, RemoteLog, SealedSegment


@dataclass(frozen=True, slots=True)
class Limits:
    """A topic's ``retention.*`` or ``local.retention.*``; None: without a limit."""

    age_ms: int | None = None
    size_bytes: int | None = None


def next_copy(
    remote: Reach, sealed: Sequence[SealedSegment], *, log_start_offset: int, last_stable_offset: int
) -> OffsetRange | None:
    """The offsets to copy next; None if there are none.

    ``sealed`` are the local segments without the active one, in order. The copy begins where the remote log
    ends, and ends with a local segment. It may begin within that segment, because replicas seal at different
    offsets. Segments wholly below the log's start are not copied.
    """
    start, end = max(remote.start_offset, log_start_offset), remote.end_offset
    for segment in sealed:
        if segment.end_offset <= start or (end is not None and segment.end_offset <= end):
            continue
        if segment.end_offset > last_stable_offset:
            return None  # a later segment is unstable, too
        begin = segment.base_offset if end is None else max(end, segment.base_offset)
        return OffsetRange(begin, segment.end_offset)
    return None


def local_start_after_deletion(
    remote: Reach,
    sealed: Sequence[SealedSegment],
    limits: Limits,
    *,
    shared_end: int,
    active_bytes: int,
    now_ms: int,
) -> int | None:
    """The offset below which local segments may be deleted; None if none may.

    ``shared_end`` is the end of what the store has of this very log (``lineage``). Beyond it the store may
    have other records, which an unclean election has lost.

    The oldest segments are deleted first: those older than the limit, and those without which the log, with
    its active segment, is still at least as large as the limit. A segment that is not in the store stays.
    """
    end = remote.end_offset
    if end is None:
        return None
    copied = [segment for segment in sealed if segment.end_offset <= min(end, shared_end)]
    size = active_bytes + sum(segment.size_bytes for segment in sealed)
    expired = _expired(copied, limits, size, now_ms)
    return expired[-1].end_offset if expired else None


def start_after_retention(
    remote: RemoteLog, limits: Limits, *, log_start_offset: int, local_only_bytes: int, now_ms: int
) -> int:
    """The start of the history: the log's (DeleteRecords), or the end of the last expired segment.

    ``local_only_bytes`` is the size of segments that are not in the store; ``retention.bytes`` counts them.
    """
    start = max(remote.start_offset, log_start_offset)
    live = [segment for segment in remote.segments if segment.end_offset > start]
    size = local_only_bytes + sum(segment.size_bytes for segment in live)
    expired = _expired(live, limits, size, now_ms)
    return max(start, expired[-1].end_offset) if expired else start


def _expired(
    oldest_first: Sequence[SealedSegment], limits: Limits, size_bytes: int, now_ms: int
) -> Sequence[SealedSegment]:
    """The first segments of a log of ``size_bytes`` that a limit no longer allows."""
    for nth, segment in enumerate(oldest_first):
        is_old = limits.age_ms is not None and now_ms - segment.max_timestamp_ms > limits.age_ms
        size_bytes -= segment.size_bytes
        is_too_much = limits.size_bytes is not None and size_bytes >= limits.size_bytes
        if not (is_old or is_too_much):
            return oldest_first[:nth]
    return oldest_first
