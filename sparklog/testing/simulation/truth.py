"""What is true of the cluster, whoever believes what: every replica's batches, and what is committed.

The truth is kept beside the brokers, from what their logs really hold after each step. A batch is committed
when a leader's high watermark passes it; from then on it must never be missing where it counts. Batches are
known by their envelopes: producer, sequence, epoch and CRC, which together name one send.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from sparklog.broker.partition import Partition
from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.envelope import BatchHeader, split
from sparklog.storage.log import Log

ALL_BYTES = 1 << 40


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
        return (
            f"[{self.base_offset}..{self.next_offset - 1} epoch {self.leader_epoch} "
            f"producer {self.producer_id}/{self.sequence}]"
        )


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
    """One replica's log as it is now, also while its broker is dead. ``shared`` of its first entries are the
    first entries of the committed log."""

    broker_id: BrokerId
    entries: list[Entry] = field(default_factory=list)
    shared: int = 0
    shared_before: int = 0
    """``shared`` as it was before the last change."""
    log: Log | None = None
    generation: int = 0
    high_watermark: int = 0
    leader_epoch: int = -1

    @property
    def end_offset(self) -> int:
        return self.entries[-1].next_offset if self.entries else 0

    @property
    def shared_end(self) -> int:
        """Up to here the replica holds what is committed."""
        return self.entries[self.shared - 1].next_offset if self.shared else 0

    def refresh(self, partition: Partition) -> list[Entry]:
        """Take over what the log holds now; the entries that are new, or new again."""
        log = partition.log
        self.shared_before = self.shared
        if log is not self.log or log.generation != self.generation:
            self.log, self.generation = log, log.generation
            found = read_entries(log, log.log_start_offset)
            same = 0
            while same < min(len(found), len(self.entries)) and found[same] == self.entries[same]:
                same += 1
            self.entries = found
            self.shared = min(self.shared, same)
            return found[same:]
        if log.log_end_offset == self.end_offset:
            return []
        found = read_entries(log, self.end_offset)
        self.entries += found
        return found


def read_entries(log: Log, offset: int) -> list[Entry]:
    read = log.read(offset, ALL_BYTES, log.log_end_offset, at_least_one_batch=True)
    if read is None:
        return []
    return [entry_of(header) for _, header in split(read_parts(read.parts))]


@dataclass(slots=True)
class PartitionTruth:
    """One partition: its committed log, its replicas, and what ZooKeeper holds about it."""

    topic_partition: TopicPartition
    committed: list[Entry] = field(default_factory=list)
    views: dict[BrokerId, ReplicaView] = field(default_factory=dict)
    state: PartitionState | None = None
    leaders: dict[int, BrokerId] = field(default_factory=dict)
    last_sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    tainted: dict[BrokerId, int] = field(default_factory=dict)
    """Replicas that a power cut may have cost records, with the incarnation that they had then."""

    @property
    def committed_end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    def view(self, broker_id: BrokerId) -> ReplicaView:
        known = self.views.get(broker_id)
        if known is None:
            known = self.views[broker_id] = ReplicaView(broker_id)
        return known

    def compare(self, view: ReplicaView) -> None:
        """Count how many of a replica's first entries are committed ones."""
        shared, entries, committed = view.shared, view.entries, self.committed
        while shared < len(entries) and shared < len(committed) and entries[shared] == committed[shared]:
            shared += 1
        view.shared = shared

    def committed_at(self, base_offset: int) -> Entry | None:
        """The committed batch that begins there."""
        low, high = 0, len(self.committed)
        while low < high:
            middle = (low + high) // 2
            if self.committed[middle].base_offset < base_offset:
                low = middle + 1
            else:
                high = middle
        found = self.committed[low] if low < len(self.committed) else None
        return found if found is not None and found.base_offset == base_offset else None
