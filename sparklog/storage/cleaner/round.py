"""One round of cleaning one log, step by step: survey, learn, copy.

- *Survey*: read the envelopes from the log's start to the end of the dirty part, to find aborted and open
  transactions. (Kafka uses its transaction index.)
- *Learn*: add the keys of the dirty part to the offset map. A full map ends the dirty part early.
- *Copy*: rewrite all closed segments up to that end, merging neighbours that fit into one segment. Each
  result replaces its sources (``swap``) before the next is written.

``run`` is a generator that yields the bytes read and written since the last yield. Its driver throttles it,
stops it by closing it, or, in the simulation, interleaves it with other work. Memory: the map, one chunk of
the log and its decompressed batches. CRCs are checked, because a damaged batch must not get a new, matching
CRC. CorruptBatch ends the round; see ``broker.disks.log_cleaner``.
"""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sparklog.core.compaction import DirtyRange, TransactionSurvey, grouped
from sparklog.model.errors import CorruptBatch, SparklogError
from sparklog.records.control import end_of_transaction
from sparklog.records.decoding import Batch
from sparklog.records.envelope import BatchHeader, crc_matches, parse_header, split
from sparklog.records.filtering.filter import decode, decode_runs
from sparklog.records.filtering.run import Run
from sparklog.storage.cleaner.offset_map import OffsetMap
from sparklog.storage.cleaner.survivors import Survivors
from sparklog.storage.cleaner.view import CleaningAborted, LogAccess, LogView
from sparklog.storage.disk import File
from sparklog.storage.segments.scan import headers
from sparklog.storage.segments.segment import INDEXES, LOG, Segment, file_name
from sparklog.storage.segments.swap import ASIDE_SUFFIX, CLEANED_SUFFIX, Swap
from sparklog.storage.segments.transaction_index import AbortedEntries, read_entries

_SURVEY_BATCHES: Final = 10_000
"""Envelopes that the survey reads between two yields."""


@dataclass(frozen=True, slots=True)
class CleanerMemory:
    """The memory that one round may use."""

    map_bytes: int = 134_217_728
    load_factor: float = 0.9
    chunk_bytes: int = 4_194_304


@dataclass(slots=True)
class RoundReport:
    """The progress of a round. ``end``: the next round's first dirty offset after this round succeeds."""

    end: int
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keys: int = 0
    segments_before: int = 0
    segments_after: int = 0


