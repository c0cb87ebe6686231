"""The log directories of one broker: where a partition's log is, and where a new one goes.

A new log goes to the directory with the fewest partitions. A partition is in one directory only; one that is
found in two is refused, with both places named.
"""

import logging
from collections.abc import Mapping, Sequence

from sparklog.core.controller.incarnation import DirectoryIdentity
from sparklog.model.config import BrokerConfig, TopicConfig
from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.ports import Executor
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)


class LogDirs:
    """All directories of one broker, locked. Changed by one thread at a time."""

    def __init__(self, directories: Sequence[LogDirectory], config: BrokerConfig) -> None:
        self._directories = list(directories)
        self._config = config
        self._home: dict[TopicPartition, LogDirectory] = {}

    def identities(self) -> list[DirectoryIdentity]:
        """What each directory proves about the stop before. Call when the logs are loaded."""
        return [
            DirectoryIdentity(
                uuid=str(directory.uuid),
                clean_epoch=directory.take_clean_marker(),
                empty=directory.is_empty,
                corrupt=any(log.corruption is not None for log in directory.logs.values()),
            )
            for directory in self._directories
        ]

    def load(self, executor: Executor) -> None:
        """Open every log on disk, recovering where the last stop was not clean."""
        default = LogConfig.of(self._config.topic({}))
        for directory in self._directories:
            for topic_partition in directory.load_logs(lambda _topic: default, executor=executor):
                other = self._home.setdefault(topic_partition, directory)
                if other is not directory:
                    raise LogDirectoryError(
                        f"{topic_partition} is in {other.path} and in {directory.path}:"
                        " move one of the two copies away"
                    )

    def logs(self) -> dict[TopicPartition, Log]:
        return {tp: directory.logs[tp] for tp, directory in self._home.items()}

    def create(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, *, is_new: bool
    ) -> Log:
        """A new, empty log in the directory that has the fewest."""
        homes = list(self._home.values())
        directory = min(self._directories, key=homes.count)
        log = directory.create_log(topic_partition, topic_id, LogConfig.of(config))
        self._home[topic_partition] = directory
        logger.info("%s: new log in %s%s", topic_partition, directory.path, "" if is_new else ", to catch up")
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        self._home.pop(topic_partition).delete_log(topic_partition)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """As they were last written, over all directories."""
        merged: dict[TopicPartition, int] = {}
        for directory in self._directories:
            merged.update(directory.read_high_watermarks())
        return merged

    def write_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        for directory in self._directories:
            own = {tp: offset for tp, offset in watermarks.items() if self._home.get(tp) is directory}
            directory.write_high_watermarks(own)

    def checkpoint_recovery_points(self) -> None:
        for directory in self._directories:
            directory.checkpoint_recovery_points()

    def close(self, clean_epoch: int | None = None) -> None:
        """Unlock; with ``clean_epoch`` close every log first and leave nothing to recover."""
        for directory in self._directories:
            directory.close(clean_epoch=clean_epoch)
