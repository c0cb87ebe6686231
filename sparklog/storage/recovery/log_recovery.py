"""Opening a log's directory: find the segments, check what a crash may have changed, rebuild indexes.

After a clean close nothing is scanned: the last segment's index and a few envelopes show the log's end.
Otherwise every byte from the segment with the recovery point on is checked, and indexes, epoch history and
producer states are rebuilt from those batches. A walk that stops early has met one of two cases. Confusing
them loses acknowledged records:

- A **torn tail** is cut off. On the same boot, where the page cache survived, it is an incomplete last batch:
  the process died inside ``write``. After a reboot without a clean stop, it is everything from the first bad
  batch beyond the recovery point, because nothing there was synced; then the replica is unproven and must
  catch up before it counts.
- Anything else is **corruption**: a complete batch with a wrong CRC, a hole between segments, an end before
  the recovery point or the checkpointed high watermark. It is reported, not repaired: the log ends before it,
  the bytes stay, the file ``corruption`` records it over restarts, and appends are refused until the broker
  truncates the log there and fetches again. The only replica in sync must not do so.

Indexes of segments that are not checked are verified when they are used; see ``segment``.
"""

import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EpochEntry, EpochHistory
from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Disk
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.intact_run import IntactRun
from sparklog.storage.segments.scan import Trouble, check, headers
from sparklog.storage.segments.segment import LOG, SUFFIXES, Segment
from sparklog.storage.segments.snapshots import Snapshots, replay, stored_batch
from sparklog.storage.segments.swap import finish_interrupted
from sparklog.storage.small_files import checkpoints

