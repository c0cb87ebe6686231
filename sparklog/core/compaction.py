"""What compaction decides: which log next, how far, which batches survive. Kafka's rules, pure.

A log of a topic with ``cleanup.policy=compact`` keeps at least the last record of each key. Its cleaner works
in rounds. A round covers the *dirty* part, from where the last round ended up to the first offset that must
not be touched, and has two passes: it learns the latest offset of each key in the dirty part, then it copies
all segments from the log's start on without the records that a later one of the same key replaces.

    log start          first dirty offset            end of the round        high watermark     log end
    |-- clean, copied again --|-- dirty: keys are learnt --|-- not yet cleanable --|-- uncommitted --|

Never cleaned: the active segment, what lies at or above the high watermark, what belongs to a transaction
whose end is not known yet, and segments with a record younger than ``min.compaction.lag.ms``.

What is left of a deletion goes later, by a *delete horizon* (KIP-534): the first round that could remove a
tombstone, or the marker of a transaction without data, writes into its batch when that may happen, now +
``delete.retention.ms``; the first round after that time removes it. So a reader that starts at the beginning
and takes no longer than that sees every deletion.

A batch without records stays as an empty envelope where something hangs on it: the batches of each producer
that the log remembers (their sequences), the first batch of each leader epoch (where the one before ended:
without it a restart, or a follower, would tell replicas a later end, and they would keep what was never
committed; and without the oldest, replicas that still end there would have to begin anew), and the last batch
of each cleaned segment (where the segment ends: without it a restart, or a follower, could find a log that is
shorter than it was, KAFKA-17076).
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from sparklog.model.ids import TopicPartition

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""What an index entry can say of an offset within its segment."""


@dataclass(frozen=True, slots=True)
class SegmentExtent:
    """A segment as the policy sees it. Timestamps are -1 where there are none."""

    base_offset: int
    end_offset: int
    size_bytes: int
    index_entries: int = 0
    newest_ms: int = -1
    oldest_ms: int = -1
    """Timestamp of its first batch."""


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """The topic's settings."""

    min_dirty_ratio: float = 0.5
    min_lag_ms: int = 0
    max_lag_ms: int = 2**63 - 1
    delete_retention_ms: int = 86_400_000
    segment_bytes: int = 1_073_741_824
    index_entries_max: int = 1_310_720


@dataclass(frozen=True, slots=True)
class DirtyRange:
    """What a round would cover: ``[first_dirty, end)``, and how much of the closed segments that is."""

    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int = 0
    """By how much its oldest record exceeds ``max.compaction.lag.ms``."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, rules: CompactionRules) -> bool:
        if not self.dirty_bytes or self.end <= self.first_dirty:
            return False
        return self.overdue_ms > 0 or self.ratio > rules.min_dirty_ratio


def dirty_range(
    closed: Sequence[SegmentExtent],
    *,
    log_start_offset: int,
    checkpoint: int | None,
    stable_end: int,
    rules: CompactionRules,
    now_ms: int,
) -> DirtyRange:
    """What a round over the ``closed`` segments, all but the active one, would cover.

    ``checkpoint`` is where the last round ended; one outside the log says nothing, and all is dirty.
    ``stable_end`` is the first offset that may still be taken back: high watermark, open transactions.
    """
    log_end = closed[-1].end_offset if closed else log_start_offset
    first_dirty = log_start_offset
    if checkpoint is not None and log_start_offset <= checkpoint <= log_end:
        first_dirty = checkpoint
    end = max(first_dirty, _first_uncleanable(closed, first_dirty, min(log_end, stable_end), rules, now_ms))
    dirty = [segment for segment in closed if segment.end_offset > first_dirty and segment.base_offset < end]
    return DirtyRange(
        first_dirty,
        end,
        sum(segment.size_bytes for segment in closed if segment.end_offset <= first_dirty),
        sum(segment.size_bytes for segment in dirty),
        _overdue_ms(dirty, rules, now_ms),
    )


def _first_uncleanable(
    closed: Sequence[SegmentExtent], first_dirty: int, end: int, rules: CompactionRules, now_ms: int
) -> int:
    if rules.min_lag_ms > 0:
        for segment in closed:
            if segment.end_offset > first_dirty and segment.newest_ms > now_ms - rules.min_lag_ms:
                return min(end, segment.base_offset)
    return end


def _overdue_ms(dirty: Iterable[SegmentExtent], rules: CompactionRules, now_ms: int) -> int:
    oldest_ms = min((segment.oldest_ms for segment in dirty if segment.oldest_ms > 0), default=None)
    return 0 if oldest_ms is None else max(0, now_ms - rules.max_lag_ms - oldest_ms)


def filthiest(
    candidates: Mapping[TopicPartition, tuple[DirtyRange, CompactionRules]],
) -> TopicPartition | None:
    """The log to clean next: the one with the greatest share of dirty bytes among those that are due."""
    due = [
        (found.ratio, topic_partition)
        for topic_partition, (found, rules) in candidates.items()
        if found.is_due(rules)
    ]
    return max(due)[1] if due else None


def grouped(segments: Sequence[SegmentExtent], rules: CompactionRules) -> list[list[int]]:
    """Neighbours that may become one segment, as indexes: what they hold together must fit into one."""
    groups: list[list[int]] = []
    size_bytes = entries = 0
    for index, segment in enumerate(segments):
        size_bytes += segment.size_bytes
        entries += segment.index_entries
        fits = (
            groups
            and size_bytes <= rules.segment_bytes
            and entries <= rules.index_entries_max
            and segment.end_offset - 1 - segments[groups[-1][0]].base_offset <= RELATIVE_OFFSET_MAX
        )
        if fits:
            groups[-1].append(index)
        else:
            groups.append([index])
            size_bytes, entries = segment.size_bytes, segment.index_entries
    return groups


# ---- transactions ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TransactionSurvey:
    """Which transactions were aborted, which markers have outlived their data, which ends are unknown.

    Fed with the envelopes of transactional batches and with markers, in the order of the log. A transaction
    is distinguished from the next of its producer by its marker, so nothing but the log itself is needed.
    """

    _open: dict[int, int] = field(default_factory=dict)
    """First offset of the open transaction of each producer."""
    _aborted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """First offset and marker of each aborted transaction that has data, by producer, ascending."""
    _with_data: set[int] = field(default_factory=set)
    """Markers of transactions that have data."""

    def on_data(self, producer_id: int, base_offset: int) -> None:
        self._open.setdefault(producer_id, base_offset)

    def on_marker(self, producer_id: int, offset: int, *, is_commit: bool) -> None:
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return
        self._with_data.add(offset)
        if not is_commit:
            self._aborted.setdefault(producer_id, []).append((first_offset, offset))

    def first_undecided(self) -> int | None:
        """First offset of a transaction whose marker has not been seen."""
        return min(self._open.values(), default=None)

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch belongs to an aborted transaction."""
        aborted = self._aborted.get(producer_id, ())
        found = bisect_right(aborted, offset, key=_first_offset) - 1
        return found >= 0 and offset < aborted[found][1]

    def has_data(self, marker_offset: int) -> bool:
        """Whether a batch of the marker's transaction, even an empty one, was there before this round."""
        return marker_offset in self._with_data


