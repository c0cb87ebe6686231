"""Which log a partition of the table has: its topic's own, not that of an earlier topic of the same name.

While a directory was offline, or this broker down, a topic may have been deleted and its name used again. The
earlier topic's log is found at the start then. It is a *rival*: kept until the controller names the topic's
id, and set aside for the operator, or deleted if the controller has it deleted.

All methods but ``load`` are called within the guard of ``Roles``, and append to its effects.
"""

import logging
from typing import Final

from sparklog.broker.disks.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.directory_failures import DirectoryFailures, LostDirectory
from sparklog.broker.replicas.partition_maker import PartitionMaker
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from sparklog.model.settings.config import TopicConfig
from sparklog.storage.log_config import LogConfig

logger: Final = logging.getLogger(__name__)

RoleEffects = list[Partition | LostDirectory]
"""What is due after a change of roles, in order: the outboxes of partitions, and the reports of failed disks.
It is delivered once the guard of the roles is released."""


class ReplicaLogs:
    """Brings logs into the table, and out of it."""

    def __init__(
        self, table: PartitionTable, log_dirs: LogDirs, failures: DirectoryFailures, maker: PartitionMaker
    ) -> None:
        self._table = table
        self._log_dirs = log_dirs
        self._failures = failures
        self._maker = maker

    def load(self) -> None:
        """Create a partition without a role for every log on disk."""
        watermarks = self._log_dirs.high_watermarks()
        for topic_partition, log in self._log_dirs.logs().items():
            self._table.add(self._maker.make(topic_partition, log, watermarks.get(topic_partition, 0)))

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: TopicConfig,
        due: RoleEffects,
        *,
        is_new: bool,
    ) -> Partition | ErrorCode:
        """The partition of that topic, with these settings; INCONSISTENT_TOPIC_ID if a replica of another
        topic has a role under that name. Raises DirectoryOffline and DirectoryFailed.
        """
        partition = self._table.get(topic_partition)
        if partition is not None and partition.topic_id != topic_id:
            if partition.leader_epoch >= 0:
                return ErrorCode.inconsistent_topic_id
            self._give_up(partition, due)
            partition = None
        partition = partition or self._adopt(topic_partition, topic_id)
        self._set_aside_rivals(topic_partition, due)
        if partition is not None:
            partition.log_guard.configure(LogConfig.of(config))
            return partition
        log = self._log_dirs.create(topic_partition, topic_id, config, is_new=is_new)
        partition = self._maker.make(topic_partition, log, 0)
        self._table.add(partition)
        return partition

    def delete(self, partition: Partition, due: RoleEffects) -> None:
        """Delete the log. Raises DirectoryFailed."""
        due.append(partition)
        self._table.remove(partition)
        partition.delete(lambda: self._log_dirs.delete(partition.topic_partition))

    def delete_rival(self, topic_partition: TopicPartition, topic_id: TopicId) -> bool:
        """Delete the log of a deleted topic that has no ``Partition`` here. It may exist if a log of another
        topic has the same name, and neither has had a role yet. False if it may be in an offline directory.
        Raises DirectoryFailed.
        """
        return self._log_dirs.delete_rival(topic_partition, topic_id)

    def may_be_offline(self, partition: Partition) -> bool:
        """Whether the log cannot be deleted now, because its directory is offline."""
        return not self._log_dirs.is_online(partition.topic_partition)

    def make_way(self, topics: dict[str, TopicId], due: RoleEffects) -> None:
        """As ``Roles.make_way``."""
        waiting = [one.topic_partition for one in self._table.partitions() if one.leader_epoch < 0]
        for topic_partition in dict.fromkeys([*waiting, *self._log_dirs.with_rivals()]):
            topic_id = topics.get(topic_partition.topic, NO_TOPIC_ID)
            if topic_id != NO_TOPIC_ID:
                self._make_way(topic_partition, topic_id, due)

    def _make_way(self, topic_partition: TopicPartition, topic_id: TopicId, due: RoleEffects) -> None:
        partition = self._table.get(topic_partition)
        if partition is not None and partition.topic_id != topic_id:
            if partition.leader_epoch >= 0 or partition.topic_id == NO_TOPIC_ID:
                return
            self._give_up(partition, due)
            partition = None
        if partition is None:
            self._adopt(topic_partition, topic_id)
        self._set_aside_rivals(topic_partition, due)

    def _give_up(self, partition: Partition, due: RoleEffects) -> None:
        """Set aside a log of an earlier topic of this name, found at the start.

        Its replica was moved and its topic deleted while this broker or directory was down. No request will
        name it; it is kept for the operator.
        """
        due.append(partition)
        self._table.remove(partition)
        partition.delete(lambda: self._log_dirs.give_up(partition.topic_partition))

    def _adopt(self, topic_partition: TopicPartition, topic_id: TopicId) -> Partition | None:
        """Put into use the topic's log if it is among several found at the start for this name."""
        log = self._log_dirs.adopt(topic_partition, topic_id)
        if log is None:
            return None
        watermark = self._log_dirs.high_watermarks().get(topic_partition, 0)
        partition = self._maker.make(topic_partition, log, watermark)
        self._table.add(partition)
        return partition

    def _set_aside_rivals(self, topic_partition: TopicPartition, due: RoleEffects) -> None:
        try:
            self._log_dirs.set_aside_rivals(topic_partition)
        except DirectoryFailed as failed:  # not the directory of the log that is wanted
            logger.exception("%s: a log of an earlier topic could not be set aside", topic_partition)
            note_failure(self._failures, failed, due)


def note_failure(failures: DirectoryFailures, failed: DirectoryFailed, due: RoleEffects) -> None:
    """Mark the failed directory now, so that nothing is placed there; its report is due later."""
    lost = failures.note(failed)
    if lost is not None:
        due.append(lost)
