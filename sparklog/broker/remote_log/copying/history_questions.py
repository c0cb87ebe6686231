"""Compares logs of leaders that serve nobody yet with their histories in the store (``tiering.beginning``).

A leader waits (``Partition.awaits_history``) if an election may have lost records, it has none since, and its
topic's segments are copied to a store. The answer is one of two: its log lacks nothing, or it begins anew at
the history's end. A partition whose head or store cannot be read waits, and says why: in the log once for
each reason, and in ``topics describe``. Partitions without a head do not wait for the store.

Several loops ask, each for its share of the partitions, because a thousand may wait after a power cut. They
have threads of their own, so that no upload delays a question, and no request waits for a store.
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

logger = logging.getLogger(__name__)

LOOPS: Final = 4
"""Partitions that are compared at the same time."""

RETRY_MS: Final = 500
"""Pause after a comparison that failed."""


@dataclass(frozen=True, slots=True)
class QuestionPorts:
    """What the comparison reaches. ``store`` is None, ``url`` empty, without ``remote.log.storage.url``."""

    zookeeper: ZooKeeper
    store: RemoteStore | None
    url: str
    cluster_id: str
    clock: Clock


@dataclass(frozen=True, slots=True)
class _OwnLog:
    """What of a leader's log is compared."""

    is_in_store: bool
    start_offset: int
    end_offset: int
    epochs: EpochHistory


def _own_log(log: Log, _: int) -> _OwnLog:
    return _OwnLog(log.config.remote_storage, log.log_start_offset, log.log_end_offset, log.epochs.copy())


@dataclass(slots=True)
class HistoryQuestions:
    """The questions of one broker; a listener of its partitions' leadership. ``loops`` is how many ask."""

    partitions: Callable[[], list[Partition]]
    ports: QuestionPorts
    loops: int = LOOPS
    _arrived: list[Signal] = field(init=False)
    _told: dict[TopicPartition, str] = field(default_factory=dict)
    _is_ours: bool = False

    def __post_init__(self) -> None:
        self._arrived = [Signal() for _ in range(self.loops)]

    def began_leading(self, topic_partition: TopicPartition, _: LeaderEpoch) -> None:
        self._arrived[self._share_of(topic_partition)].give()

    def ceased_leading(self, topic_partition: TopicPartition, _: LeaderEpoch) -> None:
        self._told.pop(topic_partition, None)

    def loop(self, number: int) -> Loop:
        """The questions of every ``loops``-th partition, for ever."""
        while True:
            waiting = [
                one
                for one in self.partitions()
                if one.awaits_history and self._share_of(one.topic_partition) == number
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
        leader_epoch = partition.leader_epoch  # before the log is looked at, or of a later one
        own, head = partition.inspect(_own_log), None
        if own is None:
            return
        try:
            remote = remote_of(partition)
            stored = read_head(self.ports.zookeeper, remote) if own.is_in_store else None
            head = None if stored is None else stored.head
            beginning = None if head is None else self._compare(remote, head, own)
        except (OSError, SparklogError) as error:
            self._tell(partition, _share(leader_epoch, head, own, error))
            return
        if not partition.on_history(leader_epoch, beginning):
            return
        self._told.pop(partition.topic_partition, None)
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
        """Where the log begins anew; None if it lacks nothing."""
        end = head.end_offset
        if end is None or end <= own.start_offset:
            return None
        store = self._store(head)
        last = last_segments(store, remote, head)[-1]
        lineage = Lineage(last.leader_epoch, end)
        epochs = read_state(store, remote, last).epochs
        if lineage.needs_epochs(own.epochs):
            lineage = Lineage(last.leader_epoch, end, tuple(one for one in epochs if one[1] < end))
        if not must_begin_anew(
            lineage, own.epochs, log_start_offset=own.start_offset, log_end_offset=own.end_offset
        ):
            return None
        producers = producers_at_end(store, remote, head, self.ports.clock.wall_ms())
        return begin_anew(end, max(own.start_offset, head.start_offset), epochs, producers)

    def _store(self, head: Head) -> RemoteStore:
        """The store of this history. SparklogError if it is another, or another cluster's."""
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

    def _tell(self, partition: Partition, share: StoreShare) -> None:
        name = partition.topic_partition
        partition.note_store_share(share)
        if self._told.get(name) != share.trouble:
            self._told[name] = share.trouble
            logger.error(
                "%s: %s. Bring the store back; or give up what is in it and not in this log, with `sparklog "
                "elect-leaders --unclean --without-store`",
                name,
                share.trouble,
            )


def _share(leader_epoch: int, head: Head | None, own: _OwnLog, error: Exception) -> StoreShare:
    """What is known of the history that the leader waits for."""
    trouble = (
        f"its leader, whose log ends at {own.end_offset}, serves nobody until that was compared with its "
        f"history in the remote store: {error}"
    )
    if head is None or head.end_offset is None:
        return StoreShare(leader_epoch, trouble=trouble)
    return StoreShare(leader_epoch, head.start_offset, head.end_offset, head.size_bytes, trouble=trouble)
