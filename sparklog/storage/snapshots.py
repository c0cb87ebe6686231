"""Producer snapshots of a log: ``<offset>.snapshot`` holds the producer states just before that offset.

One is written wherever a segment begins, one at the end of a log that is closed, and now and then in between,
of which the last two are kept. They save replaying the log from its first batch, above all when a follower
truncates a few batches under its lock; whatever follows the offset is replayed from the envelopes.

A snapshot is not synced before its segment is, but for that of a log that begins anew with the states that
its leader handed on: no batch tells them. A damaged one is removed with a warning: the next older one does,
or none. Truncation removes the snapshots of what it cuts *before* it cuts: none outlives its batches.
"""

import logging
import re
from collections.abc import Iterable
from typing import Final

from sparklog.core.transaction.producer_state import CorruptSnapshot, ProducerBatch, ProducerStates
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Disk
from sparklog.storage.segment import Segment, file_name

SUFFIX: Final = ".snapshot"
BETWEEN_KEPT: Final = 2
NAME: Final = re.compile(r"(\d{20})\.snapshot")

logger = logging.getLogger(__name__)


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
        """Save what a leader handed on, if it is anything, synced: no batch will tell it again."""
        if states.producers:
            self._save(offset, states, sync=True)

    def _save(self, offset: int, states: ProducerStates, *, sync: bool) -> None:
        self._disk.write_atomically(self.path(offset), states.snapshot(), sync=sync)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def keep(self, offset: int) -> None:
        """Make sure that a power cut leaves the one at ``offset``, if there is one."""
        if offset in self.offsets:
            self._disk.sync_file(self.path(offset))
            self._disk.sync_directory(self._directory)

    def load_latest(self, offset_max: int) -> tuple[int, ProducerStates] | None:
        """The newest intact snapshot at or before ``offset_max``, and its offset."""
        for offset in [found for found in reversed(self.offsets) if found <= offset_max]:
            try:
                return offset, ProducerStates.restore(self._disk.read(self.path(offset)))
            except CorruptSnapshot as error:
                logger.warning("removing the damaged producer snapshot %s: %s", self.path(offset), error)
                self._remove([offset])
        return None

    def thin(self, bases: Iterable[int]) -> None:
        """Remove all but those of segments that begin at ``bases``, and the last two."""
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


def producer_batch(header: BatchHeader) -> ProducerBatch:
    """What producer states want to know of a batch."""
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
    )


def replay(snapshots: Snapshots, segments: Iterable[Segment], end_offset: int, now_ms: int) -> ProducerStates:
    """The producer states just before ``end_offset``: the latest snapshot, and the batches after it."""
    start_offset, states = snapshots.load_latest(end_offset) or (0, ProducerStates())
    for segment in segments:
        if segment.end_offset <= start_offset or segment.base_offset >= end_offset:
            continue
        for _, header in segment.headers_from(start_offset):
            if header.base_offset >= end_offset:
                break
            if header.has_producer:
                states.apply(producer_batch(header), now_ms)
    return states
