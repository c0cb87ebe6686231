"""The truth of a run, whatever its programs believe: every replica's batches, and what is committed.

The truth is kept beside the brokers, from what their logs really hold after each step. A batch is committed
when a leader's high watermark passes it; from then on it must never be missing where it counts. Batches are
known by their envelopes: producer, sequence, epoch and CRC, which together name one send.

Three things may take from a committed log: a deletion of records or retention, at its start; compaction, what
a later committed record of the same key replaces, and tombstones in time; and an election that may lose,
after which whatever the new leader shares with the committed log is the committed log.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from sparklog.broker.partition.partition import Partition
from sparklog.core.controller.state.znodes import Assignment
from sparklog.core.replication.epoch_history import EpochEntry
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import end_of_transaction
from sparklog.records.envelope import BatchHeader, crc_matches, split
from sparklog.records.payload import payload_of
from sparklog.storage.log import Log
from sparklog.storage.segments.segment import Segment

ALL_BYTES = 1 << 40

ZOMBIES_FROM: Final = 1_000
"""What is added to the id of a broker that was replaced while it lives."""

PIECES_KEPT: Final = 2_048
"""Replicas hold the same bytes, and a log that is looked at again has mostly the bytes that it had."""

Rows = tuple[tuple[bytes, bytes | None], ...]
"""Keys and values of a batch as it was sent."""

Fingerprint = tuple[int, int, int, int, int, int, bool, bool]
"""Of a partition: whatever an invariant asks for changes with it."""


class TransactionPart(NamedTuple):
    """What a transactional batch is to its producer's transaction: records of it, or its end.

    ``end`` is None for records, and for control batches that end nothing (any more).
    """

    is_control: bool
    has_records: bool
    end: TransactionEnd | None


Parts = dict[tuple[int, int], TransactionPart]
"""Of the transactional batches of a log, by base offset and CRC."""


class Entry(NamedTuple):
    """One batch in a log."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    crc: int

    def __str__(self) -> str:
        bumped = f":{self.producer_epoch}" if self.producer_epoch > 0 else ""
        return (
            f"[{self.base_offset}..{self.next_offset - 1} epoch {self.leader_epoch} "
            f"producer {self.producer_id}{bumped}/{self.sequence}]"
        )

    @property
    def send(self) -> tuple[int, int, int]:
        """Which batch of which producer it is."""
        return self.producer_id, self.producer_epoch, self.sequence


def entry_of(header: BatchHeader) -> Entry:
    return Entry(
        header.base_offset,
        header.next_offset,
        header.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.crc,
    )


