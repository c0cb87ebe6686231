"""Finds and deletes objects that are in the store and in no log: of fenced leaders, failed steps, old topics.

The leader of a partition searches its objects, in the loop that also writes: an object that no head leads to
is then of a failed step or of a replaced leader. The broker with the least id searches the whole store for
objects of deleted topics, because a replaced leader may end its upload after its topic and its head are
deleted. Either way an object is deleted after it was listed for longer than ``GRACE_MS``. Objects of a topic
that ZooKeeper does not know stay.

The same listing shows missing objects (``losses``).

If a manifest cannot be read, nothing of its partition is deleted, because it may lead to any object.
"""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying.heads import (
    Leadership,
    abandoned,
    deleted_topics,
    forget_topic,
    leads,
    read_head,
    remove_head,
    topics_with_logs,
    write_head,
)
from sparklog.broker.remote_log.copying.lineages import read_page
from sparklog.broker.remote_log.copying.lost_objects import Losses, missing_in
from sparklog.broker.remote_log.copying.segment_source import facts_of
from sparklog.broker.remote_log.copying.troubles import Troubles
from sparklog.core.controller.state.znodes import BROKER_IDS
from sparklog.core.remote_log.garbage_watch import GarbageWatch
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.model.loops import Loop, Pause
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.remote.store import RemoteStore
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)

GRACE_MS: Final = 3_600_000
"""Longer than any read of a replaced manifest."""

GARBAGE_INTERVAL_MS: Final = 900_000

WHOLE_STORE_INTERVAL_MS: Final = 21_600_000
"""Pause between listings of the whole store, which cost a request for each thousand objects. Without deleted
topics there is none.
"""

DELETED_KEPT_MS: Final = 86_400_000
"""How long a deleted topic is remembered after its last object was listed: longer than any upload."""

_OBJECT: Final = re.compile(r"topic=([^/]+)/partition=\d+/(?:manifest/\d{20}|\w+-\d{20}-\d+)-([0-9a-f]{32})-")