class Round:
    """A round over ``dirty``. ``now_ms``: wall-clock time. ``seed``: makes the hashes unpredictable."""

    def __init__(
        self,
        access: LogAccess,
        view: LogView,
        dirty: DirtyRange,
        *,
        memory: CleanerMemory,
        now_ms: int,
        seed: int,
    ) -> None:
        self.report = RoundReport(dirty.end)
        self._access = access
        self._view = view
        self._dirty = dirty
        self._disk = view.disk
        self._memory = memory
        self._now_ms = now_ms
        self._seed = seed
        self._survey = TransactionSurvey()
        self._replaced = 0

    def run(self) -> Iterator[int]:
        """Run the round. CleaningAborted if the log changed; CorruptBatch or OSError if a read failed."""
        try:
            dirty_records = yield from self._look_over()
            if self.report.end > self._dirty.first_dirty:
                offset_map = OffsetMap(
                    self._memory.map_bytes, self._memory.load_factor, dirty_records, self._seed
                )
                yield from self._learn(offset_map)
                yield from self._copy(offset_map)
        except (CorruptBatch, OSError) as error:
            sources = self._view.closed
            present = self._access.remaining(sources, self._view.generation)
            if present is None or (isinstance(error, FileNotFoundError) and self._lost(present)):
                raise CleaningAborted(f"the log changed while it was cleaned ({error})") from error
            raise

    def _lost(self, present: Sequence[Segment]) -> bool:
        """Whether retention removed segments that this round has not replaced."""
        return len(present) + self._replaced < len(self._view.closed)

    # ---- survey --------------------------------------------------------------------------------------------

    def _look_over(self) -> Generator[int, None, int]:
        """Record the transactions; the greatest number of dirty records."""
        records = seen = 0
        for segment in self._segments_below(self._dirty.end):
            file = self._open(segment)
            for position, header in headers(file, 0, segment.size_bytes):
                if header.base_offset >= self._dirty.end:
                    break
                if header.next_offset > self._dirty.first_dirty:
                    records += header.record_count
                if header.is_transactional:
                    self._note(file, position, header)
                seen += 1
                if seen % _SURVEY_BATCHES == 0:
                    yield 0
                    self._check_current()
        undecided = self._survey.first_undecided()
        if undecided is not None:
            self.report.end = min(self.report.end, undecided)
        return records

    def _note(self, file: File, position: int, header: BatchHeader) -> None:
        if not header.is_control:
            self._survey.on_data(header.producer_id, header.base_offset)
        elif header.record_count:
            batch = file.pread(header.size_bytes, position)
            if not crc_matches(batch, 0, header):
                raise CorruptBatch(f"the CRC of the control batch at offset {header.base_offset} is wrong")
            end = end_of_transaction(batch, header)
            if end is not None:
                self._survey.on_marker(header.producer_id, header.base_offset, is_commit=end.is_commit)

    # ---- learn ---------------------------------------------------------------------------------------------

    def _learn(self, offset_map: OffsetMap) -> Iterator[int]:
        first_dirty = self._dirty.first_dirty
        for segment in self._segments_below(self.report.end):
            if segment.end_offset <= first_dirty:
                continue
            for buffer, batches in self._chunks(segment):
                dirty = [
                    batch
                    for batch in batches
                    if batch[1].next_offset > first_dirty and self._has_keys(batch[1])
                ]
                for run in decode_runs(buffer, dirty):
                    if not self._put(offset_map, run, buffer):
                        return
                yield len(buffer)
                self._check_current()
                if batches[-1][1].next_offset >= self.report.end:
                    break
        self.report.keys = offset_map.entries

    def _has_keys(self, header: BatchHeader) -> bool:
        """Whether a batch has dirty records that replace earlier ones. Aborted records never do."""
        if header.next_offset <= self._dirty.first_dirty or header.base_offset >= self.report.end:
            return False
        if not header.record_count or header.is_control:
            return False
        return not (
            header.is_transactional and self._survey.is_aborted(header.producer_id, header.base_offset)
        )

    def _put(self, offset_map: OffsetMap, run: Run, buffer: bytes) -> bool:
        """Add a run's keys to the map. False if a batch did not fit: the round ends before that batch."""
        if _learn_run(offset_map, run):
            return True
        for position, header in run.batches:
            batch = memoryview(buffer)[position : position + header.size_bytes]
            if not _learn_run(offset_map, decode(batch, (position, header))):
                if not offset_map.entries:
                    raise SparklogError(
                        f"the {header.record_count} records of the batch at offset {header.base_offset} have "
                        f"more keys than the {offset_map.room} that the offset map can hold: raise "
                        "log.cleaner.dedupe.buffer.size"
                    )
                self.report.end = header.base_offset
                self.report.keys = offset_map.entries
                return False
        return True

    # ---- copy ----------------------------------------------------------------------------------------------

    def _copy(self, offset_map: OffsetMap) -> Iterator[int]:
        view = self._view
        sources = self._segments_below(self.report.end)
        for group in grouped(view.extents[: len(sources)], view.rules):
            segments: tuple[Segment, ...] = tuple(sources[index] for index in group)
            while segments := self._present(segments):
                if (yield from self._rewrite(segments, offset_map)):
                    break

    def _present(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        present = self._access.remaining(segments, self._view.generation)
        if present is None:
            raise CleaningAborted("the log changed while it was cleaned")
        return present

    def _rewrite(self, sources: tuple[Segment, ...], offset_map: OffsetMap) -> Generator[int, None, bool]:
        """Rewrite ``sources`` as one segment and swap it in; False if some were removed meanwhile."""
        first, last = sources[0], sources[-1]
        path = f"{first.directory}/{file_name(first.base_offset, CLEANED_SUFFIX)}"
        if self._disk.exists(path):
            self._disk.remove(path)
        output = self._disk.open(path, create=True)
        announced = False
        try:
            fresh = Segment(
                self._disk,
                first.directory,
                first.base_offset,
                self._view.index_interval_bytes,
                max(segment.created_ms for segment in sources),
            )
            fresh.forget_batches()
            fresh.aborted.forget()
            survivors = Survivors(
                offset_map,
                self._survey,
                self._view.producers,
                self._view.epoch_starts,
                end=self.report.end,
                segment_end=last.end_offset,
                now_ms=self._now_ms,
                delete_retention_ms=self._view.rules.delete_retention_ms,
            )
            yield from self._write(sources, survivors, output, fresh)
            if len(sources) == 1 and survivors.changed_nothing:
                self._count(sources, survivors)
                return True
            fresh.end_offset = last.end_offset
            output.fsync()
            fresh.save_aside(ASIDE_SUFFIX)
            swap = Swap(sources, fresh, self._view.generation, self._disk)
            announced = self._swap(swap)
            if announced:
                self._replaced += len(sources)
                self._count(sources, survivors)
            return announced
        finally:
            if not announced:
                for left in (path, *(first.path(one) + ASIDE_SUFFIX for one in INDEXES)):
                    with contextlib.suppress(FileNotFoundError):
                        self._disk.remove(left)

    def _write(
        self, sources: Sequence[Segment], survivors: Survivors, output: File, fresh: Segment
    ) -> Iterator[int]:
        position = 0
        for source in sources:
            aborted = {entry.last_offset: entry for entry in self._aborted_of(source)}
            for buffer, batches in self._chunks(source):
                pieces = survivors.of(buffer, batches)
                data = b"".join(piece for piece, _ in pieces)
                output.append(data)
                for _, header in pieces:
                    fresh.note_batch(position, header)
                    if header.is_control and header.record_count and header.base_offset in aborted:
                        fresh.aborted.note(aborted[header.base_offset])
                    position += header.size_bytes
                self.report.bytes_written += len(data)
                yield len(buffer) + len(data)
                self._check_current()

    def _aborted_of(self, source: Segment) -> AbortedEntries:
        """The aborted transactions whose markers are in ``source``; those whose markers lose their records
        are forgotten, because nothing is left of them.
        """
        entries = read_entries(self._disk, source.aborted.path, source.base_offset)
        if entries is None:
            raise CorruptBatch(f"{source.aborted.path} was damaged while its log was cleaned")
        return entries

    def _count(self, sources: Sequence[Segment], survivors: Survivors) -> None:
        self.report.segments_before += len(sources)
        self.report.segments_after += 1
        self.report.records_read += survivors.records_read
        self.report.records_kept += survivors.records_kept

    def _swap(self, swap: Swap) -> bool:
        if not self._access.begin_swap(swap):
            return False
        try:
            swap.sync()
        except OSError as error:
            self._access.fail(error)
            raise
        if not self._access.finish_swap(swap):
            raise CleaningAborted("the log was cut while its cleaned segment was put in place")
        return True

    # ---- reading -------------------------------------------------------------------------------------------

    def _segments_below(self, end: int) -> list[Segment]:
        return [segment for segment in self._view.closed if segment.base_offset < end]

    def _open(self, segment: Segment) -> File:
        """Open a separate file, because the segment's own file is opened and closed under the log's lock."""
        return self._disk.open(segment.path(LOG))

    def _chunks(self, segment: Segment) -> Iterator[tuple[bytes, list[Batch]]]:
        """The batches of a segment in chunks: the bytes, and the positions and envelopes in them."""
        file, position, end = self._open(segment), 0, segment.size_bytes
        while position < end:
            buffer = file.pread(min(self._memory.chunk_bytes, end - position), position)
            batches = split(buffer)
            if not batches:
                buffer = file.pread(parse_header(buffer).size_bytes, position)
                batches = split(buffer)
            if not batches:
                raise CorruptBatch(f"{file.path} has no whole batch at {position}")
            for start, header in batches:
                if not crc_matches(buffer, start, header):
                    raise CorruptBatch(
                        f"{file.path} at {position + start}: the CRC {header.crc:#010x} is wrong"
                    )
            last_position, last = batches[-1]
            used = last_position + last.size_bytes
            self.report.bytes_read += used
            yield buffer[:used], batches
            position += used

    def _check_current(self) -> None:
        self._present(())


def _learn_run(offset_map: OffsetMap, run: Run) -> bool:
    keys, offsets = run.keys, run.offsets
    if keys.null_count:
        keyed = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        keys, offsets = keys.take(pa.array(keyed)), offsets[keyed]
    return offset_map.put(keys, offsets)
