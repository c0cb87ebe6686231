"""Keeps what clients see, for the black-box checker (tests/proof/docs/history.md).

While a run goes on this is an entry in a list for each batch and each answer; they become a history when the
run has ended. Batches are known by their envelopes with the CRC, which their consumers check.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from histories.batches import Batch
from histories.model import (
    Assigned,
    Commit,
    CommittedRead,
    Deleted,
    Dump,
    End,
    FinalRead,
    GroupLost,
    History,
    Leader,
    Outcome,
    Poll,
    Record,
    Seek,
    Send,
    TopicEvent,
)
from simulation.schedule import Schedule
from simulation.truth import Entry, Rows
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import BatchHeader

NS_PER_US: Final = 1_000


@dataclass(slots=True, eq=False)
class SentBatch:
    """A batch that its producer wants to be rid of, and what it knows of its fate."""

    process: str
    session: str
    topic_partition: TopicPartition
    acks: int
    is_idempotent: bool
    number: int
    """Of its first record, in this session."""
    count: int
    entry: Entry
    rows: Rows = ()
    invoked_us: int = -1
    done_us: int = -1
    outcome: Outcome = "info"
    offset: int = -1
    leader_epoch: int = -1
    error: str = "no answer"

    def names(self) -> Iterator[str]:
        topic, partition = self.topic_partition
        for nth in range(self.number, self.number + self.count):
            yield f"{topic}/{partition}/{self.session}/{nth}"


class FoundRow(NamedTuple):
    """A record of a compacted log, decoded."""

    offset: int
    producer_id: int
    producer_epoch: int
    sequence: int
    key: bytes
    value: bytes | None


class SeenPoll(NamedTuple):
    process: str
    topic_partition: TopicPartition
    start: int
    found: Sequence[Entry | FoundRow]
    invoked_us: int
    done_us: int
    leader_epoch: int


class SeenEnd(NamedTuple):
    process: str
    topic_partition: TopicPartition
    offset: int
    invoked_us: int
    done_us: int
    leader_epoch: int


class Sought(NamedTuple):
    process: str
    topic_partition: TopicPartition
    offset: int
    done_us: int


class SeenDump(NamedTuple):
    """A replica's log. What a compacted one holds is decoded by nobody."""

    host: str
    topic_partition: TopicPartition
    start: int
    end: int
    high_watermark: int
    batches: Sequence[Batch]
    is_compacted: bool


@dataclass(slots=True)
class Recorder:
    schedule: Schedule
    sent: list[SentBatch] = field(default_factory=list)
    reads: list[SeenPoll | Sought] = field(default_factory=list)
    ends: list[SeenEnd] = field(default_factory=list)
    dumps: list[SeenDump] = field(default_factory=list)
    topics: list[TopicEvent] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    committed: list[CommittedRead] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    groups_lost: list[GroupLost] = field(default_factory=list)
    arrow: dict[tuple[int, int, int], BatchHeader] = field(default_factory=dict)
    """Each batch that was sent as Arrow, by producer, epoch and sequence."""
    asked_all: set[tuple[int, ...]] = field(default_factory=set)
    """Each batch that was sent with acks=all, by producer, epoch, sequence and CRC."""
    healed_us: int = -1
    rested_us: int = -1
    """When everything had come to rest, first."""

    @property
    def now_ns(self) -> int:
        return self.schedule.now_us * NS_PER_US

    def begin(self, batch: SentBatch) -> SentBatch:
        self.sent.append(batch)
        if batch.acks == ACKS_ALL:
            self.asked_all.add(batch.entry[3:])
        return batch

    def end(self, batch: SentBatch, outcome: Outcome, offset: int = -1, error: str = "") -> None:
        batch.outcome, batch.offset, batch.error = outcome, offset, error
        batch.done_us = self.schedule.now_us

    def seek(self, process: str, topic_partition: TopicPartition, offset: int) -> None:
        self.reads.append(Sought(process, topic_partition, offset, self.schedule.now_us))

    def topic(self, name: str, *, is_created: bool, is_compacted: bool = False) -> None:
        self.topics.append(TopicEvent(name, is_created, self.now_ns, is_compacted))

    def leader(self, topic_partition: TopicPartition, leader: int, epoch: int, *, is_unclean: bool) -> None:
        topic, partition = topic_partition
        self.leaders.append(Leader(topic, partition, str(leader), epoch, self.now_ns, is_unclean))

    def group_lost(self, group_id: str) -> None:
        """An election may have lost what this group committed."""
        self.groups_lost.append(GroupLost(group_id, self.now_ns))

    def history(self) -> History:
        """Everything so far, but for final reads."""
        names = _Names(self.sent)
        return History(
            sends=[send for batch in self.sent if batch.invoked_us >= 0 for send in _sends(batch)],
            reads=[_read(names, read) for read in self.reads],
            ends=[
                End(
                    one.process,
                    *one.topic_partition,
                    one.invoked_us * NS_PER_US,
                    one.done_us * NS_PER_US,
                    one.offset,
                    one.leader_epoch,
                )
                for one in self.ends
            ],
            dumps=[_dump(names, one, self.now_ns) for one in self.dumps],
            topics=self.topics,
            leaders=self.leaders,
            commits=self.commits,
            committed=self.committed,
            assigned=self.assigned,
            groups_lost=self.groups_lost,
            healed_ns=self.healed_us * NS_PER_US if self.healed_us >= 0 else -1,
        )

    def add_final(
        self,
        history: History,
        topic_partition: TopicPartition,
        first_read: int,
        *,
        end: int,
        may_delete_before: int,
        has_retention: bool,
    ) -> None:
        """Takes what one consumer read since its ``first_read`` for all that there is. What it could not read
        at the start any more was deleted: by retention, or because somebody asked for it.
        """
        topic, partition = topic_partition
        own = self.reads[first_read : first_read + 1]
        process = own[0].process if own else ""
        records: list[Record] = []
        start = 0
        for read in history.reads[first_read:]:
            if read.process == process and isinstance(read, Poll):
                records += read.records
            elif read.process == process:
                assert isinstance(read, Seek)
                start = read.offset
        history.finals.append(FinalRead(topic, partition, start, end, records, self.now_ns))
        before = max(start if has_retention else 0, may_delete_before)
        if before:
            history.deleted.append(Deleted(topic, partition, before, self.now_ns))


