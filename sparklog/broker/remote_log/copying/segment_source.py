"""Reads a sealed part of a partition's log for a copy: its batches, and the state at its end.

Positions are looked up under the partition's lock, a megabyte at a time; bytes are read without it. The part
is below the last stable offset, so it is never truncated. If retention removes it, the copy ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.producer_state import CorruptSnapshot, ProducerStates
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.remote_log.reach import LogReach, OffsetRange, SealedSegment
from sparklog.core.remote_log.state_object import SegmentState
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.errors import CorruptBatch, SparklogError
from sparklog.model.parts import read_parts
from sparklog.records.envelope import BatchHeader, crc_matches, split
from sparklog.records.remote_segment.build import SegmentBatch
from sparklog.storage.log import Log
from sparklog.storage.segments.log_read import LogRead
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.snapshots import Snapshots, replay

CHUNK_BYTES: Final = 1_048_576


class LogChanged(SparklogError):  # noqa: N818 (no error: the log changed, and is copied another time)
    """The log lost the part that was being copied, or its role."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts of a log that the copier decides by, taken under the partition's lock."""

    sealed: tuple[SealedSegment, ...]
    reach: LogReach
    log_end_offset: int
    epochs: EpochHistory
    copies: bool


def facts_of(log: Log, high_watermark: int) -> LogFacts | None:
    """The facts; None for a damaged log, and for one that is not to be in a store."""
    if not log.config.remote_storage or log.corruption is not None:
        return None
    unstable = log.producers.transactions.first_unstable(high_watermark)
    return LogFacts(
        tuple(
            SealedSegment(
                _first_offset(log, segment),
                segment.end_offset,
                -1 if segment.max_timestamp is None else segment.max_timestamp[0],
                segment.size_bytes,
            )
            for segment in log.segments[:-1]
        ),
        LogReach(
            log.log_start_offset,
            log.local_start_offset,
            # A transaction may begin above the high watermark, where records may yet be lost.
            high_watermark if unstable is None else min(unstable, high_watermark),
            log.epochs.entries[0].start_offset if log.epochs.entries else None,
        ),
        log.log_end_offset,
        log.epochs.copy(),
        not log.config.remote_copy_disabled,
    )


def _first_offset(log: Log, segment: Segment) -> int:
    """The segment's first offset that is still in the log: DeleteRecords may have raised the start into its
    middle.
    """
    if not segment.base_offset < log.local_start_offset < segment.end_offset:
        return segment.base_offset
    first = log.header_at(log.local_start_offset)
    return segment.base_offset if first is None else first.base_offset


@dataclass(frozen=True, slots=True)
class SegmentSource:
    """The batches of ``offsets`` of a partition. LogChanged once the log no longer has them."""

    partition: Partition
    offsets: OffsetRange
    aborted: tuple[AbortedTransaction, ...]
    """The aborted transactions with a record or a marker in ``offsets``."""

    @classmethod
    def of(cls, partition: Partition, offsets: OffsetRange) -> "SegmentSource":
        def look(log: Log, _: int) -> list[AbortedTransaction]:
            return log.aborted_transactions(offsets.base_offset, offsets.end_offset)

        aborted = partition.inspect(look)
        if aborted is None:
            raise LogChanged(f"{partition.topic_partition} has no role any more")
        return cls(partition, offsets, tuple(aborted))

    def batches(self) -> Iterator[SegmentBatch]:
        """All batches, in order. CorruptBatch for one whose CRC does not match: it must not be copied."""
        offset = self.offsets.base_offset
        while offset < self.offsets.end_offset:
            found = self._read(offset)
            data = read_parts(found.parts)
            for position, header in split(data):
                if header.base_offset > offset:
                    raise LogChanged(f"{self.partition.topic_partition} no longer has offset {offset}")
                if header.base_offset < self.offsets.base_offset or not crc_matches(data, position, header):
                    raise CorruptBatch(
                        f"the batch at offset {header.base_offset} of {self.partition.topic_partition} is "
                        f"damaged, or reaches across offset {self.offsets.base_offset}"
                    )
                batch = memoryview(data)[position : position + header.size_bytes]
                yield SegmentBatch(header, batch, self._is_aborted(header))
                offset = header.next_offset

    def _read(self, offset: int) -> LogRead:
        def look(log: Log, _: int) -> LogRead | None:
            # The log's start may be in the middle of a batch, which is then found by that start.
            start = max(offset, log.local_start_offset)
            return log.read(start, CHUNK_BYTES, self.offsets.end_offset, at_least_one_batch=True)

        found = self.partition.inspect(look)
        if found is None or not found.parts:
            raise LogChanged(f"{self.partition.topic_partition} no longer has offset {offset}")
        return found

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and any(
            transaction.producer_id == header.producer_id
            and transaction.first_offset <= header.base_offset <= transaction.last_offset
            for transaction in self.aborted
        )

    def state(self, now_ms: int) -> SegmentState:
        """The state at the end of these offsets."""
        state = self.partition.inspect(partial(self._state, now_ms=now_ms))
        if state is None:
            raise LogChanged(f"{self.partition.topic_partition} has no role any more")
        return state

    def _state(self, log: Log, _: int, *, now_ms: int) -> SegmentState:
        end = self.offsets.end_offset
        epochs = ((int(entry.epoch), int(entry.start_offset)) for entry in log.epochs.entries)
        return SegmentState(
            tuple(epoch for epoch in epochs if epoch[1] < end), self.aborted, _producers_at(log, end, now_ms)
        )


def _producers_at(log: Log, end_offset: int, now_ms: int) -> bytes:
    """A snapshot of the producers at ``end_offset``: the file of that roll, or a new one from the batches."""
    snapshots = Snapshots(log.disk, log.directory)
    if end_offset in snapshots.offsets:
        data = log.disk.read(snapshots.path(end_offset))
        try:
            ProducerStates.restore(data)
        except CorruptSnapshot:
            return replay(snapshots, log.segments, end_offset, now_ms).snapshot()
        return data
    return replay(snapshots, log.segments, end_offset, now_ms).snapshot()
