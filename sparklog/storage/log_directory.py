"""A log directory: one of a broker's ``log.dirs``, with the logs of many partitions.

    .lock                               held by ``flock`` for as long as the process lives
    meta.properties                     whose directory this is
    .kafka_cleanshutdown                there only between a clean stop and the next start
    suspect-directories                 siblings whose fsync failed
    found-clean                         whose marker it was, and on which boot a start took it
    boot-id                             the machine's boot during which the logs were last written
    recovery-point-offset-checkpoint    below these offsets everything was synced
    replication-offset-checkpoint       high watermarks
    log-start-offset-checkpoint         log starts that are not their first segment's base offset
    cleaner-offset-checkpoint           below these offsets compacted logs were compacted
    <topic>-<partition>/                a log
    <topic>-<partition>.<id>-delete/    what is left of one that was being deleted

The order of a start is what makes it safe to crash anywhere in it: lock, check identity, take the clean
marker away (synced) before anything is appended, recover all logs, and only then record this boot.

Checkpoints must never claim more than a log has. Truncation is the one thing that lowers a log's end, so each
log calls back before it cuts, and checkpoints above the new end are rewritten first; otherwise a crash right
after would make a truncated log look like a damaged one.
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
from sparklog.storage import checkpoints, meta_properties
from sparklog.storage.clean_stop import CleanStop
from sparklog.storage.disk import Disk, Lock, may_have_lost
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_removal import DELETED_SUFFIX, deleted_name, says_whose_it_is
from sparklog.storage.partition_metadata import is_unfinished
from sparklog.storage.recovery.log_recovery import write_anew
from sparklog.storage.recovery.recovery_progress import RecoveryProgress, Tell, bytes_to_check

LOCK: Final = ".lock"
BOOT_ID: Final = "boot-id"
SUSPECTS: Final = "suspect-directories"

_PARTITION_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED_DIRECTORY: Final = re.compile(rf"(.*)-(\d+)\.[0-9a-f]{{32}}{DELETED_SUFFIX}")

logger = logging.getLogger(__name__)


class DirectoryUnusable(LogDirectoryError):  # noqa: N818 (says what is the case)
    """The file system refuses: a directory that is gone, read-only, or on a disk that fails."""

    @property
    def is_suspect(self) -> bool:
        """Whether what was written there before, and not synced, may be gone when it is back."""
        return isinstance(self.__cause__, OSError) and may_have_lost(self.__cause__)


@dataclass(slots=True)
class _Loading:
    """What the last stop of this directory's owner left to go by."""

    clean: bool
    same_boot: bool
    recovery_points: dict[TopicPartition, Offset]
    high_watermarks: dict[TopicPartition, Offset]
    log_starts: dict[TopicPartition, Offset]


