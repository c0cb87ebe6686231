"""Open and ended transactions of a log, as the simplest replay of its batches says; and what follows of that
for every replica: its last stable offset.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView, TransactionPart
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.storage.log import Log

FAR: Final = 1 << 60
"""An offset that no log reaches."""


class Ended(NamedTuple):
    """A transaction that has a marker."""

    producer_id: int
    first_offset: int
    marker_offset: int
    is_commit: bool
    records_end: int = 0
    """Where its last batch of records ends, exclusive."""

    def overlaps(self, start: int, end: int) -> bool:
        """Whether a record of it or its marker may be in ``[start, end)``."""
        return self.first_offset < end and self.marker_offset >= start


def _marker_offset(one: Ended) -> int:
    return one.marker_offset


@dataclass(slots=True)
class Replay:
    """``open``: the first offset of each producer's open transaction. ``ended`` in the order of markers."""

    open: dict[int, int] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    _of_producers: dict[int, list[Ended]] = field(default_factory=dict)
    _records_end: dict[int, int] = field(default_factory=dict)
    """Of each open transaction, by producer id."""

    def take(self, entry: Entry, part: TransactionPart | None) -> Ended | None:
        """The next batch of the log; the transaction that it ends, if it ends one."""
        if part is None:
            return None
        if part.end is None:
            if part.has_records and not part.is_control:
                self.open.setdefault(entry.producer_id, entry.base_offset)
                self._records_end[entry.producer_id] = entry.next_offset
            return None
        first = self.open.pop(entry.producer_id, None)
        if first is None:
            return None
        records_end = self._records_end.pop(entry.producer_id)
        ended = Ended(entry.producer_id, first, entry.base_offset, part.end.is_commit, records_end)
        self.ended.append(ended)
        self._of_producers.setdefault(entry.producer_id, []).append(ended)
        return ended

    def end_of(self, entry: Entry) -> Ended | None:
        """The ended transaction that a transactional batch of the log is in."""
        ended = self._of_producers.get(entry.producer_id, [])
        at = bisect_right(ended, entry.base_offset, key=_marker_offset)
        return ended[at] if at < len(ended) and ended[at].first_offset <= entry.base_offset else None

    def stable(self, high_watermark: int, committed_end: int | None = None) -> int:
        """The last stable offset at this high watermark, if markers below ``committed_end`` are committed;
        without that, those below the high watermark.
        """
        stable = min([high_watermark, *self.open.values()])
        for one in reversed(self.ended):
            if one.marker_offset < (high_watermark if committed_end is None else committed_end):
                break
            stable = min(stable, one.first_offset)
        return stable

    def aborted(self, start: int, end: int) -> list[Ended]:
        """The aborted transactions that overlap ``[start, end)``."""
        return [one for one in self.ended if not one.is_commit and one.overlaps(start, end)]


@dataclass(slots=True)
class _Of:
    """A replica's log, replayed."""

    log: Log
    replay: Replay = field(default_factory=Replay)
    end_offset: int = 0
    is_exact: bool = True
    """Whether all records since offset 0 were replayed: neither retention nor compaction took any."""

    def take(self, entry: Entry, part: TransactionPart | None) -> None:
        is_thinned = part is not None and not part.is_control and not part.has_records
        self.is_exact = self.is_exact and entry.base_offset == self.end_offset and not is_thinned
        self.end_offset = entry.next_offset
        self.replay.take(entry, part)


@dataclass(slots=True)
class LastStableIsAsTheLogSays(Invariant):
    """On every replica the last stable offset is what a replay of its log says, at its high watermark. What
    began before the start of a log is not in it any more, and may hold the offset back; so may a transaction
    whose first records compaction took. A replica that starts again, at an older high watermark, may remember
    that a marker is committed.
    """

    _known: dict[tuple[TopicPartition, TopicId, BrokerId], _Of] = field(default_factory=dict)

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        log, who = partition.log, (truth.topic_partition, truth.topic_id, view.broker_id)
        if partition.is_offline or log.corruption is not None or truth.rots(view.member):
            self._known.pop(who, None)
            return
        known = self._known.get(who)
        if known is None or known.log is not log or view.is_read_anew:
            known = self._known[who] = _Of(log)
            added = view.entries
        for entry in added:
            known.take(entry, view.part(entry))
        marks = partition._replica.marks
        # A transaction that an unclean election opened again may have begun before the disk does.
        start, high_watermark, stable = (
            marks.local_start_offset,
            marks.high_watermark,
            marks.last_stable_offset,
        )
        least = max(known.replay.stable(high_watermark), start)
        most = max(known.replay.stable(high_watermark, max(high_watermark, truth.committed_end)), start)
        if stable > most or (stable < least and known.is_exact):
            raise self.broken(
                truth,
                f"broker {view.broker_id} has the last stable offset {stable}; its log says {least}, with "
                f"high watermark {high_watermark} and open transactions {known.replay.open}",
            )
        if view.is_read_anew and known.is_exact and not truth.is_thinned:
            self._check_index(truth, view, known)

    def _check_index(self, truth: PartitionTruth, view: ReplicaView, known: _Of) -> None:
        """After a start or a cut: the index of aborted transactions is what the log says, too."""
        log = known.log
        span = log.log_start_offset, log.log_end_offset
        indexed = {one[:3] for one in log.aborted_transactions(span[0], FAR)}
        expected = {one[:3] for one in known.replay.aborted(*span)}
        if indexed != expected:
            raise Violation(
                "TheIndexIsAsTheLogSays",
                f"{truth.topic_partition}: broker {view.broker_id} has {sorted(indexed)} in its index of "
                f"aborted transactions; its log has {sorted(expected)}",
            )