SEGMENT_FILE: Final = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex)")
LEFTOVER: Final = re.compile(r".*\.(tmp|deleted|cleaned|swap)")
CORRUPTION: Final = "corruption"
COPY_BYTES: Final = 1_048_576

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Corruption:
    """Damage from ``offset`` on, at ``position`` of the segment with base offset ``segment_base``.

    If a start found the damage, the log ends there. If a running log found it, ``next_offset`` is its
    exclusive end, and later records can be read.
    """

    offset: int
    segment_base: int
    position: int
    reason: str
    next_offset: int | None = None

    @property
    def ends_log(self) -> bool:
        return self.next_offset is None

    def covers(self, offset: int) -> bool:
        return offset >= self.offset and (self.next_offset is None or offset < self.next_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the last stop of the broker proves about its files.

    ``clean``: the broker closed its logs. ``same_boot``: the machine has not rebooted since. Offsets below
    ``recovery_point`` were synced, and those below ``high_watermark`` were committed.
    """

    clean: bool
    same_boot: bool
    recovery_point: int = 0
    high_watermark: int = 0

    @property
    def cache_survived(self) -> bool:
        return self.clean or self.same_boot


@dataclass(slots=True)
class Recovered:
    """A log after recovery. ``aside``: base offsets of unloaded segments beyond a corruption, unchanged."""

    segments: list[Segment]
    snapshots: Snapshots
    epochs: EpochHistory
    producers: ProducerStates
    corruption: Corruption | None = None
    aside: tuple[int, ...] = ()
    scanned: tuple[Segment, ...] = ()
    epochs_on_disk: tuple[EpochEntry, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset


def sweep(disk: Disk, directory: str) -> list[int]:
    """Remove the leftovers of interrupted work; the base offsets of all segments, sorted."""
    names = disk.list(directory)
    bases = sorted(
        int(name[: -len(LOG)]) for name in names if SEGMENT_FILE.fullmatch(name) and name.endswith(LOG)
    )
    known = set(bases)
    for name in names:
        match = SEGMENT_FILE.fullmatch(name)
        if LEFTOVER.fullmatch(name) or (match and int(match[1]) not in known):
            disk.remove(f"{directory}/{name}")
    return bases


def _ignore(_count: int) -> None:
    """The default of ``on_bytes``."""


def recover(
    disk: Disk,
    directory: str,
    config: LogConfig,
    proof: Proof,
    *,
    log_start_offset: int,
    now_ms: int,
    on_bytes: Callable[[int], None] = _ignore,
) -> Recovered:
    """Recover the log in ``directory``, which must exist.

    ``on_bytes`` is called with the number of bytes of each checked run.
    """
    finish_interrupted(disk, directory)
    bases = sweep(disk, directory)
    marked = _read_mark(disk, directory, bases)
    if not bases:
        segments = [Segment.create(disk, directory, log_start_offset, config, now_ms)]
    else:
        ends = [*bases[1:], bases[-1]]
        segments = [
            Segment.found(disk, directory, base, end, config, now_ms)
            for base, end in zip(bases, ends, strict=True)
        ]
    first = _first_to_check(segments, proof, marked)
    snapshots = Snapshots(disk, directory)
    work = _Recovery(disk, directory, config, proof, log_start_offset, now_ms, segments, snapshots, on_bytes)
    first = work.run(first)
    work.compare_with_checkpoints(marked)
    return work.result(first)


def _first_to_check(segments: list[Segment], proof: Proof, marked: int | None) -> int:
    """Index of the first segment to check; the number of segments if none must be checked.

    A segment that ends exactly at the recovery point is checked after a power cut. It may have been sealed
    after the flush: then its batches are synced, but its indexes may be empty, which cannot be detected.
    """
    point = proof.recovery_point if marked is None else min(marked, proof.recovery_point)
    if not proof.cache_survived:
        point -= 1
    holding = max(0, bisect_right([segment.base_offset for segment in segments], point) - 1)
    last = len(segments) - 1
    if not proof.clean or marked is not None:
        return holding
    if not segments[last].settle_end():
        return min(holding, last)
    return len(segments) if segments[last].end_offset <= proof.recovery_point else holding


class _Recovery:
    """The state of one call of ``recover``."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        proof: Proof,
        log_start_offset: int,
        now_ms: int,
        segments: list[Segment],
        snapshots: Snapshots,
        on_bytes: Callable[[int], None],
    ) -> None:
        self.on_bytes = on_bytes
        self.disk = disk
        self.directory = directory
        self.config = config
        self.proof = proof
        self.log_start_offset = log_start_offset
        self.now_ms = now_ms
        self.segments = segments
        self.snapshots = snapshots
        self.epochs = EpochHistory()
        self.epoch_met = -1
        self.producers = ProducerStates()
        self.epochs_on_disk: tuple[EpochEntry, ...] = ()
        self.corruption: Corruption | None = None
        self.aside: tuple[int, ...] = ()

    def run(self, first: int) -> int:
        """Recover; the index of the first checked segment, which is 0 if a trusted segment is damaged."""
        try:
            self._take_over_trusted(first)
        except CorruptBatch as damage:
            logger.error(
                "%s: a synced segment is damaged, so all segments are checked: %s", self.directory, damage
            )
            first = 0
            self._take_over_trusted(first)
        self._check_from(first)
        return first

    def _take_over_trusted(self, first: int) -> None:
        """Load epochs and producer states of the segments before ``first``; CorruptBatch on damage."""
        trusted = self.segments[:first]
        checked_from = self.segments[first].base_offset if first < len(self.segments) else None
        self.epochs = self._trusted_epochs(trusted, checked_from)
        end_offset = trusted[-1].end_offset if checked_from is None else checked_from
        self.snapshots.remove_after(end_offset)
        self.producers = replay(self.snapshots, trusted, end_offset, self.now_ms)

    def _check_from(self, first: int) -> None:
        for index in range(first, len(self.segments)):
            if index > first and (hole := self._hole_before(index)):
                self._judge(index - 1, Trouble(self.segments[index - 1].size_bytes, False, hole))
                return
            trouble = self._check_segment(index)
            if trouble is not None:
                self._judge(index, trouble)
                return

    def _hole_before(self, index: int) -> str | None:
        """A text about the hole before a segment, or None; compaction may leave holes."""
        before, segment = self.segments[index - 1], self.segments[index]
        if segment.base_offset > before.end_offset and "compact" in self.config.cleanup_policy:
            before.end_offset = segment.base_offset
        if segment.base_offset == before.end_offset:
            return None
        return f"the next segment begins at offset {segment.base_offset}, not at {before.end_offset}"

    def _trusted_epochs(self, trusted: list[Segment], checked_from: int | None) -> EpochHistory:
        """The epochs of the segments that are not checked: from the file, and earlier ones from envelopes."""
        known = checkpoints.read_epochs(self.disk, f"{self.directory}/{checkpoints.EPOCHS}") or EpochHistory()
        self.epochs_on_disk = tuple(known.entries)
        epochs = self._with_front(known, trusted)
        if checked_from is not None:
            epochs.truncate_to(checked_from)
        return epochs

    def _with_front(self, known: EpochHistory, trusted: list[Segment]) -> EpochHistory:
        """``known``, preceded by the epochs of earlier batches.

        The file may be trimmed to a log start that is in no checkpoint: the process ended between the two
        writes, or the checkpoint is damaged. A leader whose history begins after its log start would treat
        epochs of its own batches as unknown, and make followers truncate those batches.
        """
        if not trusted:
            return known
        known_from = known.entries[0].start_offset if known.entries else trusted[-1].end_offset
        if known.entries and known_from <= max(trusted[0].base_offset, self.log_start_offset):
            return known
        whole = EpochHistory()
        for header in _headers_before(known_from, trusted):
            _assign(whole, header)
        for entry in known.entries:
            whole.assign(entry.epoch, entry.start_offset)
        for segment in trusted[:-1]:
            segment.cool()
        return whole

    def _check_segment(self, index: int) -> Trouble | None:
        """Check one segment and rebuild its indexes, epochs and producer states; the trouble, or None."""
        segment = self.segments[index]
        segment.forget_batches()
        segment.aborted.forget()
        self.producers.transactions.on_high_watermark(self.proof.high_watermark)
        if index:
            self.snapshots.save(segment.base_offset, self.producers)

        def visit(position: int, header: BatchHeader) -> None:
            segment.note_batch(position, header)
            _assign(self.epochs, header)
            self.epoch_met = max(self.epoch_met, header.leader_epoch)
            if header.has_producer:
                self._apply(segment, position, header)

        def visit_run(run: IntactRun) -> None:
            segment.note_run(run)
            self.epoch_met = max(self.epoch_met, run.greatest_epoch)
            for epoch, start_offset in run.epoch_starts():
                if epoch >= 0:
                    self.epochs.assign(epoch, start_offset)
            for position, header in run.producers_batches():
                self._apply(segment, position, header)
            self.on_bytes(run.end_position - run.positions[0])

        return check(segment.file, segment.base_offset, visit, visit_run, epoch=self.epoch_met)

    def _apply(self, segment: Segment, position: int, header: BatchHeader) -> None:
        aborted = self.producers.apply(stored_batch(segment.file, position, header), self.now_ms)
        if aborted is not None:
            segment.aborted.note(aborted)

    def _judge(self, index: int, trouble: Trouble) -> None:
        segment = self.segments[index]
        later = self.segments[index + 1 :]
        offset = segment.end_offset
        if self._is_torn(offset, trouble, last=not later):
            lost_bytes = segment.file.size() - trouble.position + sum(other.size_bytes for other in later)
            logger.warning(
                "cutting %d bytes of %s at offset %d: %s", lost_bytes, segment, offset, trouble.reason
            )
            for other in reversed(later):
                other.remove()
            segment.cut_file(trouble.position)
            if later:
                self.disk.sync_directory(self.directory)
        else:
            self._mark_corrupt(segment, trouble.position, trouble.reason)
            self.aside = tuple(other.base_offset for other in later)
        del self.segments[index + 1 :]

    def _is_torn(self, offset: int, trouble: Trouble, *, last: bool) -> bool:
        if offset < self.proof.recovery_point:
            return False
        if not self.proof.cache_survived:
            return True
        return trouble.torn and last and offset >= self.proof.high_watermark

    def compare_with_checkpoints(self, marked: int | None) -> None:
        """A log that ends before its synced or committed records is corrupt, even if its files are intact."""
        if self.corruption is not None:
            return
        last, proof = self.segments[-1], self.proof
        if last.end_offset < proof.recovery_point:
            self._mark_corrupt(last, last.size_bytes, f"offsets up to {proof.recovery_point} had been synced")
        elif proof.cache_survived and last.end_offset < proof.high_watermark:
            self._mark_corrupt(last, last.size_bytes, f"offsets up to {proof.high_watermark} were committed")
        elif marked is not None:
            self._mark_corrupt(last, last.size_bytes, "it was found damaged before and is not truncated yet")

    def _mark_corrupt(self, segment: Segment, position: int, reason: str) -> None:
        self.corruption = Corruption(segment.end_offset, segment.base_offset, position, reason)
        logger.error("%s is corrupt at offset %d, byte %d: %s", segment, segment.end_offset, position, reason)
        write_mark(self.disk, self.directory, segment.end_offset)

    def result(self, first: int) -> Recovered:
        checked = tuple(self.segments[first:])
        for segment in self.segments[first:]:
            segment.aborted.save()
        for segment in self.segments[first:-1]:
            segment.cool()
        self.epochs.truncate_to(self.segments[-1].end_offset)
        return Recovered(
            self.segments,
            self.snapshots,
            self.epochs,
            self.producers,
            self.corruption,
            self.aside,
            checked,
            self.epochs_on_disk,
        )


