"""What is done to all partitions by the clock, and at the end: retention, flushes, checkpoints, the close."""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.replicas.directory_failures import DirectoryFailures
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.waiting.fetches_in_progress import FetchesInProgress
from sparklog.model.time import Clock, MonotonicMs

logger: Final = logging.getLogger(__name__)


class Chores:
    """One method for each chore. They take no guard but those of the logs."""

    def __init__(
        self,
        table: PartitionTable,
        log_dirs: LogDirs,
        settings: CurrentSettings,
        failures: DirectoryFailures,
        fetches_in_progress: FetchesInProgress,
        clock: Clock,
    ) -> None:
        self._table = table
        self._log_dirs = log_dirs
        self._settings = settings
        self._failures = failures
        self._fetches_in_progress = fetches_in_progress
        self.attentive_until: Callable[[], MonotonicMs] = clock.monotonic_ms
        """Every request that arrived before this time has reached a handler; it is now, unless handlers
        hang."""

    def on_tick(self) -> None:
        """Let every leader look for lagging followers; to be called twice in ``replica.lag.time.max.ms``."""
        for partition in self._table.partitions():
            now_ms = self.attentive_until()
            partition.on_tick(now_ms, self._fetches_in_progress.arrivals(now_ms))

    def delete_old_segments(self) -> None:
        """Let retention remove old segments of every partition."""
        for partition in self._table.partitions():
            deleted = partition.delete_old_segments()
            if deleted:
                logger.info("%s: retention removed %d segments", partition.topic_partition, deleted)

    def remove_late_files(self) -> None:
        """Remove files of deleted segments that have waited for ``file.delete.delay.ms``."""
        for partition in self._table.partitions():
            partition.log_guard.remove_late_files()

    def flush_by_time(self) -> None:
        """Flush every log with records that have waited for ``flush.ms``."""
        for partition in self._table.partitions():
            partition.log_guard.flush_by_time()

    def expire_producers(self) -> None:
        """Let every log forget producers that were silent for ``producer.id.expiration.ms``."""
        max_age_ms = self._settings.now.get_int("producer.id.expiration.ms")
        for partition in self._table.partitions():
            partition.log_guard.expire_producers(max_age_ms)

    def checkpoint_high_watermarks(self) -> None:
        watermarks = {
            partition.topic_partition: partition.high_watermark for partition in self._table.partitions()
        }
        self._checkpoint(lambda: self._log_dirs.write_high_watermarks(watermarks))

    def checkpoint_recovery_points(self) -> None:
        """Write recovery points, after flushing the logs that rolled a segment since their last one."""
        for partition in self._table.partitions():
            if partition.log_guard.should_flush_before_checkpoint:
                partition.log_guard.flush()
        self._checkpoint(self._log_dirs.checkpoint_recovery_points)

    def _checkpoint(self, write: Callable[[], None]) -> None:
        """A failed checkpoint takes its directory offline, because the disk would fail the next write too."""
        try:
            write()
        except DirectoryFailed as failed:
            logger.exception("a checkpoint could not be written")
            self._failures.on_directory_failed(failed)

    def close(self, clean_epoch: int | None) -> bool:
        """Close the logs; with ``clean_epoch`` flush them first and write the clean marker, unless a log
        failed. Whether it was written.
        """
        if clean_epoch is not None:
            for partition in self._table.partitions():
                partition.log_guard.flush()
            self.checkpoint_high_watermarks()
            if any(
                one.is_offline and self._log_dirs.is_online(one.topic_partition)
                for one in self._table.partitions()
            ):
                logger.warning("a log failed, so this stop is not a clean one")
                clean_epoch = None
        for partition in self._table.partitions():
            partition.stop("the broker stops")
            partition.log_guard.deliver()
        self._log_dirs.close(clean_epoch)
        return clean_epoch is not None
