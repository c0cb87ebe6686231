"""Consumers that read a partition from its beginning, and what they tell of it."""

from typing import Final

from simulation.clients.client import RETRY_MS, Client, Workplace
from simulation.clients.payloads import TAKES_ARROW, TAKES_RECORDS, is_as_sent, rows_in
from simulation.invariants.invariant import Violation
from simulation.recorder import FoundRow, SeenPoll
from simulation.truth import Entry, PartitionTruth, entry_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.envelope import BatchHeader, crc_matches, split
from sparklog.wire.messages.data.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

FETCH_WAIT_MS: Final = 150
RACKS: Final = ("rack-0", "rack-1")
"""Where brokers with even and with odd ids are, if leaders send consumers to a replica near them."""


class Consumer(Client):
    """Reads everything, from the beginning, over and over to the end."""

    isolation_level = 0
    bytes_max = 1 << 20
    columns: tuple[int, ...] | None = None
    """The ids of the columns that it names in its fetches; None: all."""
    condition = b""
    """The condition on rows that it names there, packed; empty: none."""

    def __init__(
        self,
        place: Workplace,
        name: str,
        topic_partition: TopicPartition,
        *,
        reads_records: bool = False,
        takes_arrow: bool = False,
    ) -> None:
        super().__init__(place, name, topic_partition)
        self.offset = 0
        self.table: dict[bytes, tuple[int, bytes | None]] = {}
        """What a reader makes of a compacted topic: each key's last offset and value."""
        self._reads_records = reads_records
        self._payload_kinds: tuple[int, ...] = TAKES_ARROW if takes_arrow else TAKES_RECORDS
        self._last_epoch = -1
        self._rack = self._draw.choice(("", *RACKS))
        self._met_rot = False
        """Whether the last answer was taken up to a rotten batch only."""
        self._follower: str | None = None
        """Where the leader sent us, as it is in our rack."""
        self.has_followed = False
        """Whether we have read from a follower since we began again."""
        self.first_read = 0
        """Where the recorder has what it read since it began again."""
        self.is_at_end = False
        """Whether there was nothing more for it when it asked last."""

    def topic_was_made_anew(self) -> None:
        self.start_again()

    def start_again(self) -> None:
        """Read once more from the beginning."""
        self.table.clear()
        self.has_followed = False
        self.first_read = len(self._place.recorder.reads)
        self.seek(0)

    def start_again_at_the_leader(self) -> None:
        """Followers that miss tombstones keep what these deleted (as in Kafka: docs/compaction.md)."""
        self._rack, self._follower = "", None
        self.start_again()

    def seek(self, offset: int) -> None:
        self.offset, self._last_epoch, self.is_at_end = offset, -1, False
        self._place.recorder.seek(self.name, self.topic_partition, offset)

    def go_on(self) -> None:
        if self._leader is None:
            self.find_leader()
            return
        asked = FetchPartition(
            partition=self.topic_partition.partition,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=self.bytes_max,
            columns=self.columns,
            condition=self.condition,
        )
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            isolation_level=self.isolation_level,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=[asked])],
            rack_id=self._rack,
            payload_kinds=self._payload_kinds,
        )
        asked_for = self.offset, self._topic_id
        asked_us, asked_epoch = self._place.schedule.now_us, self._leader_epoch
        self.call(
            self._follower or self._leader,
            request,
            lambda response: self._answered(asked_for, asked_us, asked_epoch, response),
            lambda error: self._failed(),
        )

    def _failed(self) -> None:
        self._follower = None
        self.find_leader()

    def _answered(
        self, asked_for: tuple[int, TopicId], asked_us: int, asked_epoch: int, response: FetchResponse
    ) -> None:
        data = response.responses[0].partitions[0] if response.responses else None
        is_asked = asked_for == (self.offset, self._topic_id)
        diverges = data is not None and data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0
        if data is None or data.error_code is not ErrorCode.none or diverges:
            if is_asked and data is not None:
                self._settle_position(data, diverges=diverges)
            self._leader = self._follower = None
            self.later(RETRY_MS, self.find_leader)
            return
        if data.preferred_read_replica >= 0:
            self._follower = self._hosts.get(data.preferred_read_replica)
            if self._follower is None:
                self._leader = None  # our metadata is older than that broker
        elif self._follower is not None and data.records:
            self._place.witness.marks.reach("a consumer read from a follower")
        if is_asked:
            self.has_followed |= self._follower is not None
            start = self.offset
            self._open(data)
            found = self._take(read_parts(data.records))
            self._close(data, start)
            self.is_at_end = self.offset == start and data.preferred_read_replica < 0
            now_us = self._place.schedule.now_us
            seen = SeenPoll(self.name, self.topic_partition, start, found, asked_us, now_us, asked_epoch)
            self._keep(seen)
        self.later(self._draw.uniform(10, 120), self.go_on)

    def _keep(self, poll: SeenPoll) -> None:
        self._place.recorder.reads.append(poll)

    def _open(self, data: FetchPartitionData) -> None:
        """An answer is about to be taken."""

    def _close(self, data: FetchPartitionData, start: int) -> None:
        """An answer was taken, from ``start`` on."""

    def _settle_position(self, data: FetchPartitionData, *, diverges: bool) -> None:
        """Records were deleted, or lost, where we wanted to go on."""
        if data.error_code is ErrorCode.offset_out_of_range and data.log_start_offset > self.offset:
            self.seek(data.log_start_offset)
            return
        truth = self._place.witness.truths.get(self.topic_partition)
        is_beyond = diverges or data.error_code is ErrorCode.offset_out_of_range
        if truth is not None and truth.lossy_epoch >= 0 and is_beyond:
            self.start_again()

    def _take(self, records: bytes) -> list[Entry | FoundRow]:
        found: list[Entry | FoundRow] = []
        self._met_rot = False
        for position, header in split(records):
            if header.next_offset <= self.offset:
                continue
            if not self._is_sound(records, position, header):
                self._met_rot = True
                self._place.witness.marks.reach("a consumer was given a rotten batch")
                return found  # it asks again for it, as real ones do
            entry = self._entry(records, position, header)
            if self._place.story.is_told:
                self._place.story.tell(self.name, f"read {entry}")
            self._place.witness.on_read(self.topic_partition, self._topic_id, entry)
            self._take_batch(_bytes_of(records, position, header), header, entry, found)
            self.offset, self._last_epoch = entry.next_offset, entry.leader_epoch
        return found

    def _is_sound(self, records: bytes, position: int, header: BatchHeader) -> bool:
        """Whether a batch is what its writer sent, as far as its CRC says."""
        return crc_matches(records, position, header)

    def _entry(self, records: bytes, position: int, header: BatchHeader) -> Entry:
        """What was read. Of a batch that was written as Arrow, and that we are given as records, the CRC is
        the one that it has in the log, if what is in it is what was sent. (Of compacted topics records are
        judged.)
        """
        entry = entry_of(header)
        if header.is_arrow and header.record_count <= header.last_offset_delta:
            self._place.witness.marks.reach("a consumer read an Arrow batch that was compacted")
        sent = None if header.is_arrow else self._place.recorder.arrow.get(entry.send)
        if sent is None:
            return entry
        self._place.witness.marks.reach("a consumer was given records of an Arrow batch")
        is_same = self._reads_records or is_as_sent(_bytes_of(records, position, header), header, sent)
        return entry._replace(crc=sent.crc) if is_same else entry

    def _take_batch(
        self, batch: memoryview, header: BatchHeader, entry: Entry, found: list[Entry | FoundRow]
    ) -> None:
        """A batch was read. Markers are for nobody."""
        if header.is_control:
            return
        if self._reads_records:
            self._note(batch, header, found)
        else:
            found.append(entry)

    def _note(self, batch: memoryview, header: BatchHeader, found: list[Entry | FoundRow]) -> None:
        if not header.record_count:
            return
        producer = header.producer_id, header.producer_epoch
        for row in rows_in(batch, header):
            assert row.key is not None, header
            offset, sequence = header.base_offset + row.offset_delta, header.base_sequence + row.offset_delta
            self.table[row.key] = (offset, row.value)
            found.append(FoundRow(offset, *producer, sequence, row.key, row.value))