@dataclass(slots=True)
class GarbageSearch:
    """The search of one broker."""

    broker: BrokerId
    partitions: Callable[[], list[Partition]]
    zookeeper: ZooKeeper
    clock: Clock
    url: str
    losses: Losses = field(default_factory=Losses)
    troubles: Troubles = field(default_factory=Troubles)
    _watches: dict[TopicPartition, GarbageWatch] = field(default_factory=dict)
    """By partition that is led here; one that is led elsewhere by now is forgotten."""
    _due_ms: int = 0
    """When all partitions are searched again; one with a suspected loss is searched earlier."""
    _orphans: GarbageWatch = field(default_factory=lambda: GarbageWatch(GRACE_MS))
    """Objects of deleted topics."""
    _whole_store_due_ms: int = 0
    _empty_since_ms: dict[TopicId, int] = field(default_factory=dict)
    """Deleted topics without a listed object, and since when. A listed object removes its topic."""

    def remove_deleted_topics(self, store: RemoteStore) -> Loop:
        """Delete all objects of partitions whose topic is deleted, then their heads.

        The search of the whole store finds objects that this listing does not have yet.
        """
        for gone in abandoned(self.zookeeper):
            for name in filter(gone.is_ours, store.names(gone.folder)):
                store.delete(name)
            remove_head(self.zookeeper, gone)
            yield Pause(0)

    def remove_disabled(self, store: RemoteStore) -> Loop:
        """Delete the objects of partitions led here whose topic has turned remote.storage.enable off.

        A log that does not begin on its disk yet waits. The head stays, empty: copies may begin again.
        """
        leaving = [
            partition
            for partition in self.partitions()
            if partition.is_leader and partition.log.config.leaves_store
        ]
        known = topics_with_logs(self.zookeeper) if leaving else ()
        for partition in leaving:
            leadership = Leadership(self.broker, partition.leader_epoch)
            start = partition.inspect(_start_without_store) if str(partition.topic_id) in known else None
            if start is None:
                continue
            with self.troubles.of(partition.topic_partition):
                remote = remote_of(partition)
                stored = read_head(self.zookeeper, remote)
                if stored is not None and stored.head.entries:
                    empty = Head(remote.topic_id, stored.head.url, start)
                    if not write_head(self.zookeeper, remote, leadership, empty, stored):
                        continue
                    logger.info("%s left the remote store; it begins at %d", partition.topic_partition, start)
                    for name in filter(remote.is_ours, store.names(remote.folder)):
                        store.delete(name)
            yield Pause(0)

    def look(self, store: RemoteStore) -> None:
        """Search what is due."""
        now_ms = self.clock.monotonic_ms()
        is_due = now_ms >= self._due_ms
        if is_due:
            self._due_ms = now_ms + GARBAGE_INTERVAL_MS
        for partition in self.partitions():
            if is_due or self.losses.is_due(partition.topic_partition):
                with self.troubles.of(partition.topic_partition):
                    self._look_at(store, partition, now_ms)
        if now_ms >= self._whole_store_due_ms:
            self._whole_store_due_ms = now_ms + WHOLE_STORE_INTERVAL_MS
            self._look_for_orphans(store, now_ms)

    def _look_at(self, store: RemoteStore, partition: Partition, now_ms: int) -> None:
        if not partition.is_leader or not partition.inspect(_has_garbage):
            self._watches.pop(partition.topic_partition, None)
            return
        remote, leadership = remote_of(partition), Leadership(self.broker, partition.leader_epoch)
        watch = self._watches.setdefault(partition.topic_partition, GarbageWatch(GRACE_MS))
        listed = [name for name in store.names(remote.folder) if remote.is_ours(name)]
        stored = read_head(self.zookeeper, remote)
        if stored is not None and stored.head.url == self.url:
            missing = missing_in(store, remote, stored.head, set(listed))
            self.losses.on_looked(partition.topic_partition, self.url, missing, now_ms)
        named = set() if stored is None else set(names_of(store, remote, stored.head))
        if leads(self.zookeeper, remote, leadership) is None:
            return  # a newer leader may have named one of them by now
        for name in watch.on_listed(listed, named, now_ms):
            logger.info("%s is in no log, and is deleted", name)
            store.delete(name)

    def _look_for_orphans(self, store: RemoteStore, now_ms: int) -> None:
        brokers = [int(name) for name in self.zookeeper.children(BROKER_IDS)]
        if not brokers or min(brokers) != self.broker:
            return
        deleted = deleted_topics(self.zookeeper)
        listed = {name: _topic_of(name) for name in store.names("")} if deleted else {}
        orphans = [name for name, topic in listed.items() if topic in deleted]
        for name in self._orphans.on_listed(orphans, (), now_ms):
            logger.info("%s is of a topic that was deleted, and is deleted", name)
            store.delete(name)
        self._forget_empty({topic_id for _, topic_id in deleted.difference(listed.values())}, now_ms)

    def _forget_empty(self, empty: set[TopicId], now_ms: int) -> None:
        self._empty_since_ms = {topic_id: self._empty_since_ms.get(topic_id, now_ms) for topic_id in empty}
        for topic_id, since_ms in self._empty_since_ms.items():
            if now_ms - since_ms > DELETED_KEPT_MS:
                forget_topic(self.zookeeper, topic_id)


def _has_garbage(log: Log, high_watermark: int) -> bool:
    return log.config.leaves_store or facts_of(log, high_watermark) is not None


def _start_without_store(log: Log, _high_watermark: int) -> int | None:
    """The start of a log that is to leave the store; None if its start is not on its disk yet."""
    is_whole = log.log_start_offset == log.local_start_offset
    return log.log_start_offset if log.config.leaves_store and is_whole else None


def remote_of(partition: Partition) -> RemotePartition:
    topic, number = partition.topic_partition
    return RemotePartition(topic, partition.topic_id, number)


def names_of(store: RemoteStore, remote: RemotePartition, head: Head) -> Iterator[str]:
    """The objects of a head: its pages, and those of segments that are not wholly below its start."""
    for entry in head.entries:
        if isinstance(entry, RemoteSegment):
            yield from remote.object_names(entry)
            continue
        yield remote.page_name(entry.base_offset, entry.page_id)
        for segment in read_page(store, remote, entry):
            if segment.end_offset > head.start_offset:
                yield from remote.object_names(segment)


def _topic_of(name: str) -> tuple[str, TopicId] | None:
    """Name and id of an object's topic; None for an object that is not a partition's."""
    found = _OBJECT.match(name)
    return found and (found[1], TopicId(hex=found[2]))