def _first_offset(transaction: tuple[int, int]) -> int:
    return transaction[0]


# ---- batches -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastOfProducer:
    """What the log remembers of a producer; without data, only a marker named its epoch.

    ``data_offsets`` are the last offsets of the batches that it may still send again. Where only the very
    last one stayed, as in Kafka, a start that has to read the producers' states from the log would refuse
    the others as out of order, for ever.
    """

    epoch: int
    data_offsets: frozenset[int] = frozenset()


class IfEmpty(Enum):
    """What becomes of a batch that has no records left."""

    KEEP = auto()
    REMOVE = auto()


def if_empty(
    *,
    last_offset: int,
    producer_id: int,
    producer_epoch: int,
    is_control: bool,
    producers: Mapping[int, LastOfProducer],
    segment_end: int,
    begins_epoch: bool = False,
) -> IfEmpty:
    """Whether something hangs on a batch beyond its records; its new segment ends at ``segment_end``."""
    if last_offset + 1 == segment_end or begins_epoch:
        return IfEmpty.KEEP
    last = producers.get(producer_id)
    if last is None:
        return IfEmpty.REMOVE
    if not last.data_offsets:
        is_remembered = is_control and producer_epoch == last.epoch
    else:
        is_remembered = not is_control and last_offset in last.data_offsets
    return IfEmpty.KEEP if is_remembered else IfEmpty.REMOVE


class MarkerFate(Enum):
    """What becomes of a transaction marker in this round."""

    STAYS = auto()
    GETS_HORIZON = auto()
    GOES = auto()


def marker_fate(*, has_data: bool, is_empty: bool, delete_horizon_ms: int | None, now_ms: int) -> MarkerFate:
    """A marker stays as long as its transaction has data, and then until its delete horizon."""
    if is_empty:
        return MarkerFate.GOES
    if has_data:
        return MarkerFate.STAYS
    if delete_horizon_ms is None:
        return MarkerFate.GETS_HORIZON
    return MarkerFate.GOES if delete_horizon_ms <= now_ms else MarkerFate.STAYS


# ---- throttling --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Throttle:
    """Keeps what all cleaners read and write below a rate, by saying how long to pause."""

    bytes_per_second: float
    _began_ms: int | None = None
    _bytes: int = 0

    def pause_ms(self, done_bytes: int, now_ms: int) -> int:
        """Note work that was done by ``now_ms`` (monotonic); how long to do nothing after it."""
        if self._began_ms is None or now_ms - self._began_ms > _WINDOW_MS:
            due_ms = 0.0 if self._began_ms is None else self._due_ms() - now_ms
            self._began_ms, self._bytes = now_ms + max(0, int(due_ms)), 0
        self._bytes += done_bytes
        return max(0, int(self._due_ms() - now_ms))

    def _due_ms(self) -> float:
        """When the work so far should have ended at the earliest."""
        return (self._began_ms or 0) + self._bytes * 1_000 / self.bytes_per_second


_WINDOW_MS: Final = 10_000
"""Rest that was not used is forgotten after this long, so that no burst makes up for it."""
