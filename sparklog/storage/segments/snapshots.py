"""Producer snapshots of a log: ``<offset>.snapshot`` holds the producer states just before that offset.

A snapshot is written at the start of each segment, at the end of a log that is closed, and between these once
per ``SNAPSHOT_BATCHES`` batches; of the latter the last two are kept. Recovery and truncation load the latest
snapshot and replay only the envelopes after it. This matters most when a follower truncates a few batches
under its lock.

A snapshot is synced with its segment, or before the segments in front of it are removed. Only ``hand_over``
syncs at once: after a truncation of the whole log no batch holds the states that the leader sent. A damaged
snapshot is removed with a warning, and the next older one is used; without any, the log is replayed.
Truncation removes the snapshots beyond the new end *before* it removes batches, so that no snapshot outlives
its batches.
"""

import logging
import re
from collections.abc import Iterable
from typing import Final

from sparklog.core.producers.producer_state import CorruptSnapshot, ProducerBatch, ProducerStates
from sparklog.records.control import end_of_transaction
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Buffer, Disk, File
from sparklog.storage.segments.segment import Segment, file_name
from sparklog.storage.segments.transaction_index import AbortedEntries

SUFFIX: Final = ".snapshot"
BETWEEN_KEPT: Final = 2
NAME: Final = re.compile(r"(\d{20})\.snapshot")

logger: Final = logging.getLogger(__name__)


class Snapshots:
    """The snapshot files of one log's directory."""

    __slots__ = ("_directory", "_disk", "offsets")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        names = (NAME.fullmatch(name) for name in disk.list(directory))
        self.offsets = sorted(int(match[1]) for match in names if match)

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, SUFFIX)}"

    def save(self, offset: int, states: ProducerStates) -> None:
        self._save(offset, states, sync=False)

    def hand_over(self, offset: int, states: ProducerStates) -> None:
        """Save states from a leader, if any, synced, because no batch in the log holds them."""
        if states.producers:
            self._save(offset, states, sync=True)

    def _save(self, offset: int, states: ProducerStates, *, sync: bool) -> None:
        self._disk.write_atomically(self.path(offset), states.snapshot(), sync=sync)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def keep(self, offsets: Iterable[int]) -> None:
        """Sync the snapshots at ``offsets``, of those that exist, so that they survive a power cut."""
        there = [offset for offset in offsets if offset in self.offsets]
        for offset in there:
            self._disk.sync_file(self.path(offset))
        if there:
            self._disk.sync_directory(self._directory)

    def load_latest(self, offset_max: int) -> tuple[int, ProducerStates] | None:
        """The newest intact snapshot at or before ``offset_max`` and its offset; removes damaged ones."""
        for offset in [found for found in reversed(self.offsets) if found <= offset_max]:
            try:
                return offset, ProducerStates.restore(self._disk.read(self.path(offset)))
            except CorruptSnapshot as error:
                logger.warning("removing the damaged producer snapshot %s: %s", self.path(offset), error)
                self._remove([offset])
        return None

    def thin(self, bases: Iterable[int]) -> None:
        """Remove all but the last two of the snapshots that are not at a segment's base offset."""
        between = sorted(set(self.offsets) - set(bases))
        self._remove(between[:-BETWEEN_KEPT])

    def remove_after(self, offset: int) -> None:
        self._remove([found for found in self.offsets if found > offset])

    def remove_before(self, offset: int) -> None:
        self._remove([found for found in self.offsets if found < offset])

    def _remove(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self._disk.remove(self.path(offset))
            self.offsets.remove(offset)


def producer_batch(header: BatchHeader, batch: Buffer | None = None) -> ProducerBatch:
    """The fields of a batch that producer states use. ``batch``: the whole batch, needed for markers."""
    return ProducerBatch(
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        first_sequence=header.base_sequence,
        last_sequence=header.last_sequence,
        first_offset=header.base_offset,
        last_offset=header.last_offset,
        timestamp_ms=header.max_timestamp_ms,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        has_records=header.record_count > 0,
        end=end_of_transaction(batch, header) if header.is_control and batch is not None else None,
    )


def stored_batch(file: File, position: int, header: BatchHeader) -> ProducerBatch:
    """``producer_batch`` of the batch at ``position`` in a segment's file; reads more only of markers."""
    return producer_batch(header, file.pread(header.size_bytes, position) if header.is_control else None)


def replay(snapshots: Snapshots, segments: Iterable[Segment], end_offset: int, now_ms: int) -> ProducerStates:
    """The producer states just before ``end_offset``, from the latest snapshot and the batches after it."""
    start_offset, states = snapshots.load_latest(end_offset) or (0, ProducerStates())
    for segment in segments:
        if segment.end_offset <= start_offset or segment.base_offset >= end_offset:
            continue
        for position, header in segment.headers_from(start_offset):
            if header.base_offset >= end_offset:
                break
            if header.has_producer:
                states.apply(stored_batch(segment.file, position, header), now_ms)
    return states


def aborted_in(
    segment: Segment, snapshots: Snapshots, segments: Iterable[Segment], now_ms: int
) -> AbortedEntries:
    """The index of aborted transactions of one of ``segments``, from the batches."""
    states = replay(snapshots, segments, segment.base_offset, now_ms)
    entries = AbortedEntries()
    for position, header in segment.headers_from(segment.base_offset):
        if header.has_producer:
            aborted = states.apply(stored_batch(segment.file, position, header), now_ms)
            if aborted is not None:
                entries.add(aborted)
    return entries