def _headers_before(offset: int, segments: list[Segment]) -> Iterator[BatchHeader]:
    for segment in segments:
        for _, header in headers(segment.file, 0, segment.size_bytes):
            if header.base_offset >= offset:
                return
            yield header


def _assign(epochs: EpochHistory, header: BatchHeader) -> None:
    if header.leader_epoch >= 0:
        epochs.assign(header.leader_epoch, header.base_offset)


def write_mark(disk: Disk, directory: str, offset: int) -> None:
    """Record on disk that the log is damaged at ``offset``."""
    disk.write_atomically(f"{directory}/{CORRUPTION}", checkpoints.render([[offset]]))


def _read_mark(disk: Disk, directory: str, bases: Sequence[int]) -> int | None:
    """The offset in the ``corruption`` file. A damaged file counts as offset 0, so that all is checked.

    A file with an offset before the first segment is removed: the damaged segment itself was removed, but a
    crash kept the file.
    """
    path = f"{directory}/{CORRUPTION}"
    if not disk.exists(path):
        return None
    try:
        marked = int(checkpoints.parse(disk.read(path))[0][0])
    except (ValueError, IndexError):
        logger.warning("%s is damaged; checking the whole log", path)
        return 0
    if bases and marked < bases[0]:
        disk.remove(path)
        return None
    return marked


