"""Compares the logs of leaders that do not serve yet with their histories (``core.remote_log.beginning``).

A leader waits (``Partition.awaits_history``) if an election may have lost records, its log has none since,
and its topic's segments are copied to a store. The comparison shows either that the log lacks nothing, or
that it begins anew at the history's end. A partition whose head or store cannot be read goes on waiting. The
reason is logged once and shown by ``topics describe``. A partition without a head waits for no store.

Several loops compare, each its share of the partitions, because a thousand may wait after a power cut. They
have their own threads, so that no upload delays a comparison, and no request waits for a store.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.partition.answers import StoreShare
from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying.end_states import last_segments, producers_at_end, read_state
from sparklog.broker.remote_log.copying.garbage_search import remote_of
from sparklog.broker.remote_log.copying.heads import read_head
from sparklog.core.remote_log.beginning import begin_anew, must_begin_anew
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.core.replication.leader import Beginning
from sparklog.model.errors import SparklogError
from sparklog.model.ids import LeaderEpoch, TopicPartition
from sparklog.model.loops import Await, Loop, Pause, Signal
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.remote.ownership import owner_of
from sparklog.remote.store import RemoteStore
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)

LOOPS: Final = 4
"""Partitions that are compared at the same time."""

RETRY_MS: Final = 500
"""Pause after a comparison that failed."""


@dataclass(frozen=True, slots=True)
class QuestionPorts:
    """The ports of the comparison. Without ``remote.log.storage.url`` ``store`` is None, ``url`` empty."""

    zookeeper: ZooKeeper
    store: RemoteStore | None
    url: str
    cluster_id: str
    clock: Clock


@dataclass(frozen=True, slots=True)
class _OwnLog:
    """The facts of a leader's log that are compared."""

    is_in_store: bool
    start_offset: int
    end_offset: int
    epochs: EpochHistory


def _own_log(log: Log, _: int) -> _OwnLog:
    return _OwnLog(log.config.remote_storage, log.log_start_offset, log.log_end_offset, log.epochs.copy())


@dataclass(slots=True)
class HistoryQuestions:
    """The comparisons of one broker; a listener of its partitions' leadership."""

    partitions: Callable[[], list[Partition]]
    ports: QuestionPorts
    loops: int = LOOPS
    """Each partition belongs to one of them."""
    _arrived: list[Signal] = field(init=False)
    """One for each loop: a partition of its share has begun to be led."""
    _reported: dict[TopicPartition, str] = field(default_factory=dict)
    """Waiting partitions whose comparison failed, and the reason in the log."""
    _is_ours: bool = False
    """Whether the store was seen to be this cluster's. Its owner never changes."""

    def __post_init__(self) -> None:
        self._arrived = [Signal() for _ in range(self.loops)]

    def began_leading(self, topic_partition: TopicPartition, _: LeaderEpoch) -> None:
        self._arrived[self._share_of(topic_partition)].give()

    def ceased_leading(self, topic_partition: TopicPartition, _: LeaderEpoch) -> None:
        self._reported.pop(topic_partition, None)

    def loop(self, number: int) -> Loop:
        """Compare the partitions of share ``number``, for ever."""
        while True:
            waiting = [
                partition
                for partition in self.partitions()
                if partition.awaits_history and self._share_of(partition.topic_partition) == number
            ]
            if not waiting:
                yield Await(self._arrived[number])
                continue
            for partition in waiting:
                self._ask(partition)
                yield Pause(0)
            if any(partition.awaits_history for partition in waiting):
                yield Await(self._arrived[number], RETRY_MS)

    def _share_of(self, topic_partition: TopicPartition) -> int:
        return hash(topic_partition) % self.loops

    def _ask(self, partition: Partition) -> None:
        leader_epoch = partition.leader_epoch  # read before the log, so that a later log is not taken for it
        own, head = partition.inspect(_own_log), None
        if own is None:
            return
        try:
            remote = remote_of(partition)
            stored = read_head(self.ports.zookeeper, remote) if own.is_in_store else None
            head = None if stored is None else stored.head
            beginning = None if head is None else self._compare(remote, head, own)
        except (OSError, SparklogError) as error:
            self._report(partition, _share(leader_epoch, head, own, error))
            return
        if not partition.on_history(leader_epoch, beginning):
            return  # another role since
        self._reported.pop(partition.topic_partition, None)
        if beginning is not None:
            logger.warning(
                "%s: its disks have lost records. The log begins anew at offset %d, where its history in the "
                "remote store ends; offsets %d to %d are read from there. What was written behind is lost",
                partition.topic_partition,
                beginning.offset,
                beginning.history.log_start_offset,
                beginning.offset - 1,
            )

    def _compare(self, remote: RemotePartition, head: Head, own: _OwnLog) -> Beginning | None:
        """The state in which the log begins anew; None if it lacks nothing."""
        end = head.end_offset
        if end is None or end <= own.start_offset:
            return None
        store = self._store(head)
        last = last_segments(store, remote, head)[-1]
        lineage = Lineage(last.leader_epoch, end)
        epochs = read_state(store, remote, last).epochs
        if lineage.needs_epochs(own.epochs):
            lineage = Lineage(last.leader_epoch, end, tuple(epoch for epoch in epochs if epoch[1] < end))
        if not must_begin_anew(
            lineage, own.epochs, log_start_offset=own.start_offset, log_end_offset=own.end_offset
        ):
            return None
        producers = producers_at_end(store, remote, head, self.ports.clock.wall_ms())
        return begin_anew(end, max(own.start_offset, head.start_offset), epochs, producers)

    def _store(self, head: Head) -> RemoteStore:
        """The store of this history. SparklogError if the broker has another store, or another cluster's."""
        store = self.ports.store
        if store is None or head.url != self.ports.url:
            configured = f"remote.log.storage.url={self.ports.url}" if self.ports.url else "no store is set"
            raise SparklogError(f"its history is in {head.url}, and {configured}: set it back")
        if not self._is_ours:
            owner = owner_of(store)
            if owner != self.ports.cluster_id:
                raise SparklogError(
                    f"the store at {self.ports.url} belongs to cluster {owner!r}, not to "
                    f"{self.ports.cluster_id!r}: it is not that to which this cluster's segments were copied"
                )
            self._is_ours = True
        return store

    def _report(self, partition: Partition, share: StoreShare) -> None:
        name = partition.topic_partition
        partition.note_store_share(share)
        if self._reported.get(name) != share.trouble:
            self._reported[name] = share.trouble
            logger.error(
                "%s: %s. Bring the store back; or give up what is in it and not in this log, with `sparklog "
                "elect-leaders --unclean --without-store`",
                name,
                share.trouble,
            )


def _share(leader_epoch: int, head: Head | None, own: _OwnLog, error: Exception) -> StoreShare:
    """The known part of the history that the leader waits for, with the error."""
    trouble = (
        f"its leader, whose log ends at {own.end_offset}, serves nobody until that was compared with its "
        f"history in the remote store: {error}"
    )
    if head is None or head.end_offset is None:
        return StoreShare(leader_epoch, trouble=trouble)
    return StoreShare(leader_epoch, head.start_offset, head.end_offset, head.size_bytes, trouble=trouble)
