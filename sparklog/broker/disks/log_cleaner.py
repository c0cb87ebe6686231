"""The log cleaner of one broker chooses the next log and compacts it. Threads are in ``cleaner_threads``.

Every replica, leader or follower, cleans its own log; replicas then differ in bytes, but readers get the same
records. Among the logs that are due ``next`` picks the one with the greatest share of dirty bytes. It returns
a ``Cleaning``, whose ``run`` works in steps. A log has at most one ``Cleaning`` at a time.

A log that cannot be cleaned must not block the others. A log that is damaged, or has an unreadable batch, is
skipped until it is truncated or recreated. After a disk error, such as a full disk, a log is tried again a
minute later. Both are logged and shown by ``states``.
"""

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.partition.partition import Partition
from sparklog.core.compaction import DirtyRange, Throttle, dirty_range, filthiest
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.storage.cleaner.round import CleanerMemory, Round, RoundReport
from sparklog.storage.cleaner.view import CleaningAborted, LogView, remaining, view_of
from sparklog.storage.disk import may_have_lost
from sparklog.storage.log import Log
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.swap import Swap

RETRY_AFTER_MS: Final = 60_000

_BYTES_PER_SECOND: Final = "log.cleaner.io.max.bytes.per.second"

logger: Final = logging.getLogger(__name__)


