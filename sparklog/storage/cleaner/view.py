"""A log as its cleaner sees it: a view that was taken under the log's lock, and access to the log.

A round of the cleaner runs for minutes without the lock. It reads closed segments, which change only by a
truncation or a removal. Neither waits for the cleaner nor notifies it: a truncation or a deletion of the log
raises the log's generation, and a round that finds another generation raises ``CleaningAborted``, with
nothing changed since its last swap. The round skips segments that retention removes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparklog.core.compaction import CompactionRules, LastOfProducer, SegmentExtent
from sparklog.core.producers.producer_state import BATCHES_KEPT
from sparklog.model.errors import SparklogError
from sparklog.storage.disk import Disk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.index import OFFSET_ENTRY_BYTES
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.swap import Swap

_NEVER_OVERDUE_MS = 2**62
"""With a maximum lag from here on, the age of segments does not matter."""


class CleaningAborted(SparklogError):  # noqa: N818 (no error: the log changed, and is cleaned another time)
    """The log was truncated or removed, or lost segments, while it was being cleaned."""


@dataclass(frozen=True, slots=True)
class LogView:
    """The closed segments, and the facts about the log that a round needs."""

    closed: tuple[Segment, ...]
    extents: tuple[SegmentExtent, ...]
    generation: int
    log_start_offset: int
    stable_end: int
    producers: Mapping[int, LastOfProducer]
    epoch_starts: frozenset[int]
    rules: CompactionRules
    index_interval_bytes: int
    disk: Disk


class LogAccess(Protocol):
    """A log whose methods take the log's lock."""

    def view(self) -> LogView | None:
        """None if the log is not to be cleaned now."""

    def remaining(self, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
        """Those of ``segments`` that the log still has; None if it was truncated or removed since."""

    def begin_swap(self, swap: Swap) -> bool:
        """See ``Log.begin_swap``; False if the log changed."""

    def finish_swap(self, swap: Swap) -> bool:
        """See ``Log.finish_swap``; False if the log changed."""

    def fail(self, error: OSError) -> None:
        """Report a failed sync: the directory is suspect."""


def rules_of(config: LogConfig) -> CompactionRules:
    return CompactionRules(
        min_dirty_ratio=config.min_cleanable_dirty_ratio,
        min_lag_ms=config.min_compaction_lag_ms,
        max_lag_ms=config.max_compaction_lag_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        index_entries_max=config.index_max_bytes // OFFSET_ENTRY_BYTES,
    )


def view_of(log: Log, high_watermark: int) -> LogView | None:
    """The view of a log, taken under its lock. None if the topic is not compacted, the log is corrupt, or
    the batches of some producer that must stay are unknown now.
    """
    if not log.config.compacts or log.corruption is not None or _forgets_committed(log, high_watermark):
        return None
    log.settle_aborted()
    closed = log.segments[:-1]
    unstable = log.producers.transactions.first_unstable(high_watermark)
    return LogView(
        closed=closed,
        extents=tuple(_extents(closed, log.config)),
        generation=log.generation,
        log_start_offset=log.log_start_offset,
        stable_end=high_watermark if unstable is None else min(high_watermark, unstable),
        producers={
            producer_id: LastOfProducer(state.epoch, frozenset(one.last_offset for one in state.batches))
            for producer_id, state in log.producers.producers.items()
        },
        epoch_starts=frozenset(entry.start_offset for entry in log.epochs.entries),
        rules=rules_of(log.config),
        index_interval_bytes=log.config.index_interval_bytes,
        disk=log.disk,
    )


def _forgets_committed(log: Log, high_watermark: int) -> bool:
    """Whether all remembered batches of some producer are uncommitted, and so may be truncated: an earlier
    batch, which is not remembered, would then be the producer's last one."""
    return any(
        len(state.batches) == BATCHES_KEPT and state.batches[0].first_offset >= high_watermark
        for state in log.producers.producers.values()
    )


def remaining(log: Log, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
    """``LogAccess.remaining``; call it under the log's lock."""
    if log.generation != generation:
        return None
    present = set(log.segments)
    return tuple(segment for segment in segments if segment in present)


def _extents(closed: Sequence[Segment], config: LogConfig) -> Sequence[SegmentExtent]:
    asks_age = config.max_compaction_lag_ms < _NEVER_OVERDUE_MS
    return [
        SegmentExtent(
            base_offset=segment.base_offset,
            end_offset=segment.end_offset,
            size_bytes=segment.size_bytes,
            index_entries=segment.index_entries_max(),
            newest_ms=segment.greatest_timestamp()[0],
            oldest_ms=segment.first_batch_timestamp() if asks_age else -1,
        )
        for segment in closed
    ]
