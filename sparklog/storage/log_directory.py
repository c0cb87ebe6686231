"""A log directory: one of a broker's ``log.dirs``, with the logs of many partitions.

    .lock                               held by ``flock`` for as long as the process lives
    meta.properties                     cluster, broker and id of the directory
    .kafka_cleanshutdown                marker, from a clean stop to the next start
    suspect-directories                 ids of sibling directories whose fsync failed
    found-clean                         broker epoch of a removed marker, and the boot of the removal
    boot-id                             the boot during which the logs were last written
    recovery-point-offset-checkpoint    below these offsets everything was synced
    replication-offset-checkpoint       high watermarks
    log-start-offset-checkpoint         log starts above their first segment's base offset
    cleaner-offset-checkpoint           below these offsets compacted logs were compacted
    <topic>-<partition>/                a log
    <topic>-<partition>.<id>-delete/    a log whose deletion was interrupted

A start may crash anywhere, because of its order: lock, check the identity, remove the clean marker (synced)
before any append, recover all logs, and last write this boot's id.

Checkpoints never exceed their log's end. Only truncation lowers that end, so each log calls back before it is
truncated, and the checkpoints above the new end are rewritten first; otherwise a crash between the two would
make a truncated log look damaged.
"""

import logging
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import BrokerEpoch, BrokerId, Offset, TopicId, TopicPartition
from sparklog.model.ports import Executor
from sparklog.model.time import Clock
from sparklog.storage.disk import Disk, Lock, Space, may_have_lost
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_removal import DELETED_SUFFIX, deleted_name, says_whose_it_is
from sparklog.storage.recovery.log_recovery import write_anew
from sparklog.storage.recovery.recovery_progress import RecoveryProgress, Tell, bytes_to_check
from sparklog.storage.small_files import checkpoints, meta_properties
from sparklog.storage.small_files.clean_stop import CleanStop
from sparklog.storage.small_files.partition_metadata import is_unfinished

LOCK: Final = ".lock"
BOOT_ID: Final = "boot-id"
SUSPECTS: Final = "suspect-directories"

_PARTITION_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED_DIRECTORY: Final = re.compile(rf"(.*)-(\d+)\.[0-9a-f]{{32}}{DELETED_SUFFIX}")

logger: Final = logging.getLogger(__name__)


class DirectoryUnusable(LogDirectoryError):  # noqa: N818 (says what is the case)
    """The file system refused access: the directory is missing or read-only, or its disk fails."""

    @property
    def is_suspect(self) -> bool:
        """Whether earlier unsynced writes may be lost when the directory can be used again."""
        return isinstance(self.__cause__, OSError) and may_have_lost(self.__cause__)


@dataclass(slots=True)
class _Loading:
    """The evidence of the last stop: marker, boot and checkpoints, as read at the start."""

    clean: bool
    same_boot: bool
    recovery_points: dict[TopicPartition, Offset]
    high_watermarks: dict[TopicPartition, Offset]
    log_starts: dict[TopicPartition, Offset]


def _ignore(_count: int) -> None:
    """``on_bytes`` of logs that are opened without a progress report."""