def consumer_unrest(consumer: Consumer, truth: PartitionTruth) -> str | None:
    """What a consumer still has to do after all is healed.

    Raises:
        Violation: of a compacted topic it has all, and something else than is there.
    """
    if consumer.offset < truth.committed_end:
        return f"{consumer.name} has read up to {consumer.offset} of {truth.committed_end}"
    if not truth.is_thinned or truth.forgiven_end:
        return None
    found = {key: offset for key, (offset, value) in consumer.table.items() if value is not None}
    last = {key: at for key, at in truth.latest.items() if not truth.records[at].is_tombstone}
    if found == last:
        return None
    if consumer.has_followed and _misses_deletions_only(found, last, truth):
        # What a follower did not have yet may have lost its tombstones before it came there.
        consumer.start_again_at_the_leader()
        return f"{consumer.name} read from a follower, and reads again from the leader"
    raise Violation(
        "CompactionKeepsTheLatest",
        f"{truth.topic_partition}: {consumer.name} found the last records at {found}, they are at {last}",
    )


def _misses_deletions_only(found: dict[bytes, int], last: dict[bytes, int], truth: PartitionTruth) -> bool:
    def was_deleted(key: bytes) -> bool:
        return key in truth.latest and truth.records[truth.latest[key]].is_tombstone

    return found.items() >= last.items() and all(was_deleted(key) for key in found.keys() - last.keys())


def _bytes_of(records: bytes, position: int, header: BatchHeader) -> memoryview:
    return memoryview(records)[position : position + header.size_bytes]