@dataclass(slots=True)
class ReplicaView:
    """One replica's log as it is now, also while its broker is dead.

    ``matched`` of its first entries are committed ones, -1: none was compared; ``cursor`` is the committed
    batch that must be next, -1: it is to be looked for.
    """

    broker_id: BrokerId
    entries: list[Entry] = field(default_factory=list)
    matched: int = 0
    cursor: int = 0
    shared_end: int = 0
    """Up to here the replica holds what is committed, as far as it has to."""
    held_end: int = 0
    """The end of the last batch that it shares, and has."""
    held_before: int = 0
    """``held_end`` as it was before the last change; 0 if it was in the remote store alone."""
    is_read_anew: bool = False
    """Whether the last change was a start, a cut, or compaction."""
    was_cut: bool = False
    """Whether this log ever lost its end."""
    spoilt: list[int] = field(default_factory=list)
    """Base offsets of batches whose CRC did not hold when they were appended last."""
    kept: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Where a topic is compacted: the offsets of the records in each batch, by its base offset."""
    parts: Parts = field(default_factory=dict)
    """Of the transactional batches that it has, or had."""
    log: Log | None = None
    partition: Partition | None = None
    segments: tuple[Segment, ...] = ()
    generation: int = 0
    log_start: int = 0
    """Where it begins on this disk."""
    history_start: int = 0
    """Where it begins for readers: earlier, if a remote store has what is between."""
    start_before: int = 0
    """``log_start`` as it was before the last change."""
    end_offset: int = 0
    high_watermark: int = 0
    leader_epoch: int = -1
    fingerprint: Fingerprint | None = None
    """What the partition was like when it was looked at last."""
    epochs_checked: tuple[int, list[EpochEntry]] = (0, [])
    """Where the log began, and its epoch history, when that was compared with its batches last."""
    synced: tuple[Entry, ...] = ()
    """After a power cut, until its broker is back: what was on disk for certain."""

    @property
    def member(self) -> BrokerId:
        """Which broker it believes to be."""
        return BrokerId(self.broker_id % ZOMBIES_FROM)

    def refresh(self, partition: Partition, *, is_thinned: bool, is_cleaned: bool = False) -> list[Entry]:
        """Take over what the log holds now; the entries that are new, or new again."""
        log, self.partition = partition.log, partition
        is_in_store = self.history_start < self.log_start and self.held_end <= self.log_start
        self.held_before = 0 if is_in_store else self.held_end
        self.start_before = self.log_start
        self.log_start, self.history_start = log.local_start_offset, log.log_start_offset
        is_same = log is self.log and log.generation == self.generation
        self.spoilt.clear()
        self.is_read_anew = not is_same or is_cleaned
        self.was_cut |= log.log_end_offset < self.end_offset
        if is_same and is_cleaned and log.corruption is None and log.log_end_offset == self.end_offset:
            found = self._read_swapped(log, is_thinned)
            same = _shared_length(found, self.entries)
            if same < self.matched:
                self.matched, self.cursor = same, -1
        elif not is_same or is_cleaned:
            self.log, self.generation = log, log.generation
            self.kept.clear()
            found = self._read(log, log.local_start_offset, log.log_end_offset, is_thinned)
            same = _shared_length(found, self.entries)
            self.matched = -1
        elif log.log_end_offset == self.end_offset:
            return []
        else:
            same = len(self.entries)
            found = self.entries + self._read(
                log, self.end_offset, log.log_end_offset, is_thinned, self.spoilt
            )
        self.entries = found
        self.end_offset = log.log_end_offset
        self.segments = log.segments
        return found[same:]

    def forget(self) -> None:
        """The replica is gone from its disk."""
        self.entries, self.log, self.partition, self.matched = [], None, None, -1
        self.was_cut = False
        self.high_watermark, self.leader_epoch, self.end_offset = 0, -1, 0
        self.log_start = self.history_start = self.start_before = 0

    def _read_swapped(self, log: Log, is_thinned: bool) -> list[Entry]:
        """After the cleaner put a segment in place of others: the rest hold what they held."""
        known = set(self.segments)
        found: list[Entry] = []
        for segment in log.segments:
            start = max(segment.base_offset, log.local_start_offset)
            if segment in known:
                first = bisect_right(self.entries, start, key=_next_offset)
                end = bisect_left(self.entries, segment.end_offset, key=_base_offset)
                found += self.entries[first:end]
            else:
                for offset in [at for at in self.kept if segment.base_offset <= at < segment.end_offset]:
                    del self.kept[offset]
                found += self._read(log, start, segment.end_offset, is_thinned)
        return found

    def _read(
        self, log: Log, offset: int, end: int, is_thinned: bool, spoilt: list[int] | None = None
    ) -> list[Entry]:
        """The batches there; into ``spoilt`` go those whose CRC does not hold."""
        if log.corruption is not None and log.corruption.ends_log:
            end = min(end, log.corruption.offset)
        if offset >= end:
            return []
        read = log.read(offset, ALL_BYTES, end, at_least_one_batch=True)
        if read is None:
            return []
        entries: list[Entry] = []
        for part in read.parts:
            piece = _piece(read_parts((part,)), is_thinned)
            if not piece.is_whole and len(read.parts) > 1:
                piece = _piece(read_parts(read.parts), is_thinned)  # damaged: as who reads all of it sees it
                self._note(piece)
                return list(piece.entries)
            entries += piece.entries
            self._note(piece)
            if spoilt is not None:
                spoilt += piece.spoilt
        return entries

    def _note(self, piece: "_Piece") -> None:
        self.kept.update(piece.kept)
        self.parts.update(piece.parts)

    def part(self, entry: Entry) -> TransactionPart | None:
        """What a batch of this log is to a transaction; None if it is in none.

        A batch that rots is what it was before: a scrubber may mend it, and nobody reads the log again then.
        """
        return self.parts.get((entry.base_offset, entry.crc))


def _shared_length(one: list[Entry], other: list[Entry]) -> int:
    """How many entries both begin with."""
    differ = (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(differ, min(len(one), len(other)))


class _Piece(NamedTuple):
    """What some bytes of a log hold."""

    entries: tuple[Entry, ...]
    kept: Mapping[int, tuple[int, ...]]
    spoilt: tuple[int, ...]
    parts: Parts
    is_whole: bool
    """Whether the last batch ends where the bytes do."""


@lru_cache(PIECES_KEPT)
def _piece(data: bytes, is_thinned: bool) -> _Piece:
    batches = split(data)
    kept = {
        header.base_offset: offsets_in(data, position, header) for position, header in batches if is_thinned
    }
    end = batches[-1][0] + batches[-1][1].size_bytes if batches else 0
    spoilt = tuple(header.base_offset for at, header in batches if not crc_matches(data, at, header))
    parts = {
        (header.base_offset, header.crc): part_of(data, position, header)
        for position, header in batches
        if header.is_transactional and header.base_offset not in spoilt
    }
    return _Piece(tuple(entry_of(header) for _, header in batches), kept, spoilt, parts, end == len(data))


def part_of(data: bytes, position: int, header: BatchHeader) -> TransactionPart:
    batch = memoryview(data)[position : position + header.size_bytes]
    end = end_of_transaction(batch, header) if header.is_control else None
    return TransactionPart(header.is_control, header.record_count > 0, end)


def offsets_in(data: bytes, position: int, header: BatchHeader) -> tuple[int, ...]:
    """The offsets of the records that a batch has (left)."""
    if not header.record_count:
        return ()
    if header.record_count == header.last_offset_delta + 1:
        return tuple(range(header.base_offset, header.next_offset))
    batch = memoryview(data)[position : position + header.size_bytes]
    return tuple(payload_of(header).to_columns(batch, header).column("offset").to_pylist())


class Committed(NamedTuple):
    """A committed record of a compacted topic."""

    key: bytes
    is_tombstone: bool
    at_ms: int


@dataclass(slots=True)
class PartitionTruth:
    """One partition: its committed log, its replicas, and what ZooKeeper holds about it."""

    topic_partition: TopicPartition
    topic_id: TopicId
    is_thinned: bool = False
    """Whether its topic is compacted."""
    is_raw: bool = False
    """Whether copies in a remote store have no file for people."""
    may_delete: bool = False
    """Whether its topic has a retention that these runs reach."""
    delete_retention_ms: int = 0
    drift_max: float = 0.0
    """By how much of every second two machines' clocks may part."""
    committed: list[Entry] = field(default_factory=list)
    views: dict[BrokerId, ReplicaView] = field(default_factory=dict)
    assignment: Assignment = field(default_factory=lambda: Assignment(()))
    state: PartitionState | None = None
    state_version: int = -1
    leaders: dict[int, BrokerId] = field(default_factory=dict)
    last_sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    tainted: dict[BrokerId, int] = field(default_factory=dict)
    """Replicas that a power cut may have cost records, with the incarnation that they had then."""
    distrusted: dict[BrokerId, int] = field(default_factory=dict)
    """Replicas that have all that they had, but not for anybody who does not know disks' secrets: an fsync
    failed in their directory. With the incarnation that they had then."""
    deleted_end: int = 0
    """Up to here somebody asked to delete records."""
    stored_end: int = 0
    """Up to here a head in ZooKeeper has ever led to a remote store."""
    stored: list[Entry] = field(default_factory=list)
    """The batches to which the head leads now."""
    stored_start: int = 0
    """Where the head says that the history begins."""
    allows_unclean: bool = False
    """Whether the topic allows an election of any live replica now."""
    demands: int = 0
    """How many such elections somebody demands, who has no answer yet."""
    demanded_until_ms: int = -1
    """Until then a demand may still be on its way, although its answer was given."""
    lost: dict[int, list[Entry]] = field(default_factory=dict)
    """What was committed, or believed to be, until an election lost it; by base offset."""
    lossy_epoch: int = -1
    """The epoch of the last election that may have lost records."""
    was_allowed: bool = False
    """Whether that election was allowed, or demanded."""
    forgiven_end: int = 0
    """Below it a compacted log may lack what was replaced by records that an election lost."""
    records: dict[int, Committed] = field(default_factory=dict)
    latest: dict[bytes, int] = field(default_factory=dict)
    undecided: dict[int, list[tuple[bytes, int]]] = field(default_factory=dict)
    """Of each producer with an open transaction: keys and offsets of its records."""
    undone: set[int] = field(default_factory=set)
    """Offsets of markers, and of records that were aborted: compaction may remove them at any time."""
    rots: Callable[[BrokerId], bool] = lambda broker: False
    """Whether a replica holds a batch that rotted: a start after a clean stop reads none."""
    appended: dict[tuple[tuple[int, int, int], int], int] = field(default_factory=dict)
    """The lowest epoch in which a leader appended a batch, by its send and CRC."""

    @property
    def committed_end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    @property
    def lost_end(self) -> int:
        """Where the last batch ended that an election lost."""
        return max((one.next_offset for some in self.lost.values() for one in some), default=0)

    @property
    def start_max(self) -> int:
        """How far a log's start may be."""
        return max(self.deleted_end, self.committed_end if self.may_delete else 0)

    def may_lose(self, now_ms: int) -> bool:
        """Whether an election of any live replica is allowed, or demanded."""
        return self.allows_unclean or self.is_demanded(now_ms)

    def is_demanded(self, now_ms: int) -> bool:
        """Whether an administrator may have demanded such an election."""
        return self.demands > 0 or now_ms <= self.demanded_until_ms

    def is_of(self, partition: Partition) -> bool:
        """Whether a partition of this name is one of this topic, not of another that had its name."""
        topic_id = partition.topic_id
        return topic_id is self.topic_id or topic_id == self.topic_id

    def is_led_by(self, broker_id: BrokerId) -> bool:
        return self.state is not None and self.state.leader == broker_id

    def view(self, broker_id: BrokerId) -> ReplicaView:
        known = self.views.get(broker_id)
        if known is None:
            known = self.views[broker_id] = ReplicaView(broker_id)
        return known

    def compare(self, view: ReplicaView, now_ms: int) -> None:
        """Up to where a replica holds what is committed; goes on from where it stood."""
        entries, committed = view.entries, self.committed
        if view.matched < 0:
            view.matched = 0
            view.cursor = bisect_right(committed, view.log_start, key=_next_offset)
        elif view.cursor < 0:
            known_end = entries[view.matched - 1].next_offset if view.matched else view.log_start
            view.cursor = bisect_right(committed, known_end, key=_next_offset)
        at, cursor = view.matched, view.cursor
        if at < len(entries) and entries[at].next_offset <= view.log_start:
            at = bisect_right(entries, view.log_start, key=_next_offset)
            cursor = bisect_right(committed, view.log_start, key=_next_offset)
        if cursor < len(committed) and committed[cursor].next_offset <= view.log_start:
            # Committed a second time: an election had lost it when this log gave it up.
            cursor = bisect_right(committed, view.log_start, key=_next_offset)
        while at < len(entries) and cursor < len(committed):
            entry, expected = entries[at], committed[cursor]
            if entry == expected and not self.is_thinned:
                at += 1
            elif self._is_given_up(entry, expected):
                at += 1
                continue
            elif not self.is_thinned:
                break
            elif entry[:6] == expected[:6] and self._may_lack(view, expected, now_ms):
                at += 1
            elif entry.base_offset < expected.next_offset or not self._may_lack(view, expected, now_ms):
                break
            cursor += 1
        view.matched, view.cursor = at, cursor
        matched_end = entries[at - 1].next_offset if at else 0
        if not self.is_thinned:  # what is given up before a hole is not held
            matched_end = min(matched_end, committed[cursor - 1].next_offset if cursor else 0)
        view.held_end = max(matched_end, min(view.log_start, view.end_offset))
        # Behind the last batch that it has, a replica may have had more, and lack it rightly.
        passed_end = committed[cursor - 1].next_offset if cursor else 0
        view.shared_end = max(view.held_end, min(passed_end, view.end_offset))

    def _is_given_up(self, entry: Entry, expected: Entry) -> bool:
        """Whether the leader that was elected at a loss had compacted ``entry`` away, or begins behind it:
        who follows it gives that up, too, with the next answer."""
        end = entry.base_offset + 1 if self.is_thinned else entry.next_offset
        return end <= expected.base_offset and self.was_lost(entry)

    def note_appended(self, batches: list[Entry]) -> None:
        """A leader has these batches now."""
        for one in batches:
            known = self.appended.setdefault((one.send, one.crc), one.leader_epoch)
            if one.leader_epoch < known:  # by a leader that has not heard of its successor
                self.appended[one.send, one.crc] = one.leader_epoch

    def epoch_of(self, sent: Entry) -> int:
        """In which epoch, at the earliest, a leader appended what was sent; -1 if none did."""
        return self.appended.get((sent.send, sent.crc), -1)

    def _may_lack(self, view: ReplicaView, batch: Entry, now_ms: int) -> bool:
        """Whether compaction may have removed the records of ``batch`` that are not there."""
        if batch.base_offset < self.forgiven_end:
            return True
        kept = view.kept.get(batch.base_offset, ())
        if len(kept) == batch.next_offset - batch.base_offset:
            return True
        for offset in range(max(batch.base_offset, view.log_start), batch.next_offset):
            if offset not in kept and not self._is_replaced(offset, now_ms):
                return False
        return True

    def _is_replaced(self, offset: int, now_ms: int) -> bool:
        if offset in self.undone:
            return True
        record = self.records[offset]
        if self.latest.get(record.key, -1) > offset:
            return True
        kept_ms = now_ms - record.at_ms + self.drift_max * now_ms
        return record.is_tombstone and kept_ms >= self.delete_retention_ms

    def note_records(
        self, batch: Entry, rows: Rows, now_ms: int, part: TransactionPart | None = None
    ) -> None:
        """``batch`` was committed, with these records; those of a transaction count with its marker."""
        if part is not None and part.is_control:
            self.undone.add(batch.base_offset)
            for key, offset in self.undecided.pop(batch.producer_id, []):
                if part.end is not None and part.end.is_commit:
                    self.latest[key] = max(offset, self.latest.get(key, -1))
                else:
                    self.undone.add(offset)
            return
        for offset, (key, value) in enumerate(rows, batch.base_offset):
            self.records[offset] = Committed(key, value is None, now_ms)
            if part is None:
                self.latest[key] = offset
            else:
                self.undecided.setdefault(batch.producer_id, []).append((key, offset))

    def lose(
        self, leader: ReplicaView, epoch: int, *, kept_min: int = 0, revived: Sequence[Entry] = ()
    ) -> list[Entry]:
        """An election made ``leader``'s log the truth; what was committed and is not in it. The first
        ``kept_min`` committed batches stay, and ``revived``, which an earlier election lost, follow them.
        """
        self.lossy_epoch = epoch
        # What compaction, or a deletion, took from the leader's log is not lost.
        kept = bisect_right(self.committed, leader.shared_end, key=_next_offset)
        kept = max(min(kept, self.kept_in_store(leader)), kept_min)
        lost = self.committed[kept:]
        for entry in lost:
            self.lost.setdefault(entry.base_offset, []).append(entry)
            self.forgiven_end = max(self.forgiven_end, entry.next_offset)
        del self.committed[kept:]
        self._bring_back(leader)
        self.committed += [one for one in revived if one.base_offset >= self.committed_end]
        self.last_sequences.clear()
        for entry in self.committed:
            producer = entry.producer_id, entry.producer_epoch
            self.last_sequences[producer] = max(entry.sequence, self.last_sequences.get(producer, -1))
        self._forget_records(self.committed_end)
        for view in self.views.values():
            view.matched = -1
        return lost

    def kept_in_store(self, leader: ReplicaView) -> int:
        """How many of the first committed batches a log has of which only a store has the front: there they
        must be, and of that very log.
        """
        start = max(leader.history_start, self.stored_start)
        stored = set(self.stored)
        for nth, one in enumerate(self.committed):
            if one.base_offset >= leader.log_start:
                break
            is_gone = one.next_offset > start and not (one in stored and _is_of_line(leader, one))
            if is_gone and leader.history_start < leader.log_start:
                return nth
        return len(self.committed)

    def _bring_back(self, leader: ReplicaView) -> None:
        """What an earlier election lost is the truth again, where the elected has it in its remote store."""
        for one in self.stored:
            if self.committed_end <= one.base_offset < leader.log_start and _is_in_history(leader, one):
                self.committed.append(one)

    def history_before_disk(self, view: ReplicaView) -> list[Entry]:
        """What a log had before its disk begins, as its epochs say of all that was ever committed; also what
        nobody has any more, because elections lost it.
        """
        first = bisect_right(self.committed, view.history_start, key=_next_offset)
        end = bisect_left(self.committed, view.log_start, key=_base_offset)
        there = self.committed[first:end]
        if not self.lost or view.log is None:
            return there
        line = {one.base_offset: one for one in there if _is_of_line(view, one)}
        for base_offset, some in self.lost.items():
            for one in some:
                is_before = view.history_start < one.next_offset and base_offset < view.log_start
                if is_before and _is_of_line(view, one):
                    line.setdefault(base_offset, one)
        return [line[base_offset] for base_offset in sorted(line)]

    def _forget_records(self, end: int) -> None:
        self.records = {offset: record for offset, record in self.records.items() if offset < end}
        self.undone = {offset for offset in self.undone if offset < end}
        self.undecided.clear()
        self.latest = {
            record.key: offset for offset, record in sorted(self.records.items()) if offset not in self.undone
        }

    def was_lost(self, entry: Entry) -> bool:
        """Whether this batch was committed once, as far as anybody could tell, and lost by an election."""
        return any(one[:6] == entry[:6] for one in self.lost.get(entry.base_offset, ()))

    def committed_at(self, base_offset: int) -> Entry | None:
        """The committed batch that begins there."""
        at = bisect_left(self.committed, base_offset, key=_base_offset)
        found = self.committed[at] if at < len(self.committed) else None
        return found if found is not None and found.base_offset == base_offset else None


def history_of(truth: PartitionTruth, view: ReplicaView) -> list[Entry]:
    """What readers find in a replica's log: what is on its disk, behind what a remote store has."""
    if view.history_start >= view.log_start:
        return view.entries
    on_disk = bisect_right(view.entries, view.log_start, key=_next_offset)
    return truth.history_before_disk(view) + view.entries[on_disk:]


def _is_in_history(view: ReplicaView, entry: Entry) -> bool:
    """As the epochs say of what is not on its disk."""
    return view.history_start <= entry.base_offset < view.log_start and _is_of_line(view, entry)


def _is_of_line(view: ReplicaView, entry: Entry) -> bool:
    """Whether its epochs say of a log that it has, or had, this batch."""
    offset = max(entry.base_offset, view.history_start)
    return view.log is not None and view.log.epochs.epoch_at(offset) == entry.leader_epoch


def _base_offset(entry: Entry) -> int:
    return entry.base_offset


def _next_offset(entry: Entry) -> int:
    return entry.next_offset
