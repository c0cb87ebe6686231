"""Retention of logs that are in a remote store, on their disks and as a whole.

Every replica deletes local segments by ``local.retention.*`` if the manifest has them. The leader raises the
log's start by ``retention.*``; followers take that start over, and the copier deletes in the store. A log
that is wholly on its disk keeps the rules of every log (``storage.retention``). Segments of a log that an
unclean election has lost do not count, although the manifest has them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying.heads import read_head
from sparklog.broker.remote_log.copying.lineages import Lineages, read_page
from sparklog.core.remote_log.decisions import Limits, local_start_after_deletion, start_after_retention
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.remote_log.page import PageRef
from sparklog.core.remote_log.reach import RemoteLog, SealedSegment
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Loop, Pause
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.remote.store import RemoteStore
from sparklog.storage.log import Log
from sparklog.storage.segments.segment import Segment

logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class RemoteLogDeletion:
    """The deletions of one broker's replicas, in rounds."""

    partitions: Callable[[], list[Partition]]
    zookeeper: ZooKeeper
    store: RemoteStore
    clock: Clock
    interval_ms: int
    _lineages: Lineages = field(default_factory=Lineages)

    def loop(self) -> Loop:
        """Rounds, with a pause after each. A partition that fails is tried again in the next one."""
        while True:
            for partition in self.partitions():
                try:
                    self._delete_of(partition)
                except (OSError, SparklogError) as error:
                    logger.error("%s: nothing leaves this disk now: %s", partition.topic_partition, error)
                yield Pause(0)
            yield Pause(self.interval_ms)

    def _delete_of(self, partition: Partition) -> None:
        if partition.log.config.leaves_store:
            partition.trim(_begin_on_disk)
        if not partition.log.config.remote_storage:
            return
        name, number = partition.topic_partition.topic, partition.topic_partition.partition
        remote = RemotePartition(name, partition.topic_id, number)
        stored = read_head(self.zookeeper, remote)
        if stored is None or not stored.head.entries:
            return
        epochs = partition.inspect(lambda log, _: log.epochs.copy())
        if epochs is None:
            return
        lineage = self._lineages.of(self.store, remote, stored.head, epochs)
        deleted = self._delete_local(partition, stored.head, lineage)
        if deleted:
            logger.info("%s: %d segments left this disk", partition.topic_partition, deleted)
        # Retention of a log that shares less than the history waits until the copier has cut the rest.
        is_whole = partition.inspect(lambda log, _: _shared(log, lineage) == lineage.end_offset)
        if (
            is_whole
            and partition.is_leader
            and partition.log.log_start_offset < partition.log.local_start_offset
        ):
            self._raise_start(partition, remote, stored.head)

    def _delete_local(self, partition: Partition, head: Head, lineage: Lineage) -> int:
        now_ms = self.clock.wall_ms()

        def decide(log: Log, _high_watermark: int) -> tuple[int, int] | None:
            sealed = [_sealed(segment) for segment in log.segments[:-1]]
            limits = _limits(log.config.local_retention_ms, log.config.local_retention_bytes)
            active_bytes = log.segments[-1].size_bytes
            offset = local_start_after_deletion(
                head,
                sealed,
                limits,
                shared_end=_shared(log, lineage),
                active_bytes=active_bytes,
                now_ms=now_ms,
            )
            return None if offset is None else (offset, log.generation)

        decided = partition.inspect(decide)
        return 0 if decided is None else partition.delete_local_segments(*decided)

    def _raise_start(self, partition: Partition, remote: RemotePartition, head: Head) -> None:
        """Raise the log's start by retention, within the first page, or within the tail if there is no page.

        Later rounds take the next page.
        """
        first = head.entries[0]
        if isinstance(first, PageRef):
            front = read_page(self.store, remote, first)
            later_bytes = head.size_bytes - first.size_bytes
        else:
            front, later_bytes = head.tail, 0
        end, now_ms = head.end_offset or 0, self.clock.wall_ms()

        def raise_start(log: Log, high_watermark: int) -> int:
            alone_bytes = sum(segment.size_bytes for segment in log.segments if segment.end_offset > end)
            start = start_after_retention(
                RemoteLog(head.start_offset, tuple(front)),
                _limits(log.config.retention_ms, log.config.retention_bytes),
                log_start_offset=log.log_start_offset,
                local_only_bytes=alone_bytes + later_bytes,
                now_ms=now_ms,
            )
            return int(log.raise_log_start(min(start, high_watermark)))

        if partition.trim(raise_start):
            start = partition.log_start_offset
            logger.info("%s: retention raised the log start to %d", partition.topic_partition, start)


def _shared(log: Log, lineage: Lineage) -> int:
    """The end of the part of the history that is this log's; 0 if no epoch shows it."""
    return lineage.end_shared_with(log.epochs, log.log_end_offset) or 0


def _begin_on_disk(log: Log, _high_watermark: int) -> int:
    """Raise the log start to the disk's, which gives up the records that only the store has."""
    return log.raise_log_start(log.local_start_offset)


def _limits(age_ms: int, size_bytes: int) -> Limits:
    return Limits(age_ms if age_ms >= 0 else None, size_bytes if size_bytes >= 0 else None)


def _sealed(segment: Segment) -> SealedSegment:
    newest_ms = segment.greatest_timestamp()[0]
    if newest_ms < 0:
        newest_ms = segment.created_ms
    return SealedSegment(segment.base_offset, segment.end_offset, newest_ms, segment.size_bytes)