class _Names:
    """Which records a batch in a log has."""

    def __init__(self, sent: list[SentBatch]) -> None:
        self._batches = {(*batch.entry.send, batch.entry.crc): batch for batch in sent}
        self._rows = {
            (*batch.entry.send[:2], batch.number + nth): (name, batch.rows[nth])
            for batch in sent
            if batch.rows
            for nth, name in enumerate(batch.names())
        }

    def records(self, found: Entry | FoundRow) -> list[Record]:
        if isinstance(found, FoundRow):
            name, row = self._rows.get(found[1:4], ("", None))
            is_it = row == (found.key, found.value)
            return [(found.offset, name if is_it else f"a record that nobody sent: {found}")]
        batch = self._batches.get((*found.send, found.crc))
        if batch is None or batch.count != found.next_offset - found.base_offset:
            return [(found.base_offset, f"a batch that nobody sent: {found}")]
        return list(enumerate(batch.names(), found.base_offset))


def _read(names: _Names, read: SeenPoll | Sought) -> Poll | Seek:
    topic, partition = read.topic_partition
    if isinstance(read, Sought):
        return Seek(read.process, topic, partition, read.offset, read.done_us * NS_PER_US)
    records = [record for found in read.found for record in names.records(found) if record[0] >= read.start]
    return Poll(
        read.process,
        topic,
        partition,
        read.start,
        records,
        read.invoked_us * NS_PER_US,
        read.done_us * NS_PER_US,
        read.leader_epoch,
        _epochs(read),
    )


def _dump(names: _Names, seen: SeenDump, now_ns: int) -> Dump:
    return Dump(
        seen.host,
        *seen.topic_partition,
        seen.start,
        seen.end,
        seen.high_watermark,
        []
        if seen.is_compacted
        else [
            (offset, batch.leader_epoch, value)
            for batch in seen.batches
            if not batch.is_control
            for offset, value in names.records(_entry(batch))
            if offset >= seen.start
        ],
        [
            (batch.base_offset, batch.last_offset, batch.digest)
            for batch in seen.batches
            if batch.base_offset >= seen.start
        ],
        now_ns,
    )


def _entry(batch: Batch) -> Entry:
    return Entry(
        batch.base_offset,
        batch.last_offset + 1,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.crc,
    )


def _epochs(read: SeenPoll) -> list[tuple[int, int]]:
    """Where leader epochs begin among what was read; of records of compacted logs they are not kept."""
    found: list[tuple[int, int]] = []
    for entry in read.found:
        if isinstance(entry, FoundRow):
            return []
        if entry.next_offset > read.start and (not found or found[-1][1] != entry.leader_epoch):
            found.append((max(entry.base_offset, read.start), entry.leader_epoch))
    return found


def _sends(batch: SentBatch) -> Iterator[Send]:
    topic, partition = batch.topic_partition
    for nth, name in enumerate(batch.names()):
        key, value = batch.rows[nth] if batch.rows else (None, b"")
        yield Send(
            batch.process,
            topic,
            partition,
            name,
            batch.acks,
            batch.session,
            batch.number + nth,
            batch.is_idempotent,
            batch.invoked_us * NS_PER_US,
            key=None if key is None else key.decode(),
            is_tombstone=value is None,
            outcome=batch.outcome,
            done_ns=batch.done_us * NS_PER_US if batch.done_us >= 0 else -1,
            offset=batch.offset + nth if batch.offset >= 0 else -1,
            leader_epoch=batch.leader_epoch,
            error=batch.error,
        )
