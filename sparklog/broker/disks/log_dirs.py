"""The log directories of one broker: which directory holds a partition's log, and which gets a new log.

A new log is created in the directory with the fewest partitions. A log is in one directory only; a second
copy is refused with an error that names both directories. Two logs of one name but different topic ids are
allowed: while a directory was offline, a topic was deleted and its name used again. The controller sends the
current topic's id, and the other topic's log is set aside.

When a directory's disk fails, the directory and its partitions go offline; the other directories serve on. It
stays offline until the broker restarts. Meanwhile no replica is created that the offline directory may
already hold (Kafka's rule).
"""

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.model.errors import LogDirectoryError, SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.ports import Executor, Guard
from sparklog.model.settings.config import BrokerConfig, TopicConfig
from sparklog.storage.disk import may_have_lost
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.recovery.recovery_progress import Tell

logger: Final = logging.getLogger(__name__)


class DirectoryFailed(OSError):  # noqa: N818 (says what is the case)
    """The disk of a log directory failed. ``is_suspect``: the directory may have lost records."""

    def __init__(self, directory: LogDirectory, error: OSError) -> None:
        super().__init__(f"log directory {directory.path} failed: {error}")
        self.directory = directory
        self.is_suspect = may_have_lost(error)


class DirectoryOffline(SparklogError):  # noqa: N818 (says what is the case)
    """A replica may be in an offline directory; a new log elsewhere would lack its records."""


