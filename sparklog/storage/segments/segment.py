"""One segment: a file of batches, named by its base offset, and its indexes.

    00000000000000001500.log         batches, one after the other, nothing else
    00000000000000001500.index       see ``index``
    00000000000000001500.timeindex
    00000000000000001500.txnindex    see ``transaction_index``; most segments have none

A segment always has its size (``size_bytes``, ``end_offset``), but opens its file and loads its indexes only
for a read of a batch, and ``cool`` releases both: so a log of a thousand segments does not need a thousand
descriptors. The holder of a slice of the file can still read it.

Only the active segment, the last of its log, grows. It remembers its latest batches (``latest_batches``).
Its indexes are in memory, and written when it is sealed or its log is closed. A crash before that loses them,
and recovery rebuilds them from the batches with the method that appends use. An index that proves missing or
wrong later is rebuilt from the envelopes.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Buffer, Disk, File
from sparklog.storage.late_removals import LateRemovals
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.index import (
    OFFSET_ENTRY_BYTES,
    RELATIVE_MAX,
    TIME_ENTRY_BYTES,
    OffsetIndex,
    TimeIndex,
    last_time_entry,
)
from sparklog.storage.segments.intact_run import IntactRun
from sparklog.storage.segments.latest_batches import LatestBatches
from sparklog.storage.segments.scan import Outline, headers, outlines
from sparklog.storage.segments.transaction_index import TRANSACTION_INDEX, TransactionIndex

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
INDEXES: Final = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SUFFIXES: Final = (LOG, *INDEXES)

NO_TIMESTAMP: Final = -1

logger: Final = logging.getLogger(__name__)
T = TypeVar("T")


def file_name(offset: int, suffix: str) -> str:
    """Kafka's names: the offset in twenty digits, so that names sort as offsets do."""
    return f"{offset:020d}{suffix}"


