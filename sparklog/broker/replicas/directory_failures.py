"""Failed disks: their log directories go offline, and the controller learns which replicas went with them.

A failure has two halves. ``take_offline`` marks the directory, so that nothing new is placed there; it may be
called within a guard. ``report`` takes the partitions offline, and notifies listeners; it takes no guard, and
must be called outside every one.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.broker.disks.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.model.ids import TopicId
from sparklog.storage.log_directory import LogDirectory

logger: Final = logging.getLogger(__name__)

OnDiskFailure = Callable[[str, str | None], None]
"""Called when the last disk failed, with the reason and the id of the suspect log directory, or None."""

OnReplicasLost = Callable[[list[tuple[TopicId, int]]], None]
"""Called with the replicas that went offline with their directory, while other directories serve on."""

OnSuspect = Callable[[str], None]
"""Called with the id of a directory that may have lost records, while other directories serve on."""


def _log_failure(why: str, _suspect: str | None) -> None:
    logger.error("%s", why)


def _log_lost(lost: list[tuple[TopicId, int]]) -> None:
    logger.error("%d replicas are offline", len(lost))


def _log_suspect(directory_uuid: str) -> None:
    """The default of ``on_suspect``: it logs; the other directories hold the notes."""
    logger.warning("what log directory %s holds may not be what it was", directory_uuid)


@dataclass(frozen=True, slots=True)
class DiskListeners:
    """Notified of failed disks."""

    on_disk_failure: OnDiskFailure = _log_failure
    on_replicas_lost: OnReplicasLost = _log_lost
    on_suspect: OnSuspect = _log_suspect


@dataclass(frozen=True, slots=True)
class LostDirectory:
    """A log directory that was just taken offline."""

    directory_uuid: str
    why: str
    is_suspect: bool
    partitions: Sequence[Partition]
    """Those whose logs it has. Not their names: another topic's log may have the name before the report."""
    is_last: bool
    """Whether no other directory serves on, or none could note that this one is suspect: the broker stops."""


class DirectoryFailures:
    """What follows when a log directory's disk fails."""

    def __init__(self, table: PartitionTable, log_dirs: LogDirs, listeners: DiskListeners) -> None:
        self._table = table
        self._log_dirs = log_dirs
        self._listeners = listeners

    def on_log_failed(self, partition: Partition, why: str, *, is_suspect: bool) -> None:
        directory = self._log_dirs.home_of(partition.topic_partition)
        if directory is not None:
            self.report(self.take_offline(directory, why, is_suspect=is_suspect))

    def on_directory_failed(self, failed: DirectoryFailed) -> None:
        self.report(self.note(failed))

    def note(self, failed: DirectoryFailed) -> LostDirectory | None:
        """As ``take_offline``."""
        return self.take_offline(failed.directory, str(failed), is_suspect=failed.is_suspect)

    def take_offline(self, directory: LogDirectory, why: str, *, is_suspect: bool) -> LostDirectory | None:
        """Mark the directory of a failed disk; None if it was offline already."""
        try:
            held = self._log_dirs.fail(directory, why, is_suspect=is_suspect)
        except OSError as error:
            why = f"{why}; and it could not be noted elsewhere that its fsync failed: {error}"
            return LostDirectory(str(directory.uuid), why, is_suspect, (), is_last=True)
        if held is None:
            return None
        partitions = [one for name in held if (one := self._table.get(name)) is not None]
        is_last = not self._log_dirs.is_any_online
        return LostDirectory(str(directory.uuid), why, is_suspect, partitions, is_last)

    def report(self, lost: LostDirectory | None) -> None:
        """Take the directory's partitions offline, and report its replicas to the controller. If it was the
        last directory, the broker stops.
        """
        if lost is None:
            return
        if lost.is_last:
            self._listeners.on_disk_failure(lost.why, lost.directory_uuid if lost.is_suspect else None)
            return
        if lost.is_suspect:
            self._listeners.on_suspect(lost.directory_uuid)
        for partition in lost.partitions:
            partition.go_offline(lost.why)
        self.report_replicas(lost.partitions)

    def report_replicas(self, partitions: Sequence[Partition]) -> None:
        """Report replicas that serve nothing more, while the broker serves on."""
        lost = [(partition.topic_id, partition.topic_partition.partition) for partition in partitions]
        self._listeners.on_replicas_lost(lost)

    def suspects(self) -> frozenset[str]:
        """Ids of log directories noted as suspect; ZooKeeper may not have them yet."""
        return self._log_dirs.suspects()

    def forget_suspect(self, directory_uuid: str) -> None:
        """Remove the notes about a suspect directory, because ZooKeeper has recorded it."""
        try:
            self._log_dirs.forget_suspect(directory_uuid)
        except DirectoryFailed as failed:
            logger.exception("a note of log directory %s stays", directory_uuid)
            self.on_directory_failed(failed)
