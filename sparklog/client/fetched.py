"""The batches of one partition in a fetch's answer, and their rows as columns.

PURE. Rows are in ROW_SCHEMA, whatever payload the batch has; those of a typed topic are as the reader wants
them. A batch may begin before the fetch offset or end after the wanted range: rows outside are cut. Control
batches take offsets but have no rows. A read-committed reader gets no rows of aborted transactions: the
response names their producers and first offsets, and each ends at its transaction marker, later in the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.transactions.cut import PartitionCut
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import Part, read_parts
from sparklog.records.arrow.cut_batch import cut_crc_matches
from sparklog.records.bridge import values_of
from sparklog.records.control import end_of_transaction
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import BatchHeader, Bytes, crc_matches, split
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS
from sparklog.records.typed_decoding import OFFSET, TypedReading
from sparklog.wire.messages.data.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)


@dataclass(frozen=True, slots=True)
class FetchTerms:
    """How to fetch, the same for every request of a reader."""

    max_wait_ms: int
    max_bytes: int
    partition_max_bytes: int
    isolation_level: int
    rack_id: str = ""
    """The reader's rack; the leader may then name a closer replica (KIP-392)."""
    with_aborted: bool = False
    """Whether the aborted transactions are asked for up to the high watermark."""
    payload_kinds: tuple[int, ...] = SUPPORTED_PAYLOADS
    """``ALL_PAYLOADS`` of a reader that knows the topic's columns."""
    columns: tuple[int, ...] | None = None
    """The ids of those that it wants; None for all."""
    condition: bytes = b""
    """Which rows it wants of them, packed; empty for all."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The whole batches of one partition's answer, from ``fetch_offset`` on."""

    topic_partition: TopicPartition
    fetch_offset: int
    records: Bytes
    batches: Sequence[tuple[int, BatchHeader]]
    aborted: Sequence[AbortedTransaction] = ()
    cut: PartitionCut | None = None
    typed: TypedReading | None = None
    """What the reader of a typed topic wants; None for ROW_SCHEMA."""
    looked_to: int = -1
    """Up to here a replica has left nothing out that the reader wants; -1 if all batches are there."""

    @property
    def next_offset(self) -> int:
        """The offset of the next fetch."""
        last = self.batches[-1][1].next_offset if self.batches else -1
        return max(self.fetch_offset, self.looked_to, last)

    def gaps(self, end_offset: int) -> Iterator[tuple[int, int]]:
        """Ranges before ``end_offset`` that no batch covers: compaction removed their records."""
        expected = self.fetch_offset
        for _, header in self.batches:
            if header.base_offset > expected and expected < end_offset:
                yield expected, min(header.base_offset, end_offset)
            expected = max(expected, header.next_offset)

    def rows(self, end_offset: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows from the fetch offset up to ``end_offset`` (exclusive); small batches are joined."""
        read = read_columns if self.typed is None else self.typed.read
        offset_name = "offset" if self.typed is None else OFFSET
        try:
            for together in read(self.records, self.visible(end_offset)):
                rows = _cut(together, offset_name, self.fetch_offset, end_offset)
                if rows.num_rows:
                    yield rows
        except CorruptBatch as error:
            raise CorruptBatch(f"{self.topic_partition}: {error}") from None

    def visible(self, end_offset: int | None) -> Iterator[tuple[int, BatchHeader]]:
        """The intact batches that hold rows for this reader; a damaged one raises CorruptBatch."""
        aborted = _AbortedProducers(self.aborted)
        for position, header in self.batches:
            if end_offset is not None and header.base_offset >= end_offset:
                return
            batch = memoryview(self.records)[position : position + header.size_bytes]
            self._check(batch, header)
            is_hidden = aborted.hides(batch, header) or (self.cut is not None and self.cut.hides(header))
            if not is_hidden and header.last_offset >= self.fetch_offset:
                yield position, header

    def _check(self, batch: memoryview, header: BatchHeader) -> None:
        matches = cut_crc_matches(batch, header) if header.is_cut else crc_matches(batch, 0, header)
        if not matches:
            raise CorruptBatch(
                f"the batch at offset {header.base_offset} has a wrong CRC; its replica's disk, or the way "
                "here, has damaged it"
            )


class _AbortedProducers:
    """Which producers are, at this place of the log, in a transaction that will be aborted."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._ahead = sorted(transactions, key=lambda transaction: -transaction.first_offset)
        self._producers: set[int] = set()

    def hides(self, batch: memoryview, header: BatchHeader) -> bool:
        """Whether a read-committed reader must not get this batch's records."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            self._producers.add(self._ahead.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._producers and _is_abort(batch, header):
                self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers


def _is_abort(batch: memoryview, header: BatchHeader) -> bool:
    end = end_of_transaction(batch, header)
    return end is not None and not end.is_commit


def _cut(rows: pa.RecordBatch, offset_name: str, start_offset: int, end_offset: int | None) -> pa.RecordBatch:
    offsets = values_of(rows.column(offset_name))
    first = int(np.searchsorted(offsets, start_offset))
    last = len(offsets) if end_offset is None else int(np.searchsorted(offsets, end_offset))
    return rows if last - first == rows.num_rows else rows.slice(first, max(0, last - first))


def fetch_request(
    leaders: Mapping[TopicPartition, KnownLeader], positions: Mapping[TopicPartition, int], terms: FetchTerms
) -> FetchRequest:
    """A request for the partitions of one leader, from their positions on."""
    topics: dict[str, FetchTopic] = {}
    for topic_partition, leader in leaders.items():
        topic = topics.setdefault(
            topic_partition.topic, FetchTopic(topic=topic_partition.topic, topic_id=leader.topic_id)
        )
        topic.partitions.append(
            FetchPartition(
                partition=topic_partition.partition,
                current_leader_epoch=leader.leader_epoch,
                fetch_offset=positions[topic_partition],
                partition_max_bytes=terms.partition_max_bytes,
                columns=terms.columns,
                condition=terms.condition,
            )
        )
    return FetchRequest(
        max_wait_ms=terms.max_wait_ms,
        max_bytes=terms.max_bytes,
        isolation_level=terms.isolation_level,
        topics=list(topics.values()),
        rack_id=terms.rack_id,
        payload_kinds=terms.payload_kinds,
        with_aborted=1 if terms.with_aborted else -1,
    )


def answers_of(
    response: FetchResponse, leaders: Mapping[TopicPartition, KnownLeader]
) -> dict[TopicPartition, FetchPartitionData]:
    """Each partition's answer; the response's version decides whether it has topic names or topic ids."""
    names = {leader.topic_id: topic_partition.topic for topic_partition, leader in leaders.items()}
    answers = {
        TopicPartition(topic.topic or names.get(topic.topic_id, ""), partition.partition_index): partition
        for topic in response.responses
        for partition in topic.partitions
    }
    missing = response.error_code
    if missing is ErrorCode.none:
        missing = ErrorCode.unknown_server_error
    for topic_partition in leaders:
        answers.setdefault(
            topic_partition, FetchPartitionData(partition_index=topic_partition.partition, error_code=missing)
        )
    return {topic_partition: answers[topic_partition] for topic_partition in leaders}


def fetched_of(
    topic_partition: TopicPartition,
    fetch_offset: int,
    answer: FetchPartitionData,
    cut: PartitionCut | None = None,
    typed: TypedReading | None = None,
) -> Fetched:
    """The batches of an answer without an error."""
    records = _contiguous(answer.records)
    return Fetched(
        topic_partition,
        fetch_offset,
        records,
        split(records),
        answer.aborted_transactions or (),
        cut,
        typed,
        answer.looked_to,
    )


def _contiguous(parts: Sequence[Part]) -> Bytes:
    if len(parts) == 1 and isinstance(parts[0], bytes | memoryview):
        return parts[0]
    return read_parts(parts)