class Segment:
    """A segment on disk. The log that owns it serialises all calls."""

    __slots__ = (
        "_disk",
        "_file",
        "_indexes",
        "_indexes_saved",
        "_indexes_vouched_for",
        "_interval_bytes",
        "_latest",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "created_ms",
        "directory",
        "end_offset",
        "first_timestamp_ms",
        "max_timestamp",
        "size_bytes",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, interval_bytes: int, now_ms: int
    ) -> None:
        self._disk = disk
        self._file: File | None = None
        self._indexes: tuple[OffsetIndex, TimeIndex] | None = None
        self._indexes_saved = False
        self._indexes_vouched_for = False
        """Whether a recovery point may cover the index files: these were synced, but are now rebuilt."""
        self._interval_bytes = interval_bytes
        self._latest: LatestBatches | None = None
        """A run of batches that ends at ``size_bytes``; None unless the last change was an append."""
        self._unindexed_bytes = 0
        self.directory = directory
        self.base_offset = base_offset
        self.aborted = TransactionIndex(disk, self.path(TRANSACTION_INDEX), base_offset)
        self.end_offset = base_offset
        """Exclusive. Of a sealed segment: the base offset of the next one."""
        self.size_bytes = 0
        self.created_ms = now_ms
        self.first_timestamp_ms: int | None = None
        """Greatest timestamp of the first batch; None until it is known."""
        self.max_timestamp: tuple[int, int] | None = (NO_TIMESTAMP, base_offset)
        """Greatest timestamp and the last offset of its batch; None until it is known."""

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG)!r}, end_offset={self.end_offset}, size_bytes={self.size_bytes})"

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """A new, empty segment. Removes files of an earlier segment of that name."""
        segment = cls(disk, directory, base_offset, config.index_interval_bytes, now_ms)
        for suffix in SUFFIXES:
            if disk.exists(segment.path(suffix)):
                disk.remove(segment.path(suffix))
        segment._file = disk.open(segment.path(LOG), create=True)
        segment.forget_batches()
        segment.aborted.forget()
        return segment

    @classmethod
    def found(
        cls, disk: Disk, directory: str, base_offset: int, end_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """A segment whose file exists and has not been read yet."""
        segment = cls(disk, directory, base_offset, config.index_interval_bytes, now_ms)
        segment.size_bytes = disk.size(segment.path(LOG))
        segment.end_offset = end_offset
        segment.max_timestamp = None
        segment._indexes_saved = True
        return segment

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, suffix)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path(LOG))
        return self._file

    # ---- writing -------------------------------------------------------------------------------------------

    def append(self, data: Buffer, batches: Sequence[tuple[int, BatchHeader]]) -> int:
        """Write whole batches, whose positions in ``data`` are in ``batches``; their position in the file."""
        start = self.size_bytes
        self.indexes()
        assert self.file.size() == start, self
        self.file.append(data)
        if self._latest is None:
            self._latest = LatestBatches()
        for position, header in batches:
            self.note_batch(start + position, header)
            self._latest.note(start + position, header.size_bytes, header.base_offset, header.last_offset)
        return start

    def note_batch(self, position: int, header: BatchHeader) -> None:
        """Update size, end, timestamps and indexes for the batch at ``position``, appended or recovered."""
        offsets, times = self.indexes()
        if self.first_timestamp_ms is None and position == 0:
            self.first_timestamp_ms = header.max_timestamp_ms
        assert self.max_timestamp is not None
        if header.record_count and header.max_timestamp_ms > self.max_timestamp[0]:
            self.max_timestamp = (header.max_timestamp_ms, header.last_offset)
        if self._unindexed_bytes > self._interval_bytes:
            offsets.add(header.last_offset, position)
            times.add(*self.max_timestamp)
            self._unindexed_bytes = 0
        self._unindexed_bytes += header.size_bytes
        self.size_bytes = position + header.size_bytes
        self.end_offset = header.next_offset
        self._indexes_saved = False

    def note_run(self, run: IntactRun) -> None:
        """``note_batch`` for many consecutive batches."""
        offsets, times = self.indexes()
        stamps: list[int] = run.heads["max_timestamp_ms"].tolist()
        if self.first_timestamp_ms is None and run.positions[0] == 0:
            self.first_timestamp_ms = stamps[0]
        assert self.max_timestamp is not None
        greatest_ms, at = self.max_timestamp
        unindexed, interval = self._unindexed_bytes, self._interval_bytes
        counts = run.heads["record_count"].tolist()
        batches = zip(run.positions, run.sizes, run.last_offsets(), stamps, counts, strict=True)
        for position, size, last_offset, timestamp_ms, count in batches:
            if timestamp_ms > greatest_ms and count:
                greatest_ms, at = timestamp_ms, last_offset
            if unindexed > interval:
                offsets.add(last_offset, position)
                times.add(greatest_ms, at)
                unindexed = 0
            unindexed += size
        self.max_timestamp, self._unindexed_bytes = (greatest_ms, at), unindexed
        self.size_bytes, self.end_offset = run.end_position, run.next_offset
        self._indexes_saved = False

    def forget_batches(self) -> None:
        """Reset size, end, timestamps and indexes, before ``note_batch`` is called for each batch."""
        self._indexes = (OffsetIndex(self.base_offset), TimeIndex(self.base_offset))
        self._indexes_saved = False
        self._latest = None
        self._unindexed_bytes = 0
        self.size_bytes = 0
        self.end_offset = self.base_offset
        self.first_timestamp_ms = None
        self.max_timestamp = (NO_TIMESTAMP, self.base_offset)

    def must_roll(
        self, incoming_bytes: int, last_offset: int, max_timestamp_ms: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether an append of this size, last offset and timestamp needs a new segment."""
        if not self.size_bytes:
            return last_offset - self.base_offset > RELATIVE_MAX
        offsets, times = self.indexes()
        return (
            self.size_bytes + incoming_bytes > config.segment_bytes
            or last_offset - self.base_offset > RELATIVE_MAX
            or len(offsets) >= config.index_max_bytes // OFFSET_ENTRY_BYTES
            or len(times) >= config.index_max_bytes // TIME_ENTRY_BYTES - 1
            or self._age_ms(max_timestamp_ms, now_ms) > config.roll_age_ms(self.path(LOG))
        )

    def _age_ms(self, max_timestamp_ms: int, now_ms: int) -> int:
        """The age by the records' timestamps, or by the clock if the first batch has no timestamp."""
        first_ms = self.first_batch_timestamp()
        return now_ms - self.created_ms if first_ms < 0 else max_timestamp_ms - first_ms

    def first_batch_timestamp(self) -> int:
        """Greatest timestamp of the first batch, which must exist; -1 if that batch has no timestamp."""
        if self.first_timestamp_ms is None:
            first = next(headers(self.file, 0, self.size_bytes))[1]
            self.first_timestamp_ms = first.max_timestamp_ms
        return self.first_timestamp_ms

    def index_entries_max(self) -> int:
        """Number of entries of the offset index, from the file's size if the index is not loaded."""
        path = self.path(OFFSET_INDEX)
        if self._indexes is not None or not self._disk.exists(path):
            return len(self._indexes[0]) if self._indexes is not None else 0
        return self._disk.size(path) // OFFSET_ENTRY_BYTES

    def seal(self) -> None:
        """Add the greatest timestamp to the time index and write the indexes."""
        self.aborted.save()
        self._latest = None
        if self._indexes_saved:
            return
        offsets, times = self.indexes()
        times.add(*self.greatest_timestamp())
        sync = self._indexes_vouched_for
        self._disk.write_atomically(self.path(OFFSET_INDEX), offsets.to_bytes(), sync=sync)
        self._disk.write_atomically(self.path(TIME_INDEX), times.to_bytes(), sync=sync)
        self._indexes_saved = True

    def save_aside(self, suffix: str) -> None:
        """Write the indexes, synced, with ``suffix``, for a segment that does not have its final name yet."""
        offsets, times = self.indexes()
        times.add(*self.greatest_timestamp())
        self._disk.write_atomically(self.path(OFFSET_INDEX) + suffix, offsets.to_bytes())
        self._disk.write_atomically(self.path(TIME_INDEX) + suffix, times.to_bytes())
        self.aborted.save_aside(suffix)

    def take_from_aside(self, suffix: str) -> None:
        """Rename the indexes of ``save_aside`` to this segment's index files, but that of aborted
        transactions, which must have its name before the segment has (``cleaner.swap``).
        """
        for path in (self.path(OFFSET_INDEX), self.path(TIME_INDEX)):
            self._disk.rename(path + suffix, path)
        self._indexes_saved = True

    def truncate(self, outline: Outline) -> None:
        """Remove the batch ``outline`` and all later batches."""
        offsets, times = self.indexes()
        self._remove_index_files()
        offsets.truncate(outline.position)
        times.truncate(outline.base_offset)
        self.aborted.truncate(outline.base_offset)
        self.cut_file(outline.position)
        self.size_bytes = outline.position
        self._recount()

    def cut_file(self, position: int) -> None:
        """Truncate the file to ``position`` bytes, and sync it before the next append.

        After an unsynced truncation, a power cut may leave a page of the latest append followed by a page of
        the truncated content: whole old batches, whose CRCs are right.
        """
        self._latest = None
        self.file.truncate(position)
        self.file.fsync()

    def _recount(self) -> None:
        """After a truncation: find the greatest timestamp and the bytes since the last index entry."""
        offsets, times = self.indexes()
        start = offsets.last_position()
        self.max_timestamp = times.last() or (NO_TIMESTAMP, self.base_offset)
        self._unindexed_bytes = self.size_bytes - start
        self._indexes_saved = False
        if not self.size_bytes:
            self.first_timestamp_ms = None
        for _, header in headers(self.file, start, self.size_bytes):
            if header.record_count and header.max_timestamp_ms > self.max_timestamp[0]:
                self.max_timestamp = (header.max_timestamp_ms, header.last_offset)

    # ---- reading -------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> Outline | None:
        """The batch that holds ``offset``, or the next batch; None beyond the end."""
        found = None if self._latest is None else self._latest.find(offset)
        return found or self._with_sound_index(lambda: self._locate(offset))

    def _locate(self, offset: int) -> Outline | None:
        entry = self.indexes()[0].find(offset)
        for outline in outlines(self.file, entry[1] if entry else 0, self.size_bytes):
            if entry and outline.position == entry[1] and outline.last_offset != entry[0]:
                raise CorruptBatch(f"it has offset {entry[0]} at {entry[1]}, where {outline.last_offset} is")
            if outline.last_offset >= offset:
                return outline
        return None

    def end_of_read(self, start: Outline, bytes_max: int, offset_max: int) -> tuple[int, int]:
        """End of the whole batches from ``start`` that fit both limits: position and offset, exclusive."""
        limit = start.position + bytes_max
        if limit >= self.size_bytes and offset_max >= self.end_offset:
            return self.size_bytes, self.end_offset
        found = None if self._latest is None else self._latest.end_of_read(start.position, limit, offset_max)
        return found or self._with_sound_index(lambda: self._end_of_read(start, limit, offset_max))

    def _end_of_read(self, start: Outline, limit: int, offset_max: int) -> tuple[int, int]:
        offsets = self.indexes()[0]
        entry = offsets.find(offset_max)
        known = max(start.position, min(offsets.position_up_to(limit), entry[1] if entry else 0))
        for outline in outlines(self.file, known, self.size_bytes):
            if outline.position == known and outline.base_offset > offset_max:
                raise CorruptBatch(f"it has offset {outline.base_offset} before {offset_max}")
            if outline.end_position > limit or outline.last_offset >= offset_max:
                return outline.position, outline.base_offset
        return self.size_bytes, self.end_offset

    def end_offset_at(self, position: int) -> int:
        """The end offset if the segment ended at ``position``, a batch's start or the end of the file."""
        return self._with_sound_index(lambda: self._end_offset_at(position))

    def _end_offset_at(self, position: int) -> int:
        start = self.indexes()[0].position_up_to(position - 1) if position else 0
        last_offset = self.base_offset - 1
        for outline in outlines(self.file, start, position):
            last_offset = outline.last_offset
        return last_offset + 1

    def _with_sound_index(self, look: Callable[[], T]) -> T:
        """The result of ``look``. After a CorruptBatch, rebuilds the index and calls ``look`` again."""
        try:
            return look()
        except CorruptBatch as error:
            self._rebuild_indexes(str(error))
            return look()

    def greatest_timestamp(self) -> tuple[int, int]:
        """``(timestamp, last offset of its batch)``; NO_TIMESTAMP if the batches have none."""
        if self.max_timestamp is None and self._indexes is None and self._indexes_saved:
            self.max_timestamp = self._last_saved_timestamp()
        if self.max_timestamp is None:
            self.max_timestamp = self.indexes()[1].last() or (NO_TIMESTAMP, self.base_offset)
        return self.max_timestamp

    def _last_saved_timestamp(self) -> tuple[int, int] | None:
        """The last entry of the time index's file, without loading the rest; None if it is not sound."""
        path = self.path(TIME_INDEX)
        if not self._disk.exists(path):
            return None
        file = self._disk.open(path)
        if file.size() < TIME_ENTRY_BYTES or file.size() % TIME_ENTRY_BYTES:
            return None
        entry = last_time_entry(
            self.base_offset, file.pread(TIME_ENTRY_BYTES, file.size() - TIME_ENTRY_BYTES)
        )
        is_sound = entry and entry[0] >= 0 and self.base_offset <= entry[1] < self.end_offset
        return entry if is_sound else None

    def bears_out_greatest_timestamp(self) -> bool:
        """Whether the batch in ``greatest_timestamp`` has that timestamp. If not, rebuilds the index.

        True if the batches are damaged, because then only the index can show the segment's age.
        """
        timestamp_ms, offset = self.greatest_timestamp()
        if timestamp_ms <= NO_TIMESTAMP:
            return True
        try:
            found = next(self.headers_from(offset), None)
        except CorruptBatch:
            return True
        if found and (found[1].last_offset, found[1].max_timestamp_ms) == (offset, timestamp_ms):
            return True
        with contextlib.suppress(CorruptBatch):
            self._rebuild_indexes(f"it has timestamp {timestamp_ms} at offset {offset}, where it is not")
        return False

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and envelope of the batch that holds ``offset``, and of all later batches."""
        start = self.locate(offset)
        return headers(self.file, start.position, self.size_bytes) if start else iter(())

    def headers_from_time(self, timestamp_ms: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and envelope of each batch, but for some at the beginning that are earlier as a whole."""
        return self.headers_from(self.indexes()[1].offset_before(timestamp_ms) + 1)

    # ---- indexes and files ---------------------------------------------------------------------------------

    def indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        if self._indexes is None:
            self._indexes = self._load_indexes(self.end_offset)
            if self._indexes is None:
                self._rebuild_indexes("it is missing or damaged")
                assert self._indexes is not None
        return self._indexes

    def _load_indexes(self, end_offset: int | None) -> tuple[OffsetIndex, TimeIndex] | None:
        paths = self.path(OFFSET_INDEX), self.path(TIME_INDEX)
        if not (self._disk.exists(paths[0]) and self._disk.exists(paths[1])):
            return None
        offsets = OffsetIndex.parse(self.base_offset, self._disk.read(paths[0]), self.size_bytes)
        times = TimeIndex.parse(self.base_offset, self._disk.read(paths[1]), end_offset)
        return (offsets, times) if offsets is not None and times is not None else None

    def _rebuild_indexes(self, reason: str) -> None:
        """Rebuild from the envelopes. CorruptBatch if those are damaged too; the segment is unchanged."""
        logger.warning("rebuilding the index of %s: %s", self.path(LOG), reason)
        end_offset, end_position = self.end_offset, self.size_bytes
        self.forget_batches()
        self._indexes_vouched_for = True
        try:
            for position, header in headers(self.file, 0, end_position):
                self.note_batch(position, header)
        except CorruptBatch:
            self._indexes, self._indexes_saved, self.max_timestamp = None, True, None
            raise
        finally:
            self.end_offset, self.size_bytes = end_offset, end_position

    def settle_end(self) -> bool:
        """Find the end of the last segment after a clean close, from the index and a few envelopes.

        False when index and file disagree; the file must then be checked as after a crash.
        """
        self._indexes = self._load_indexes(None)
        if self._indexes is None:
            return False
        offsets, times = self._indexes
        start = offsets.last_position()
        end_offset, end_position = self.base_offset, 0
        try:
            for outline in outlines(self.file, start, self.size_bytes):
                end_offset, end_position = outline.last_offset + 1, outline.end_position
        except CorruptBatch:
            return False
        self.max_timestamp = times.last() or (NO_TIMESTAMP, self.base_offset)
        self._unindexed_bytes = self.size_bytes - start
        self.end_offset = end_offset
        return end_position == self.size_bytes and self.max_timestamp[1] <= end_offset

    def cool(self) -> None:
        """Write the indexes and release file and indexes; both are loaded again on use."""
        self.seal()
        self.aborted.cool()
        self._file = None
        self._indexes = None

    def index_paths(self) -> tuple[str, ...]:
        """The paths of the index files of a sealed segment."""
        aborted = (self.aborted.path,) if self._disk.exists(self.aborted.path) else ()
        return self.path(OFFSET_INDEX), self.path(TIME_INDEX), *aborted

    def give_up(self, late: LateRemovals, due_ms: int) -> None:
        """Remove the segment; its batches stay under another name until ``due_ms``."""
        late.give_up(self.path(LOG), due_ms)
        self._remove_index_files()
        self.aborted.remove()
        self._indexes_saved = True

    def remove(self) -> None:
        """Remove the files, the batches first: the next start removes indexes without batches."""
        self._disk.remove(self.path(LOG))
        self._remove_index_files()
        self.aborted.remove()
        self._indexes_saved = True

    def _remove_index_files(self) -> None:
        """Remove the sparse indexes, which are rebuilt from the batches when they are missing."""
        for path in (self.path(OFFSET_INDEX), self.path(TIME_INDEX)):
            if self._disk.exists(path):
                self._disk.remove(path)
