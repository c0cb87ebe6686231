"""One partition's log on disk: append at the end, read anywhere, truncate, recover.

A log is a directory of segments, each named by its base offset. Appends go to the last one, the *active*
segment. The directory also holds the epoch history, producer snapshots and the topic's id; its layout is
described byte for byte in docs/format/log-directory.md.

An append is one ``write``, whole or not at all, and is complete when ``append`` returns: the process buffers
nothing. SIGKILL loses no appended record, but causes a scan at the next start. A power cut may lose the
records beyond the *recovery point*, which ``flush`` raises. A flush has three steps, because an fsync may be
slow and the partition's lock guards the log: ``begin_flush`` (under the lock), ``Flush.run`` (without it) and
``finish_flush`` (under the lock), which ignores the result if the log was truncated meanwhile.

How a log is read is in ``readable_log``. ``corruption`` is set when the log is damaged; see ``recovery``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.epoch_history import EarlierHistory, EpochHistory
from sparklog.model.errors import LogDirectoryError, SparklogError
from sparklog.model.ids import Offset, TopicId, TopicPartition
from sparklog.model.time import Clock
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Buffer, Disk
from sparklog.storage.flush import Flush
from sparklog.storage.late_removals import LateRemovals, remove_files
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_removal import DELETED_SUFFIX, STRAY_SUFFIX, remove_segments, rename_away
from sparklog.storage.readable_log import ReadableLog
from sparklog.storage.recovery.log_recovery import (
    CORRUPTION,
    Corruption,
    Proof,
    Recovered,
    recover,
    write_mark,
)
from sparklog.storage.retention import Retention
from sparklog.storage.segments.index import RELATIVE_MAX
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.snapshots import Snapshots, producer_batch, replay
from sparklog.storage.segments.swap import Swap
from sparklog.storage.small_files.epoch_file import EpochFile
from sparklog.storage.small_files.history_start import HistoryStart
from sparklog.storage.small_files.partition_metadata import settle_directory
from sparklog.storage.small_files.schema_file import SchemaFile

SNAPSHOT_BATCHES: Final = 4_096
"""Batches between two producer snapshots, so that a truncation need not replay a whole segment."""


class LogCorrupt(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """An append to a corrupt log. It is refused until ``truncate_to`` gives up the damaged records."""


@dataclass(frozen=True, slots=True)
class AppendedInfo:
    """What an append wrote."""

    first_offset: int
    last_offset: int
    size_bytes: int
    rolled: bool


def _ignore(_number: int) -> None:
    """The default of ``Log.before_cut`` and ``on_bytes``."""


class Log(ReadableLog):
    """A log with its epoch history and producer states. The partition's lock guards every call."""

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        disk: Disk,
        clock: Clock,
        recovered: Recovered,
    ) -> None:
        super().__init__(recovered, clock)
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.epochs: EpochHistory = recovered.epochs
        self.producers: ProducerStates = recovered.producers
        self.recovery_point = self.log_end_offset
        self.generation = 0
        """Raised by every truncation and renaming: a flush or a cleaning that began before is ignored."""
        self.before_cut: Callable[[int], None] = _ignore
        """Called with the new end before a truncation: checkpoints above that end must be lowered first."""
        self._disk = disk
        self._clock = clock
        self._aside = recovered.aside
        self._snapshots: Snapshots = recovered.snapshots
        self._unsynced: dict[int, Segment] = {segment.base_offset: segment for segment in recovered.scanned}
        on_disk = recovered.epochs_on_disk
        self._epoch_file = EpochFile(disk, directory, on_disk, not (on_disk and recovered.scanned))
        self._history_start = HistoryStart(disk, directory)
        self.schema = SchemaFile(disk, directory)
        self._names_changed = bool(recovered.scanned)
        self._is_linked = False
        """Whether the directory's own name was certainly synced."""
        self._sync_failed = False
        self._batches_since_snapshot = 0
        self._swap: Swap | None = None
        self.late_removals = LateRemovals(disk)
        """Renamed files of segments that retention removed."""

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        config: LogConfig,
        disk: Disk,
        clock: Clock,
        *,
        recovery_point: int,
        clean: bool,
        same_boot: bool = True,
        high_watermark: int = 0,
        log_start_offset: int = 0,
        on_bytes: Callable[[int], None] = _ignore,
    ) -> "Log":
        """Open and recover the log in ``directory``, which is created if it is missing.

        The keyword arguments are from the log directory's checkpoints, clean marker and boot id; they decide
        how much recovery checks. ``on_bytes`` is called with the number of bytes of each checked run.
        """
        known_id = settle_directory(disk, directory, topic_id)
        proof = Proof(
            clean=clean, same_boot=same_boot, recovery_point=recovery_point, high_watermark=high_watermark
        )
        recovered = recover(
            disk,
            directory,
            config,
            proof,
            log_start_offset=log_start_offset,
            now_ms=clock.wall_ms(),
            on_bytes=on_bytes,
        )
        log = cls(directory, topic_partition, known_id, config, disk, clock, recovered)
        log.recovery_point = Offset(min(recovery_point, log.log_end_offset))
        log._is_linked = recovery_point > 0
        log._settle_start(log_start_offset)
        return log

    def _settle_start(self, log_start_offset: int) -> None:
        if log_start_offset > self.log_end_offset and self.corruption is None:
            self.truncate_fully_and_start_at(log_start_offset)
        first, history = self.local_start_offset, self._history_start.offset
        self.local_start_offset = Offset(min(max(first, log_start_offset), self.log_end_offset))
        self.log_start_offset = self.local_start_offset
        if history is not None and history < first == self.local_start_offset:
            self.log_start_offset = Offset(history)
        self._history_start.settle(self.log_start_offset, self.local_start_offset)
        self.epochs.trim_to(self.log_start_offset)

    def __repr__(self) -> str:
        return f"Log({self.directory!r}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def disk(self) -> Disk:
        return self._disk

    # ---- appending -----------------------------------------------------------------------------------------

    def append(self, batches: Buffer, headers: Sequence[tuple[int, BatchHeader]]) -> AppendedInfo:
        """Write whole batches with their final offsets and epochs.

        ``headers`` are the positions in ``batches`` and the envelopes. After an OSError nothing was appended,
        and the partition should go offline. LogCorrupt if the log is corrupt at its end.
        """
        if self.corruption is not None and self.corruption.ends_log:
            raise LogCorrupt(
                f"{self} refuses appends because it is corrupt: {self.corruption.reason}; truncate it to "
                f"offset {self.corruption.offset} first"
            )
        first, last = headers[0][1], headers[-1][1]
        if first.base_offset < self.log_end_offset:
            raise ValueError(f"append of offset {first.base_offset} to {self}: it is not the end")
        rolled = self._roll_if_due(
            first, last, len(batches), max(header.max_timestamp_ms for _, header in headers)
        )
        self._snapshot_if_due()
        active = self._segments[-1]
        if any(header.is_control for _, header in headers):
            self._search.aborted_of(active)  # rebuilt before the append, a damaged index lacks these batches
        active.append(batches, headers)
        self._unsynced[active.base_offset] = active
        self.log_end_offset = Offset(last.next_offset)
        aborted: list[AbortedTransaction] = []
        for position, header in headers:
            if header.leader_epoch >= 0:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            if header.has_producer:
                batch = memoryview(batches)[position : position + header.size_bytes]
                ended = self.producers.apply(producer_batch(header, batch), self._clock.wall_ms())
                aborted += [] if ended is None else [ended]
                self._batches_since_snapshot += 1
        active.aborted.append(aborted)
        return AppendedInfo(first.base_offset, last.last_offset, len(batches), rolled)

    def _roll_if_due(
        self, first: BatchHeader, last: BatchHeader, size_bytes: int, max_timestamp_ms: int
    ) -> bool:
        active = self._segments[-1]
        now_ms = self._clock.wall_ms()
        if not active.must_roll(size_bytes, last.last_offset, max_timestamp_ms, self.config, now_ms):
            return False
        if last.last_offset - self.log_end_offset > RELATIVE_MAX:
            # A compacted log may have a hole that is too large for the relative offset of an index entry.
            self._roll_at(first.base_offset)
        else:
            self._roll_at(self.log_end_offset)
        return True

    def _snapshot_if_due(self) -> None:
        if self._batches_since_snapshot >= SNAPSHOT_BATCHES:
            self._batches_since_snapshot = 0
            self._snapshots.save(self.log_end_offset, self.producers)
            self._snapshots.thin(self.segment_bases)

    def roll(self) -> None:
        """Seal the active segment and begin a new one, unless the active segment is empty."""
        if self._segments[-1].size_bytes:
            self._roll_at(self.log_end_offset)

    def _roll_at(self, base_offset: int) -> None:
        active = self._segments[-1]
        if active.base_offset == base_offset:
            return
        active.end_offset = base_offset
        active.seal()
        self._snapshots.save(base_offset, self.producers)
        self._batches_since_snapshot = 0
        segment = self._new_segment(base_offset)
        self._segments.append(segment)
        self._unsynced[active.base_offset] = active
        self._unsynced[base_offset] = segment
        self._names_changed = True
        self._search.open.keep(active, segment)

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment.create(self._disk, self.directory, base_offset, self.config, self._clock.wall_ms())

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Add a leader epoch to the history before the epoch's first append."""
        self.epochs.assign(epoch, start_offset)

    # ---- damage -------------------------------------------------------------------------------------------

    def note_damage(self, found: Corruption) -> None:
        """Record damage, also on disk, until a truncation or retention removes the damaged records."""
        if self.corruption is None or found.offset < self.corruption.offset:
            write_mark(self._disk, self.directory, found.offset)
            self.corruption = found

    def _forget_damage(self) -> None:
        self._disk.remove(f"{self.directory}/{CORRUPTION}")
        self.corruption = None

    # ---- cutting -------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove every batch with a record at or beyond ``offset``; the new log end offset.

        The new end is the end of the last remaining batch, so that a restart finds the same end. It is before
        ``offset`` when ``offset`` is inside a batch or a hole. A truncation at a corruption clears the
        corruption and gives up the records beyond it.
        """
        if offset < 0:
            raise ValueError(f"truncating {self} to {offset}: offsets are not negative")
        if offset >= self.log_end_offset and self.corruption is None:
            self.epochs.truncate_to(offset)
            return self.log_end_offset
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, history=self.history_before(offset))
            return self.log_end_offset
        index = self._search.index_of(min(offset, self.log_end_offset))
        kept = self._segments[index]
        cut = kept.locate(offset)
        end_offset = kept.end_offset_at(cut.position if cut else kept.size_bytes)
        self._search.aborted_of(kept)
        had_producers = self._has_producers_from(end_offset)
        self._lower_end(end_offset)
        self._remove_segments(self._segments[index + 1 :])
        del self._segments[index + 1 :]
        if cut is not None:
            kept.truncate(cut)
        self._settle_cut(kept)
        if had_producers:
            self.producers = replay(self._snapshots, self._segments, end_offset, self._clock.wall_ms())
        return self.log_end_offset

    def producers_before(self, offset: int) -> ProducerStates:
        """The producers before ``offset``, for a log that begins there.

        If a segment begins at ``offset``, they have the transactions that were open there. Otherwise they are
        the part of the present states from before it.
        """
        saved = self._snapshots.load_latest(offset) if offset in self._snapshots.offsets else None
        states = saved[1] if saved is not None and saved[0] == offset else self.producers
        return states.before(offset)

    def history_before(self, offset: int) -> EarlierHistory | None:
        """What the remote store has before ``offset``, of what is not on this disk; None if nothing."""
        if not self.log_start_offset < offset <= self.local_start_offset:
            return None
        return EarlierHistory(self.log_start_offset, self.epochs.before(offset))

    def truncate_fully_and_start_at(
        self,
        offset: int,
        producers: ProducerStates | None = None,
        history: EarlierHistory | None = None,
    ) -> None:
        """Remove all records; the next record gets ``offset``. ``producers``: the states before ``offset``.
        ``history``: what a remote store has before ``offset``; without it the log start is there too.

        If the log ended at ``offset``, it ends there also after a crash in the middle of this method;
        otherwise the replica could be elected after the crash and assign offsets a second time.
        """
        goes_on = offset == self.log_end_offset and self.corruption is None
        self._lower_end(0)
        log_start = offset if history is None else history.log_start_offset
        self.epochs.begin_with(() if history is None else history.epochs)
        self._history_start.before_removal(log_start, offset)
        self._epoch_file.keep(self.epochs)  # else, after a crash, the file has epochs of removed batches
        self.producers = ProducerStates() if producers is None else producers
        if goes_on:
            self._snapshots.hand_over(offset, self.producers)
            if self._segments[-1].base_offset < offset:
                self._segments.append(self._new_segment(offset))
            self._remove_segments(self._segments[:-1], oldest_first=True)
        else:
            self._remove_segments(self._segments)
            self._snapshots.hand_over(offset, self.producers)  # last: these states are not the old log's
            self._segments.append(self._new_segment(offset))
        del self._segments[:-1]
        self.log_start_offset, self.local_start_offset = Offset(log_start), Offset(offset)
        self.log_end_offset = Offset(offset)
        self._settle_cut(self._segments[0])
        self._history_start.settle(log_start, offset)

    def start_within(
        self, batches: Buffer, headers: Sequence[tuple[int, BatchHeader]], log_start_offset: int
    ) -> None:
        """Remove all records, and begin at ``log_start_offset``, which is within the first of ``batches``."""
        self.truncate_fully_and_start_at(headers[0][1].base_offset, self.producers)
        self.append(batches, headers)
        self.raise_log_start(log_start_offset)

    def _has_producers_from(self, offset: int) -> bool:
        """Whether a truncation to ``offset`` may remove a batch that the producer states contain."""
        if self.corruption is not None or not self.producers.producers:
            return bool(self.producers.producers)
        for segment in self._segments[self._search.index_of(offset) :]:
            if any(header.has_producer for _, header in segment.headers_from(offset)):
                return True
        return False

    def _lower_end(self, end_offset: int) -> None:
        """Before a truncation: lower checkpoints, and remove snapshots and epochs, beyond the new end."""
        self.generation += 1
        if self._swap is not None:
            self._swap.take_back()
            self._swap = None
        self.log_end_offset = Offset(end_offset)
        self.recovery_point = Offset(min(self.recovery_point, end_offset))
        self.log_start_offset = Offset(min(self.log_start_offset, end_offset))
        self.local_start_offset = Offset(min(self.local_start_offset, end_offset))
        self.before_cut(end_offset)
        self._snapshots.remove_after(end_offset)
        self.epochs.truncate_to(end_offset)

    def _remove_segments(self, segments: Sequence[Segment], *, oldest_first: bool = False) -> None:
        remove_segments(self._disk, self.directory, segments, self._aside, oldest_first=oldest_first)
        for segment in segments:
            self._unsynced.pop(segment.base_offset, None)
        self._aside = ()

    def _settle_cut(self, active: Segment) -> None:
        if self.corruption is not None:
            active.cut_file(active.size_bytes)
            self._forget_damage()
        active.end_offset = self.log_end_offset
        self._unsynced[active.base_offset] = active
        self._names_changed = True
        self._search.open.forget_all_but(self._segments[:-1])

    def raise_log_start(self, offset: int) -> bool:
        """Raise the log start to ``offset``, and the local start if it is before that; whether the log start
        changed. Removes no segment.
        """
        if offset <= self.log_start_offset:
            return False
        if offset > self.log_end_offset:
            raise ValueError(f"log start {offset} is beyond the end of {self}")
        self.log_start_offset = Offset(offset)
        self.local_start_offset = Offset(max(self.local_start_offset, offset))
        self._history_start.settle(self.log_start_offset, self.local_start_offset)
        self.epochs.trim_to(offset)
        return True

    def delete_old_segments(self, high_watermark: int) -> int:
        """Remove the segments that retention selects, oldest first; how many.

        Removes only whole segments below the high watermark, and none during a swap of compaction. Of a log
        with records in a remote store only those below the log start go: what is too old or too much there
        is decided for the history as a whole.
        """
        if self._swap is not None:
            return 0
        doomed = Retention(
            config=self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
            now_ms=self._clock.wall_ms(),
            limits_apply=self.log_start_offset == self.local_start_offset,
        ).count_doomed(self._segments)
        if doomed == len(self._segments):
            self.roll()
        self._give_up_front(doomed, keeps_history=False)
        return doomed

    def delete_local_segments(self, offset: int) -> int:
        """Remove the sealed segments that end at or before ``offset``; how many. Their records, all committed
        and in the remote store, stay part of the log: only its local start rises.
        """
        if self._swap is not None:
            return 0
        doomed = sum(segment.end_offset <= offset for segment in self._segments[:-1])
        self._give_up_front(doomed, keeps_history=True)
        return doomed

    def _give_up_front(self, doomed: int, *, keeps_history: bool) -> None:
        """Remove the first ``doomed`` segments, which are not all."""
        if not doomed:
            return
        start = self._segments[doomed].base_offset
        # Recovery could derive these snapshots, and the epochs, only from the batches that are removed here.
        # After a power cut in the middle of it the log may begin with any of these segments.
        self._snapshots.keep(segment.base_offset for segment in self._segments[1 : doomed + 1])
        self._epoch_file.keep(self.epochs)
        if keeps_history:
            self._history_start.before_removal(self.log_start_offset, start)
            self.local_start_offset = Offset(max(self.local_start_offset, start))
        else:
            self.raise_log_start(start)
        due_ms = self._clock.wall_ms() + self.config.file_delete_delay_ms
        for segment in self._segments[:doomed]:
            segment.give_up(self.late_removals, due_ms)
            self._unsynced.pop(segment.base_offset, None)
        del self._segments[:doomed]
        self._names_changed = True
        self._search.open.forget_all_but(self._segments[:-1])
        self._snapshots.remove_before(self._segments[0].base_offset)
        if self.corruption is not None and self.corruption.offset < self._segments[0].base_offset:
            self._forget_damage()

    # ---- compaction ----------------------------------------------------------------------------------------

    def begin_swap(self, swap: Swap) -> bool:
        """Announce that a cleaned segment will replace others; False if the log changed. See ``swap``."""
        if self._swap is not None or swap.generation != self.generation:
            return False
        if not set(swap.sources) <= set(self._segments[:-1]):
            return False
        swap.announce()
        self._swap = swap
        return True

    def finish_swap(self, swap: Swap) -> bool:
        """Replace the sources by the cleaned segment; False if a truncation has cancelled the swap."""
        if self._swap is not swap:
            return False
        self._swap = None
        swap.carry_out()
        index = self._segments.index(swap.sources[0])
        self._segments[index : index + len(swap.sources)] = [swap.fresh]
        for segment in swap.sources:
            self._unsynced.pop(segment.base_offset, None)
        self._unsynced[swap.fresh.base_offset] = swap.fresh
        self._names_changed = True
        self._search.open.forget_all_but(self._segments[:-1])
        self._snapshots.thin(self.segment_bases)
        return True

    # ---- durability ----------------------------------------------------------------------------------------

    def begin_flush(self) -> Flush:
        """First step of a flush: what to sync for the log as it is now."""
        if self._sync_failed:
            raise LogDirectoryError(f"an earlier fsync of {self} failed: records beyond it may be lost")
        paths = self._epoch_file.write_for_sync(self.epochs)
        self._names_changed |= bool(paths)
        segments = list(self._unsynced.values())
        self._unsynced.clear()
        for segment in segments:
            if segment is not self._segments[-1]:
                segment.seal()
                paths += segment.index_paths()
            if segment.base_offset in self._snapshots.offsets:
                paths.append(self._snapshots.path(segment.base_offset))
        files = tuple(segment.file for segment in segments)
        for segment in segments:
            self._search.open.keep(segment, self._segments[-1])
        directories = [self.directory] if self._names_changed or not self._is_linked else []
        if not self._is_linked:
            directories.append(self.directory.rpartition("/")[0] or ".")
        self._names_changed, self._is_linked = False, True
        return Flush(
            self.log_end_offset, self.generation, files, tuple(paths), tuple(directories), self._disk
        )

    def finish_flush(self, flush: Flush) -> int:
        """Last step of a flush: raise the recovery point unless the log was truncated since; return it."""
        if flush.generation == self.generation and self.corruption is None:
            self.recovery_point = Offset(max(self.recovery_point, flush.offset))
        return self.recovery_point

    def fail_flush(self) -> None:
        """Last step of a failed flush. Refuses all later flushes: the kernel may have dropped pages."""
        self._sync_failed = True

    def flush(self) -> int:
        """Sync everything; the flushed offset. After an OSError the log refuses further flushes."""
        flush = self.begin_flush()
        try:
            flush.run()
        except OSError:
            self.fail_flush()
            raise
        return self.finish_flush(flush)

    def close(self) -> None:
        """Write and sync all files that a clean start needs. The log can still be used afterwards."""
        active = self._segments[-1]
        active.seal()
        self._names_changed = True
        if self.corruption is None:
            self._snapshots.save(self.log_end_offset, self.producers)
            self._disk.sync_file(self._snapshots.path(self.log_end_offset))
        for path in active.index_paths():
            self._disk.sync_file(path)
        remove_files(self._disk, self.late_removals.take_all())
        self.flush()

    def delete(self, on_renamed: Callable[[], None] = lambda: None) -> None:
        """Remove the log. It is renamed first, so that after a crash no start opens half of a log.

        ``on_renamed`` is called before the renamed directory is removed.
        """
        left = self._rename(DELETED_SUFFIX)
        on_renamed()
        self._disk.remove_directory(left)

    def set_aside(self) -> str:
        """Rename the log's directory, so that no start opens it as a partition's log; the new path."""
        return self._rename(STRAY_SUFFIX)

    def _rename(self, suffix: str) -> str:
        self.generation += 1
        return rename_away(self._disk, self.directory, self.topic_id, suffix)

    def check_invariants(self) -> None:
        self.epochs.check_invariants()
        self.producers.check_invariants()
        assert 0 <= self.log_start_offset <= self.local_start_offset <= self.log_end_offset, self
        assert self.recovery_point <= self.log_end_offset, self
        bases = self.segment_bases
        assert bases == sorted(set(bases)), (self, bases)
        assert all(one.end_offset == other.base_offset for one, other in pairwise(self._segments)), self
        assert self._segments[-1].end_offset == self.log_end_offset, self