def _nobody_waits(_count: int) -> None:
    """For logs that are opened without a progress to tell."""


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
        """Whether what was written here before ``open``, and not synced, is there as it was."""
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
        """Lock the directory and check whose it is; an empty or missing one becomes this broker's.

        With ``broker_id`` None the directory itself says whose it is. LogDirectoryError, with the remedy,
        when it is locked, foreign, or cannot be read or written.
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
        """Whether no partition has a log in it."""
        return not any(self._partition_of(name) for name in self._disk.list(self.path))

    @property
    def is_emptied(self) -> bool:
        """Whether somebody took the logs away: there are none, but a checkpoint knows of some, or nothing is
        left of what every start writes. One that never had a log, or whose logs were deleted, is not."""
        names_some = bool(self._high_watermarks or self._recovery_points)
        return self.is_empty and (names_some or not self._was_used)

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
        """Remember that the fsync of these siblings failed: what they hold may not be what it was."""
        self._disk.write_atomically(self._file(SUSPECTS), "".join(f"{one}\n" for one in sorted(ids)).encode())

    # ---- clean stops and boots -----------------------------------------------------------------------------

    def take_clean_marker(self) -> BrokerEpoch | None:
        """The broker epoch that stopped cleanly, or None; afterwards the marker is gone, for good.

        It must be gone before the first append, or a crash later on would pass for a clean stop.
        """
        return self._clean_stop.take()

    def left_clean_by(self) -> BrokerEpoch | None:
        """The broker epoch after whose clean stop nothing was lost here: that of the marker, also if an
        earlier start on this boot took it and came to no end. If a later epoch has registered, it proves
        nothing. Takes the marker."""
        epoch = self.take_clean_marker()
        return self._clean_stop.noted if epoch is None else epoch

    def mark_clean(self, broker_epoch: int) -> None:
        """Record that every log was closed. The last thing a broker does here."""
        self._clean_stop.mark(broker_epoch)

    @property
    def same_boot(self) -> bool:
        """Whether the machine has been up since the logs were last written: their page cache survived."""
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
        """Open and recover every log, in parallel if there is an executor. Takes the clean marker first.

        ``is_suspect``: an fsync or a write failed when these logs were last open. What lies past their
        recovery points can perhaps be read and is not on the disk, and syncing it would do nothing: so it is
        written anew. It may be gone, too, as after a power cut.
        ``tell`` hears now and then how far that is, unless the stop was clean.
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
                logger.info("%s was not made to its end: removed", self._file(found[topic_partition]))
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
        if len(self.logs) == 1:  # so that a directory without logs tells whether it had one
            self.write_high_watermarks({topic_partition: 0})
        return log

    def _twin_of(self, name: str) -> str:
        """On a file system that takes ``a-0`` for ``A-0``, as macOS's own does: the other one, in words."""
        names = self._disk.list(self.path)
        twins = [other for other in names if other.lower() == name.lower()]
        if name in names or not twins:
            return ""
        return (
            f", under the name {twins[0]}: this file system does not tell upper case from lower "
            "case, so choose another name for the topic"
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a log and what the checkpoints say of it.

        They forget it while its renamed directory is there, or an interruption would leave a directory that
        looks as if somebody had taken its logs away. Where that name has no room for all of the topic's, so
        that a start could not tell whose it was, they forget it before.
        """
        log = self.logs.pop(topic_partition)
        if not says_whose_it_is(deleted_name(topic_partition, log.topic_id)):
            self._forget(topic_partition)
        log.delete(lambda: self._forget(topic_partition))

    def _finish_deletion(
        self, topic_partition: TopicPartition, name: str, found: Mapping[TopicPartition, str]
    ) -> None:
        is_whole = says_whose_it_is(name)
        if is_whole and topic_partition not in found:  # else the checkpoints are a new log's of that name
            self._forget(topic_partition)
        self._disk.remove_directory(self._file(name))

    def set_aside_log(self, topic_partition: TopicPartition) -> None:
        """Keep the files of a log under a name that is no partition's, for an operator to look at.

        The checkpoints forget it first, or an interruption would leave a directory that looks as if somebody
        had taken its logs away. Unlike what is left of a deletion, what is kept cannot tell a later start so:
        it stays, and a later log of its name may really be taken away.
        """
        log = self.logs.pop(topic_partition)
        self._forget(topic_partition)
        name = log.set_aside()
        logger.warning("%s is of an earlier topic of that name: set aside as %s", topic_partition, name)

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
            on_bytes=_nobody_waits if progress is None else progress.on_bytes,
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

        No start lies behind what is synced: a power cut would leave nothing in front of it, and a log that
        began there by itself would not be told what producers sent before.
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
        """As last written; a partition that is missing counts as 0."""
        with self._guard:
            return dict(self._high_watermarks)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write high watermarks; a log that is not among them keeps the one it had (KAFKA-1647).

        Never more than a log's end is written, nor anything for partitions without a log here.
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
        """Where the last round of compaction ended; None if the log was never compacted."""
        with self._guard:
            return self._cleaned.get(topic_partition)

    def write_cleaned(self, topic_partition: TopicPartition, offset: int, generation: int) -> bool:
        """Note that a log was compacted up to ``offset``; not if it is gone or was cut since."""
        with self._guard:
            log = self.logs.get(topic_partition)
            if log is None or log.generation != generation:
                return False
            self._cleaned[topic_partition] = Offset(offset)
            self._write(checkpoints.CLEANED, self._cleaned)
            return True

    def _lower(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Before a log is cut: no checkpoint on disk may be above its new end."""
        self._lower_all({topic_partition: end_offset})

    def _lower_to_ends(self) -> None:
        """A power cut took what a checkpoint speaks of: committed, or compacted, records. This start has cut
        there, and knew why; the next one, on this boot, would take the log for damaged.

        A log that is damaged keeps what says so.
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
        """A log of that name is gone: a new one must not be measured by the old one's checkpoints."""
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
        """Unlock. With ``clean_epoch``: first close every log, checkpoint, and mark the stop as clean."""
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
    """Make an empty directory this broker's; one that has logs but no identity is refused."""
    if broker_id is None:
        raise LogDirectoryError(f"{path} has no {meta_properties.FILE} and no broker.id was given: give one")
    logs = [name for name in disk.list(path) if _PARTITION_DIRECTORY.fullmatch(name)]
    if logs:
        raise LogDirectoryError(
            f"{path} has logs ({', '.join(logs[:3])}, ...) but no {meta_properties.FILE}: restore that file "
            "from a copy, or move the logs away"
        )
    _sync_name(disk, path)  # perhaps a process was killed that had just made it
    properties = meta_properties.MetaProperties(cluster_id, BrokerId(broker_id), directory_id)
    meta_properties.write(disk, path, properties)
    return properties


def _make_directory(disk: Disk, path: str) -> None:
    """Make what is missing of ``path``, so that no power cut takes it with all that is synced in it."""
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
        logger.warning("whether a power cut may take %s with it cannot be ruled out: %s", path, error)


def _for_each(
    items: list[TopicPartition], work: Callable[[TopicPartition], None], executor: Executor | None
) -> None:
    """Do ``work`` with every item, at once as far as the executor goes; raises the first failure."""
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
