"""The log directories of one broker: where a partition's log is, and where a new one goes.

A new log goes to the directory with the fewest partitions. A partition is in one directory only; one that is
found in two is refused, with both places named.
"""

import logging
from collections.abc import Mapping, Sequence

from sparklog.model.config import BrokerConfig, TopicConfig
from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)


class LogDirs:
    """All directories of one broker. Changed by one thread at a time."""

    def __init__(self, directories: Sequence[LogDirectory], config: BrokerConfig) -> None:
        self._directories = list(directories)
        self._config = config
        self._logs: dict[TopicPartition, Log] = {}
        self._home: dict[TopicPartition, LogDirectory] = {}

    def load(self, *, same_boot: bool, clean: Mapping[str, bool]) -> None:
        """Open every log on disk, recovering where the last stop was not clean."""
        default = LogConfig.of(self._config.topic({}))
        for directory in self._directories:
            logs = directory.load_logs(
                lambda _: default, same_boot=same_boot, clean=clean.get(directory.uuid, False)
            )
            for topic_partition, log in logs.items():
                if topic_partition in self._logs:
                    raise LogDirectoryError(
                        f"{topic_partition} is in {self._home[topic_partition].path} and in {directory.path}:"
                        " move one of the two copies away"
                    )
                self._logs[topic_partition] = log
                self._home[topic_partition] = directory

    def logs(self) -> dict[TopicPartition, Log]:
        return dict(self._logs)

    def create(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, *, is_new: bool
    ) -> Log:
        counts = {directory.uuid: 0 for directory in self._directories}
        for home in self._home.values():
            counts[home.uuid] += 1
        directory = min(self._directories, key=lambda candidate: counts[candidate.uuid])
        log = directory.create_log(topic_partition, topic_id, LogConfig.of(config))
        self._logs[topic_partition] = log
        self._home[topic_partition] = directory
        logger.info("%s: new log in %s%s", topic_partition, directory.path, "" if is_new else ", to catch up")
        return log

    def delete(self, topic_partition: TopicPartition, log: Log) -> None:
        self._logs.pop(topic_partition, None)
        self._home.pop(topic_partition, None)
        log.delete()

    def high_watermarks(self) -> dict[TopicPartition, int]:
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

    def mark_clean(self, broker_epoch: int) -> None:
        for directory in self._directories:
            directory.mark_clean(broker_epoch)

    def close(self) -> None:
        for directory in self._directories:
            directory.close()