class LogDirs:
    """All directories of one broker: locked ones that serve, and failed ones. One thread at a time changes
    them.
    """

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        config: BrokerConfig,
        unusable: Mapping[str, str] | None = None,
        *,
        new_guard: Callable[[], Guard],
    ) -> None:
        """``unusable``: the path of each directory that could not be opened, and the reason."""
        self._directories = list(directories)
        self._failed: list[LogDirectory] = []
        self._offline = dict(unusable or {})
        self._config = config
        self._heard: frozenset[str] = frozenset()
        """Ids of directories noted as suspect when ``load`` began, in any directory that was readable
        then."""
        self._home: dict[TopicPartition, LogDirectory] = {}
        self._rivals: dict[TopicPartition, list[LogDirectory]] = {}
        """Other directories with logs of the same name, of other topics."""
        self._half_made: dict[tuple[TopicId, int], LogDirectory] = {}
        """Replicas whose creation failed, and the directory in which their files may remain."""
        self._guard = new_guard()
        self._notes = new_guard()
        """Held while the note of suspect directories is read and rewritten."""
        self.lost_at_start: frozenset[str] = frozenset()
        """Ids of directories that failed while they were loaded, and may have lost records."""

    @property
    def offline(self) -> Mapping[str, str]:
        """The path of each offline directory, and the reason."""
        return self._offline

    def suspects(self) -> frozenset[str]:
        """Ids of directories whose fsync failed, as noted in the directories that serve."""
        return frozenset().union(*(directory.suspects() for directory in self._directories))

    def forget_suspects(self) -> None:
        """Remove the notes about directories that are open now, because the registration covers them.

        Raises LogDirectoryError if a note cannot be removed: this broker would be counted in sync, but its
        next start could not prove its logs.
        """
        present = {str(directory.uuid) for directory in self._directories}
        for directory in self._directories:
            if directory.suspects() & present:
                try:
                    directory.write_suspects(directory.suspects() - present)
                except OSError as error:
                    raise LogDirectoryError(
                        f"log directory {directory.path} says that an fsync of another one failed, and that "
                        f"note cannot be taken away now: {error}; repair its disk, or make room on it"
                    ) from error

    def fail(self, directory: LogDirectory, why: str, *, is_suspect: bool) -> list[TopicPartition] | None:
        """Take a directory offline; returns its partitions, or None if it was offline already.

        ``is_suspect``: a note is written and synced into the other directories, because the directory would
        look intact at the next start. Raises OSError if that fails too.
        """
        with self._guard:
            if directory not in self._directories:
                return None
            # Other threads iterate over this list without a lock, so it is replaced.
            self._directories = [one for one in self._directories if one is not directory]
            self._failed.append(directory)
            self._offline[directory.path] = why
        logger.error("log directory %s is offline from now on: %s", directory.path, why)
        if is_suspect:
            with self._notes:
                for other in self._directories:
                    other.write_suspects(other.suspects() | {str(directory.uuid)})
        return [topic_partition for topic_partition, home in list(self._home.items()) if home is directory]

    def forget_suspect(self, directory_uuid: str) -> None:
        """Remove the notes about a suspect directory, because ZooKeeper has recorded it. Raises
        DirectoryFailed if a note cannot be removed."""
        with self._notes:
            for directory in self._directories:
                try:
                    if directory_uuid in directory.suspects():
                        directory.write_suspects(directory.suspects() - {directory_uuid})
                except OSError as error:
                    raise DirectoryFailed(directory, error) from error

    @property
    def is_any_online(self) -> bool:
        return bool(self._directories)

    def is_online(self, topic_partition: TopicPartition) -> bool:
        return self._home.get(topic_partition) in self._directories

    def identities(self) -> list[DirectoryIdentity]:
        """What each directory proves about the previous stop. Call after ``load``."""
        return [
            DirectoryIdentity(
                uuid=str(directory.uuid),
                clean_epoch=directory.left_clean_by(),
                emptied=directory.is_emptied,
                same_boot=directory.cache_survived,
                corrupt=str(directory.uuid) in self._heard
                or any(log.corruption is not None for log in directory.logs.values()),
                logs=frozenset(
                    (log.topic_id, topic_partition.partition)
                    for topic_partition, log in directory.logs.items()
                ),
            )
            for directory in self._directories
        ]

    def load(self, executor: Executor, suspect: Set[str] = frozenset(), tell: Tell = logger.info) -> None:
        """Open every log on disk; recover it unless the last stop was clean. ``suspect``: ids of directories
        whose fsync failed before that stop; ``tell`` receives the progress."""
        self._heard = self.suspects()
        default = LogConfig.of(self._config.topic({}))
        for directory in list(self._directories):
            is_suspect = str(directory.uuid) in suspect
            try:
                logs = directory.load_logs(
                    lambda _topic: default, executor=executor, is_suspect=is_suspect, tell=tell
                )
            except OSError as error:
                is_lost = may_have_lost(error)
                if is_lost:
                    self.lost_at_start |= {str(directory.uuid)}
                self.fail(directory, f"it cannot be read: {error}", is_suspect=is_lost)
                if not self._directories:
                    raise
                continue
            for topic_partition in logs:
                if self._home.setdefault(topic_partition, directory) is not directory:
                    self._add_rival(topic_partition, directory)

    def _add_rival(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        rivals = self._rivals.setdefault(topic_partition, [])
        for other in (self._home[topic_partition], *rivals):
            where = f"{topic_partition} is in {other.path} and in {directory.path}"
            if other.logs[topic_partition].topic_id == directory.logs[topic_partition].topic_id:
                raise LogDirectoryError(f"{where}: move one of the two copies away")
            logger.warning("%s, of two topics of that name: the one that gets no role is set aside", where)
        rivals.append(directory)

    def logs(self) -> dict[TopicPartition, Log]:
        return {
            topic_partition: directory.logs[topic_partition]
            for topic_partition, directory in self._home.items()
        }

    def create(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, *, is_new: bool
    ) -> Log:
        """Create an empty log in the directory with the fewest partitions.

        Raises DirectoryOffline in three cases. The replica is not new, and a directory is offline: that one
        may hold the only copy of its records. Every directory is offline. Creating this log failed before: a
        repeated LeaderAndIsr would create a second copy, and the next start would find both.
        """
        if not self._directories:
            raise DirectoryOffline(f"{topic_partition}: no log directory is left to make a log in")
        begun = self._half_made.get((topic_id, topic_partition.partition))
        if begun is not None:
            raise DirectoryOffline(
                f"{topic_partition} was begun in {begun.path}, which failed then: bring that back, and start "
                "the broker again"
            )
        if self._offline and not is_new:
            raise DirectoryOffline(
                f"{topic_partition} has no log in a directory that serves, and may have one in "
                f"{', '.join(self._offline)}: bring that back, or take it out of log.dirs"
            )
        homes = list(self._home.values())
        directory = min(self._directories, key=homes.count)
        try:
            log = directory.create_log(topic_partition, topic_id, LogConfig.of(config))
        except OSError as error:
            self._half_made[topic_id, topic_partition.partition] = directory
            raise DirectoryFailed(directory, error) from error
        self._home[topic_partition] = directory
        logger.info("%s: new log in %s%s", topic_partition, directory.path, "" if is_new else ", to catch up")
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete the log. Raises DirectoryFailed if the disk fails: the next start could not distinguish the
        remaining files from a wanted replica.
        """
        directory = self._home.pop(topic_partition)
        try:
            directory.delete_log(topic_partition)
        except OSError as error:
            raise DirectoryFailed(directory, error) from error

    def delete_rival(self, topic_partition: TopicPartition, topic_id: TopicId) -> bool:
        """Delete that topic's log if it is one of several logs of this name and not in use. False if the log
        is or may be in an offline directory. Raises DirectoryFailed."""
        if (topic_id, topic_partition.partition) in self._half_made:
            return False
        for directory in self._rivals.get(topic_partition, ()):
            if directory.logs[topic_partition].topic_id != topic_id:
                continue
            if directory not in self._directories:
                return False
            self._rivals[topic_partition].remove(directory)
            try:
                directory.delete_log(topic_partition)
            except OSError as error:
                raise DirectoryFailed(directory, error) from error
            break
        return True

    def give_up(self, topic_partition: TopicPartition) -> None:
        """Move the log in use to the rivals, to be set aside, because it belongs to an earlier topic."""
        self._rivals.setdefault(topic_partition, []).append(self._home.pop(topic_partition))

    def adopt(self, topic_partition: TopicPartition, topic_id: TopicId) -> Log | None:
        """Put that topic's log into use if it is among the rivals; returns it, or None."""
        for directory in self._rivals.get(topic_partition, ()):
            log = directory.logs[topic_partition]
            if log.topic_id == topic_id and directory in self._directories:
                self._rivals[topic_partition].remove(directory)
                self._home[topic_partition] = directory
                return log
        return None

    def with_rivals(self) -> list[TopicPartition]:
        """Partitions whose name has logs that are not in use."""
        return [topic_partition for topic_partition, rivals in self._rivals.items() if rivals]

    def set_aside_rivals(self, topic_partition: TopicPartition) -> None:
        """Rename the logs of earlier topics of that name to strays.

        Raises DirectoryFailed. A log in an offline directory stays; the next start with that directory finds
        it again.
        """
        rivals = self._rivals.get(topic_partition, [])
        while rivals:
            directory = rivals.pop()
            if directory not in self._directories:
                continue
            try:
                directory.set_aside_log(topic_partition)
            except OSError as error:
                raise DirectoryFailed(directory, error) from error

    def home_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """The directory of the log in use."""
        return self._home.get(topic_partition)

    def contents(self) -> dict[LogDirectory, list[TopicPartition]]:
        """The partitions in each directory that serves."""
        return {
            directory: [topic_partition for topic_partition, home in self._home.items() if home is directory]
            for directory in self._directories
        }

    def cleaned_up_to(self, topic_partition: TopicPartition) -> int | None:
        """Where the last round of compaction ended; None if the log was never compacted."""
        directory = self._home.get(topic_partition)
        return None if directory is None else directory.cleaned_up_to(topic_partition)

    def write_cleaned(self, topic_partition: TopicPartition, offset: int, generation: int) -> None:
        """Record where a round of compaction ended, unless the log of that generation is deleted."""
        directory = self._home.get(topic_partition)
        if directory is not None:
            directory.write_cleaned(topic_partition, offset, generation)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks of the last checkpoint, from all directories that serve."""
        return {
            topic_partition: offset
            for directory in self._directories
            for topic_partition, offset in directory.read_high_watermarks().items()
            if self._home.get(topic_partition) is directory
        }

    def write_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Raises DirectoryFailed, as ``checkpoint_recovery_points`` does."""

        def write(directory: LogDirectory) -> None:
            own = {
                topic_partition: offset
                for topic_partition, offset in watermarks.items()
                if self._home.get(topic_partition) is directory
            }
            directory.write_high_watermarks(own)

        self._in_each(write)

    def checkpoint_recovery_points(self) -> None:
        self._in_each(LogDirectory.checkpoint_recovery_points)

    def _in_each(self, work: Callable[[LogDirectory], None]) -> None:
        failed: DirectoryFailed | None = None
        for directory in list(self._directories):
            try:
                work(directory)
            except OSError as error:
                failed = DirectoryFailed(directory, error)
        if failed is not None:
            raise failed

    def close(self, clean_epoch: int | None = None) -> None:
        """Unlock; with ``clean_epoch`` close every log first and leave nothing to recover.

        Raises DirectoryFailed if a disk fails, after all directories are unlocked.
        """
        for directory in self._failed:
            directory.close()
        failed: DirectoryFailed | None = None
        for directory in self._directories:
            try:
                directory.close(clean_epoch=clean_epoch)
            except OSError as error:
                if failed is None or may_have_lost(error):
                    failed = DirectoryFailed(directory, error)
        if failed is not None:
            raise failed