def write_anew(disk: Disk, directory: str, recovery_point: int) -> None:
    """Copy the segments with data that was never synced, so that the next sync really writes them.

    After a failed fsync Linux keeps the pages and marks them clean: they can be read until memory is short,
    and then they are lost. The copy replaces its segment only after it was synced. The epoch history is
    copied too, because it may have epochs of which no batch is left.
    """
    finish_interrupted(disk, directory)
    bases = sweep(disk, directory)
    holding = max(0, bisect_right(bases, recovery_point) - 1)
    for base in bases[holding:]:
        path = f"{directory}/{base:020d}{LOG}"
        original, copy = disk.open(path), disk.open(path + ".tmp", create=True)
        for position in range(0, original.size(), COPY_BYTES):
            copy.append(original.pread(COPY_BYTES, position))
        copy.fsync()
        disk.rename(path + ".tmp", path)
    epochs = f"{directory}/{checkpoints.EPOCHS}"
    if disk.exists(epochs):
        disk.write_atomically(epochs, disk.read(epochs))
    disk.sync_directory(directory)


def remove_segment_files(disk: Disk, directory: str, base_offset: int) -> None:
    """Remove the files of a segment that is not loaded."""
    for path in _existing(disk, directory, base_offset):
        disk.remove(path)


def _existing(disk: Disk, directory: str, base_offset: int) -> Iterator[str]:
    for suffix in SUFFIXES:
        path = f"{directory}/{base_offset:020d}{suffix}"
        if disk.exists(path):
            yield path