class LogDirectory:
    """An open, locked log directory. Its own methods are thread-safe; its logs are not."""

    def __init__(
        self,
        path: str,
        properties: meta_properties.MetaProperties,
        lock: Lock,
        disk: Disk,
        clock: Clock,
        *,
        boot_id: str,
        created: bool,
    ) -> None:
        self.path = path
        self.properties = properties
        self.created = created
        """Whether ``open`` found the directory empty and gave it its id."""
        self.logs: dict[TopicPartition, Log] = {}
        self._lock_file = lock
        self._disk = disk
        self._clock = clock
        self._boot_id = boot_id
        self._was_used = disk.exists(f"{path}/{BOOT_ID}")
        self._clean_stop = CleanStop(disk, path, boot_id)
        self.cache_survived = self.same_boot or self._clean_stop.noted is not None
        """Whether unsynced writes from before ``open`` are intact in the page cache."""
        self._guard = threading.Lock()
        self._recovery_points = checkpoints.read_offsets(disk, self._file(checkpoints.RECOVERY_POINTS))
        self._high_watermarks = checkpoints.read_offsets(disk, self._file(checkpoints.HIGH_WATERMARKS))
        self._log_starts = checkpoints.read_offsets(disk, self._file(checkpoints.LOG_STARTS))
        self._cleaned = checkpoints.read_offsets(disk, self._file(checkpoints.CLEANED))

    @classmethod
    def open(
        cls,
        path: str,
        broker_id: int | None,
        cluster_id: str,
        disk: Disk,
        clock: Clock,
        *,
        boot_id: str,
        new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> "LogDirectory":
        """Lock the directory and check its owner; an empty or missing directory becomes this broker's.

        With ``broker_id`` None the broker id is that of ``meta.properties``. LogDirectoryError, with the
        remedy, when the directory is locked, another broker's or cluster's, or cannot be read or written.
        """
        path = os.path.abspath(path)
        try:
            _make_directory(disk, path)
            lock = disk.lock(f"{path}/{LOCK}")
        except OSError as error:
            raise DirectoryUnusable(f"log directory {path} cannot be used: {error}") from error
        try:
            properties = meta_properties.read(disk, path)
            created = properties is None
            if properties is None:
                properties = _take_possession(disk, path, broker_id, cluster_id, new_uuid())
            properties.refuse_unless(path, broker_id, cluster_id)
            return cls(path, properties, lock, disk, clock, boot_id=boot_id, created=created)
        except OSError as error:
            lock.release()
            raise DirectoryUnusable(f"log directory {path} cannot be used: {error}") from error
        except BaseException:
            lock.release()
            raise

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    @property
    def uuid(self) -> uuid.UUID:
        return self.properties.uuid

    @property
    def broker_id(self) -> BrokerId:
        return self.properties.broker_id

    @property
    def is_empty(self) -> bool:
        """Whether the directory has no log."""
        return not any(self._partition_of(name) for name in self._disk.list(self.path))

    @property
    def is_emptied(self) -> bool:
        """Whether logs were removed from outside: there is no log, but a checkpoint lists some, or the file
        ``boot-id`` is missing. False if the directory never had a log, or the broker deleted its logs."""
        names_some = bool(self._high_watermarks or self._recovery_points)
        return self.is_empty and (names_some or not self._was_used)

    def space(self) -> Space:
        """The space of the disk that the directory is on."""
        return self._disk.space(self.path)

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def suspects(self) -> frozenset[str]:
        """Ids of sibling directories whose fsync failed; see ``write_suspects``."""
        path = self._file(SUSPECTS)
        return (
            frozenset(self._disk.read(path).decode("ascii").split())
            if self._disk.exists(path)
            else frozenset()
        )

    def write_suspects(self, ids: Iterable[str]) -> None:
        """Record the ids of sibling directories whose fsync failed, and that may have lost writes."""
        self._disk.write_atomically(self._file(SUSPECTS), "".join(f"{one}\n" for one in sorted(ids)).encode())

    # ---- clean stops and boots -----------------------------------------------------------------------------

    def take_clean_marker(self) -> BrokerEpoch | None:
        """Remove the clean marker, synced; the broker epoch that stopped cleanly, or None.

        Call it before the first append; otherwise a later crash would look like a clean stop.
        """
        return self._clean_stop.take()

    def left_clean_by(self) -> BrokerEpoch | None:
        """The broker epoch of the last clean stop, from the marker, or from the note of an earlier start on
        this boot that removed the marker and then failed. Proves nothing if a later epoch has registered.
        Removes the marker."""
        epoch = self.take_clean_marker()
        return self._clean_stop.noted if epoch is None else epoch

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean marker: every log was closed. A broker's last write to the directory."""
        self._clean_stop.mark(broker_epoch)

    @property
    def same_boot(self) -> bool:
        """Whether the machine has not rebooted since the logs were last written: the page cache survived."""
        path = self._file(BOOT_ID)
        return self._disk.exists(path) and self._disk.read(path).decode("ascii", "replace") == self._boot_id

    # ---- logs ----------------------------------------------------------------------------------------------

    def load_logs(
        self,
        config_for_topic: Callable[[str], LogConfig],
        *,
        executor: Executor | None = None,
        is_suspect: bool = False,
        tell: Tell = logger.info,
    ) -> dict[TopicPartition, Log]:
        """Remove the clean marker, then open and recover every log, in parallel with an ``executor``.

        ``is_suspect``: an fsync or a write failed when these logs were last open. Data beyond their recovery
        points may be readable but not on disk, and a sync would not write it, so those segments are copied.
        The data may also be lost, as after a power cut.
        ``tell`` is called with progress reports, unless the stop was clean.
        """
        loading = _Loading(
            clean=self.take_clean_marker() is not None,
            same_boot=self.cache_survived and not is_suspect,
            recovery_points=dict(self._recovery_points),
            high_watermarks=dict(self._high_watermarks),
            log_starts=dict(self._log_starts),
        )
        names = [name for name in self._disk.list(self.path) if self._disk.is_directory(self._file(name))]
        found = {topic_partition: name for name in names if (topic_partition := self._partition_of(name))}
        for name in names:
            if match := _DELETED_DIRECTORY.fullmatch(name):
                self._finish_deletion(TopicPartition(match[1], int(match[2])), name, found)
        progress = self._progress(found, loading, tell)

        def load(topic_partition: TopicPartition) -> None:
            if is_unfinished(self._disk, self._file(found[topic_partition])):
                logger.info("removed %s, whose creation was interrupted", self._file(found[topic_partition]))
                self._disk.remove_directory(self._file(found[topic_partition]))
                return
            if is_suspect:
                point = loading.recovery_points.get(topic_partition, 0)
                write_anew(self._disk, self._file(found[topic_partition]), point)
            config = config_for_topic(topic_partition.topic)
            self._adopt(self._open_log(topic_partition, None, config, loading, progress))
            if progress is not None:
                progress.on_log()

        _for_each(list(found), load, executor)
        self._lower_to_ends()
        self._disk.write_atomically(self._file(BOOT_ID), self._boot_id.encode("ascii"))
        return dict(self.logs)

    def create_log(self, topic_partition: TopicPartition, topic_id: TopicId, config: LogConfig) -> Log:
        """A new, empty log. LogDirectoryError if the partition has one here already."""
        name = str(topic_partition)
        if topic_partition in self.logs or self._disk.exists(self._file(name)):
            raise LogDirectoryError(f"{self._file(name)} exists already{self._twin_of(name)}")
        self._forget(topic_partition)
        log = self._adopt(
            self._open_log(topic_partition, topic_id, config, _Loading(False, True, {}, {}, {}))
        )
        if len(self.logs) == 1:  # so that ``is_emptied`` can see that the directory had a log
            self.write_high_watermarks({topic_partition: 0})
        return log

    def _twin_of(self, name: str) -> str:
        """For an error text: the name that differs in case only, if the file system ignores case (macOS)."""
        names = self._disk.list(self.path)
        twins = [other for other in names if other.lower() == name.lower()]
        if name in names or not twins:
            return ""
        return (
            f", under the name {twins[0]}: this file system does not distinguish upper and lower "
            "case, so choose another name for the topic"
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a log and its entries in the checkpoints.

        The entries are removed between the rename and the removal of the directory. After an interruption,
        the renamed directory shows the next start that the broker deleted the log; otherwise the logs would
        seem to have been removed from outside. A topic name that is too long is cut in the renamed directory
        and proves nothing, so then the entries are removed before the rename.
        """
        log = self.logs.pop(topic_partition)
        if not says_whose_it_is(deleted_name(topic_partition, log.topic_id)):
            self._forget(topic_partition)
        log.delete(lambda: self._forget(topic_partition))

    def _finish_deletion(
        self, topic_partition: TopicPartition, name: str, found: Mapping[TopicPartition, str]
    ) -> None:
        is_whole = says_whose_it_is(name)
        if is_whole and topic_partition not in found:  # else the entries are those of a new log of that name
            self._forget(topic_partition)
        self._disk.remove_directory(self._file(name))

    def set_aside_log(self, topic_partition: TopicPartition) -> None:
        """Rename a log's directory to a name that is not a partition's, and keep its files for an operator.

        The log's entries in the checkpoints are removed first; otherwise, after an interruption, the logs
        would seem to have been removed from outside. A ``-stray`` directory, unlike ``-delete``, does not
        explain a missing log at later starts: it stays for good, and a later log of the same name could
        really be removed from outside.
        """
        log = self.logs.pop(topic_partition)
        self._forget(topic_partition)
        name = log.set_aside()
        logger.warning("the log of %s belongs to an earlier topic: renamed to %s", topic_partition, name)

    def _open_log(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        config: LogConfig,
        loading: _Loading,
        progress: RecoveryProgress | None = None,
    ) -> Log:
        return Log.open(
            self._file(str(topic_partition)),
            topic_partition,
            topic_id,
            config,
            self._disk,
            self._clock,
            recovery_point=loading.recovery_points.get(topic_partition, 0),
            clean=loading.clean,
            same_boot=loading.same_boot,
            high_watermark=loading.high_watermarks.get(topic_partition, 0),
            log_start_offset=loading.log_starts.get(topic_partition, 0),
            on_bytes=_ignore if progress is None else progress.on_bytes,
        )

    def _progress(
        self, found: Mapping[TopicPartition, str], loading: _Loading, tell: Tell
    ) -> RecoveryProgress | None:
        if loading.clean or not found:
            return None
        reaches_back = 0 if loading.same_boot else 1
        total_bytes = sum(
            bytes_to_check(
                self._disk, self._file(name), loading.recovery_points.get(topic_partition, 0) - reaches_back
            )
            for topic_partition, name in found.items()
        )
        return RecoveryProgress(self.path, len(found), total_bytes, self._clock, tell)

    def _adopt(self, log: Log) -> Log:
        topic_partition = log.topic_partition
        log.before_cut = lambda end_offset: self._lower(topic_partition, end_offset)
        self.logs[topic_partition] = log
        return log

    def _partition_of(self, name: str) -> TopicPartition | None:
        match = _PARTITION_DIRECTORY.fullmatch(name)
        if match is None or not self._disk.is_directory(self._file(name)):
            return None
        return TopicPartition(match[1], int(match[2]))

    # ---- checkpoints ---------------------------------------------------------------------------------------

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery point and the log start of every log.

        Never writes a log start above the recovery point: a power cut could leave no batch before that
        offset, and a log that begins there would lack the earlier producer states.
        """
        with self._guard:
            logs = list(self.logs.items())
            self._recovery_points = {topic_partition: log.recovery_point for topic_partition, log in logs}
            starts = {
                topic_partition: Offset(min(log.log_start_offset, log.recovery_point))
                for topic_partition, log in logs
            }
            self._log_starts = {
                topic_partition: starts[topic_partition]
                for topic_partition, log in logs
                if starts[topic_partition] > log.first_segment_base
            }
            self._write(checkpoints.LOG_STARTS, self._log_starts)
            self._write(checkpoints.RECOVERY_POINTS, self._recovery_points)

    def read_high_watermarks(self) -> dict[TopicPartition, Offset]:
        """The high watermarks as last written; treat a missing partition as 0."""
        with self._guard:
            return dict(self._high_watermarks)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write high watermarks; a log that is not among them keeps its earlier one (KAFKA-1647).

        A value above the log's end is lowered to it; partitions without a log here are ignored.
        """
        with self._guard:
            merged = {**self._high_watermarks, **high_watermarks}
            self._high_watermarks = {
                topic_partition: Offset(min(merged[topic_partition], log.log_end_offset))
                for topic_partition, log in list(self.logs.items())
                if topic_partition in merged
            }
            self._write(checkpoints.HIGH_WATERMARKS, self._high_watermarks)

    def cleaned_up_to(self, topic_partition: TopicPartition) -> Offset | None:
        """The exclusive end of the last round of compaction; None if the log was never compacted."""
        with self._guard:
            return self._cleaned.get(topic_partition)

    def write_cleaned(self, topic_partition: TopicPartition, offset: int, generation: int) -> bool:
        """Record that a log was compacted up to ``offset``; False if it was removed or truncated since."""
        with self._guard:
            log = self.logs.get(topic_partition)
            if log is None or log.generation != generation:
                return False
            self._cleaned[topic_partition] = Offset(offset)
            self._write(checkpoints.CLEANED, self._cleaned)
            return True

    def _lower(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Before a log is truncated: lower its checkpoints on disk to the new end."""
        self._lower_all({topic_partition: end_offset})

    def _lower_to_ends(self) -> None:
        """Lower the checkpoints of logs that lost records in a power cut, and that this start truncated.

        Otherwise the next start, on the same boot, would judge these logs corrupt. Corrupt logs keep their
        checkpoints, because these prove the corruption.
        """
        self._lower_all(
            {
                topic_partition: log.log_end_offset
                for topic_partition, log in self.logs.items()
                if log.corruption is None
            }
        )

    def _lower_all(self, ends: Mapping[TopicPartition, int]) -> None:
        with self._guard:
            for name, offsets in (
                (checkpoints.RECOVERY_POINTS, self._recovery_points),
                (checkpoints.HIGH_WATERMARKS, self._high_watermarks),
                (checkpoints.LOG_STARTS, self._log_starts),
                (checkpoints.CLEANED, self._cleaned),
            ):
                too_high = {
                    topic_partition: Offset(end)
                    for topic_partition, end in ends.items()
                    if offsets.get(topic_partition, 0) > end
                }
                if too_high:
                    offsets.update(too_high)
                    self._write(name, offsets)

    def _forget(self, topic_partition: TopicPartition) -> None:
        """Remove a log's entries in the checkpoints: a new log of that name must not inherit them."""
        with self._guard:
            for name, offsets in (
                (checkpoints.RECOVERY_POINTS, self._recovery_points),
                (checkpoints.HIGH_WATERMARKS, self._high_watermarks),
                (checkpoints.LOG_STARTS, self._log_starts),
                (checkpoints.CLEANED, self._cleaned),
            ):
                if offsets.pop(topic_partition, None) is not None:
                    self._write(name, offsets)

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._disk, self._file(name), offsets)

    # ---- the end -------------------------------------------------------------------------------------------

    def close(self, *, clean_epoch: int | None = None) -> None:
        """Unlock. With ``clean_epoch``: first close all logs, write checkpoints and the clean marker."""
        try:
            if clean_epoch is not None:
                for log in self.logs.values():
                    log.close()
                self.checkpoint_recovery_points()
                self.mark_clean(clean_epoch)
        finally:
            self.logs.clear()
            self._lock_file.release()


def _take_possession(
    disk: Disk, path: str, broker_id: int | None, cluster_id: str, directory_id: uuid.UUID
) -> meta_properties.MetaProperties:
    """Make an empty directory this broker's; refuse a directory that has logs but no ``meta.properties``."""
    if broker_id is None:
        raise LogDirectoryError(f"{path} has no {meta_properties.FILE} and no broker.id was given: give one")
    logs = [name for name in disk.list(path) if _PARTITION_DIRECTORY.fullmatch(name)]
    if logs:
        raise LogDirectoryError(
            f"{path} has logs ({', '.join(logs[:3])}, ...) but no {meta_properties.FILE}: restore this file "
            "from a copy, or move the logs away"
        )
    _sync_name(disk, path)  # an earlier process may have created it and died before it synced the name
    properties = meta_properties.MetaProperties(cluster_id, BrokerId(broker_id), directory_id)
    meta_properties.write(disk, path, properties)
    return properties


def _make_directory(disk: Disk, path: str) -> None:
    """Create the missing directories of ``path`` and sync their names, so that they survive a power cut."""
    missing: list[str] = []
    above = path
    while not disk.exists(above):
        missing.append(above)
        above = os.path.dirname(above)
    disk.make_directory(path)
    for made in reversed(missing):
        _sync_name(disk, made)


def _sync_name(disk: Disk, path: str) -> None:
    try:
        disk.sync_directory(os.path.dirname(path))
    except PermissionError as error:
        logger.warning("cannot sync the name of %s, so a power cut may remove it: %s", path, error)


def _for_each(
    items: list[TopicPartition], work: Callable[[TopicPartition], None], executor: Executor | None
) -> None:
    """Run ``work`` for every item, in parallel with an ``executor``; raises the first failure."""
    if executor is None:
        for item in items:
            work(item)
        return
    failures: list[BaseException] = []
    done = threading.Semaphore(0)

    def step(item: TopicPartition) -> None:
        try:
            work(item)
        except BaseException as error:  # noqa: BLE001 (handed to the caller's thread)
            failures.append(error)
        finally:
            done.release()

    for item in items:
        executor.submit(partial(step, item))
    for _ in items:
        done.acquire()
    if failures:
        raise failures[0]