class PartitionLog:
    """A partition's log, accessed under the partition's lock: ``storage.cleaner.view.LogAccess``."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def view(self) -> LogView | None:
        return self._partition.inspect(view_of)

    def remaining(self, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
        return self._partition.inspect(lambda log, _: remaining(log, segments, generation))

    def begin_swap(self, swap: Swap) -> bool:
        return self._partition.log_guard.rearrange(lambda log: log.begin_swap(swap))

    def finish_swap(self, swap: Swap) -> bool:
        return self._partition.log_guard.rearrange(lambda log: log.finish_swap(swap))

    def fail(self, error: OSError) -> None:
        self._partition.log_guard.fail(error)


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """Why a log was set aside: until then, or without a time until it is another log or was cut."""

    reason: str
    log: Log
    generation: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class CleanerState:
    """One compacted log as the cleaner sees it."""

    topic_partition: TopicPartition
    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    is_due: bool
    is_being_cleaned: bool
    uncleanable: str | None = None
    last: RoundReport | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    partition: Partition
    view: LogView
    dirty: DirtyRange


class LogCleaner:
    """The compaction of all logs of a broker. Its methods may be called from any thread."""

    def __init__(
        self,
        partitions: Callable[[], list[Partition]],
        log_dirs: LogDirs,
        settings: CurrentSettings,
        clock: Clock,
        *,
        guard: Guard,
        new_seed: Callable[[], int],
    ) -> None:
        self._settings = settings
        self.new_seed = new_seed
        self.clock = clock
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._guard = guard
        self._throttle = Throttle(settings.now.get_float(_BYTES_PER_SECOND))
        settings.on_change(self._set_rate)
        self._busy: set[TopicPartition] = set()
        self._uncleanable: dict[TopicPartition, Uncleanable] = {}
        self._last: dict[TopicPartition, RoundReport] = {}

    @property
    def memory(self) -> CleanerMemory:
        """What a round that begins now may use."""
        config = self._settings.now
        return CleanerMemory(
            map_bytes=config.get_int("log.cleaner.dedupe.buffer.size")
            // config.get_int("log.cleaner.threads"),
            load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            chunk_bytes=config.get_int("log.cleaner.io.buffer.size"),
        )

    @property
    def backoff_ms(self) -> int:
        """The pause of a thread that has found no log to clean."""
        return self._settings.now.get_int("log.cleaner.backoff.ms")

    def _set_rate(self, config: BrokerConfig) -> None:
        bytes_per_second = config.get_float(_BYTES_PER_SECOND)
        with self._guard:
            if self._throttle.bytes_per_second != bytes_per_second:
                self._throttle = Throttle(bytes_per_second)

    def next(self) -> "Cleaning | None":
        """The cleaning that is most urgent, claimed for the caller, who must ``run`` it; None if none is."""
        while True:
            candidates = {
                partition.topic_partition: candidate
                for partition in self._partitions()
                if self._may_clean(partition) and (candidate := self._look_at(partition))
            }
            chosen = filthiest(
                {
                    topic_partition: (found.dirty, found.view.rules)
                    for topic_partition, found in candidates.items()
                }
            )
            if chosen is None:
                return None
            with self._guard:
                if chosen not in self._busy:
                    self._busy.add(chosen)
                    return Cleaning(self, candidates[chosen].partition, candidates[chosen].view)

    def pause_ms(self, done_bytes: int) -> int:
        """How long a cleaner must rest after this much work (``log.cleaner.io.max.bytes.per.second``)."""
        with self._guard:
            return self._throttle.pause_ms(done_bytes, self.clock.monotonic_ms())

    def states(self) -> list[CleanerState]:
        """All compacted logs of this broker, as they are now."""
        return [
            self._state(candidate)
            for partition in self._partitions()
            if (candidate := self._look_at(partition)) is not None
        ]

    def _state(self, candidate: _Candidate) -> CleanerState:
        topic_partition, dirty = candidate.partition.topic_partition, candidate.dirty
        aside = self._uncleanable.get(topic_partition)
        return CleanerState(
            topic_partition,
            dirty.first_dirty,
            dirty.end,
            dirty.clean_bytes,
            dirty.dirty_bytes,
            dirty.ratio,
            dirty.is_due(candidate.view.rules),
            topic_partition in self._busy,
            None if aside is None else aside.reason,
            self._last.get(topic_partition),
        )

    def _look_at(self, partition: Partition) -> _Candidate | None:
        try:
            view = PartitionLog(partition).view()
        except (OSError, SparklogError) as error:
            self.set_aside(partition, error)
            return None
        return None if view is None else _Candidate(partition, view, self.dirty(partition, view))

    def dirty(self, partition: Partition, view: LogView) -> DirtyRange:
        return dirty_range(
            view.extents,
            log_start_offset=view.log_start_offset,
            checkpoint=self._log_dirs.cleaned_up_to(partition.topic_partition),
            stable_end=view.stable_end,
            rules=view.rules,
            now_ms=self.clock.wall_ms(),
        )

    def _may_clean(self, partition: Partition) -> bool:
        with self._guard:
            if partition.topic_partition in self._busy:
                return False
            aside = self._uncleanable.get(partition.topic_partition)
            if aside is None:
                return True
            is_other = aside.log is not partition.log or aside.generation != partition.log.generation
            if is_other or (aside.until_ms is not None and aside.until_ms <= self.clock.monotonic_ms()):
                del self._uncleanable[partition.topic_partition]
                return True
            return False

    def set_aside(self, partition: Partition, error: Exception) -> None:
        """Leave this log alone, for a while or for good; what the device failed takes the log offline."""
        if isinstance(error, OSError) and may_have_lost(error):
            partition.log_guard.fail(error)
        until_ms = self.clock.monotonic_ms() + RETRY_AFTER_MS if isinstance(error, OSError) else None
        logger.error(
            "%s cannot be compacted, %s: %s",
            partition.topic_partition,
            "trying again in a minute" if until_ms else "and is left as it is",
            error,
            exc_info=not isinstance(error, OSError | SparklogError),
        )
        self._leave_alone(partition, f"{type(error).__name__}: {error}", until_ms)

    def _leave_alone(self, partition: Partition, reason: str, until_ms: int | None) -> None:
        with self._guard:
            self._uncleanable[partition.topic_partition] = Uncleanable(
                reason, partition.log, partition.log.generation, until_ms
            )

    def done(self, partition: Partition, view: LogView, dirty: DirtyRange, report: RoundReport) -> None:
        """A round is through. One that stood before an open transaction all the time is tried again later."""
        if report.end <= dirty.first_dirty:
            reason = f"a transaction of offset {report.end} is not committed or aborted yet"
            self._leave_alone(partition, reason, self.clock.monotonic_ms() + self.backoff_ms)
            return
        self._log_dirs.write_cleaned(partition.topic_partition, report.end, view.generation)
        self._last[partition.topic_partition] = report
        logger.info("%s was compacted: %s", partition.topic_partition, report)

    def release(self, partition: Partition) -> None:
        with self._guard:
            self._busy.discard(partition.topic_partition)


class Cleaning:
    """One round over one log, claimed until ``run`` is through or closed."""

    def __init__(self, cleaner: LogCleaner, partition: Partition, view: LogView) -> None:
        self.topic_partition = partition.topic_partition
        self._cleaner = cleaner
        self._partition = partition
        self._view = view

    def run(self) -> Generator[int, None, None]:
        """Do it, step by step; each gives the bytes it read and wrote. What goes wrong is dealt with."""
        cleaner, partition, view = self._cleaner, self._partition, self._view
        dirty = cleaner.dirty(partition, view)
        work = Round(
            PartitionLog(partition),
            view,
            dirty,
            memory=cleaner.memory,
            now_ms=cleaner.clock.wall_ms(),
            seed=cleaner.new_seed(),
        )
        try:
            yield from work.run()
            cleaner.done(partition, view, dirty, work.report)
        except CleaningAborted as aborted:
            logger.info("%s: compaction stops: %s", partition.topic_partition, aborted)
        except Exception as error:  # noqa: BLE001 (it is logged; the other logs must be cleaned all the same)
            cleaner.set_aside(partition, error)
        finally:
            cleaner.release(partition)
