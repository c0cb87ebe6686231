"""The segments of logs in the store, for readers: heads from ZooKeeper, pages and states from the store.

A head is read again after ``HEAD_AGE_MAX_MS``, and when it does not lead to an offset. An older head may lead
to segments that have left the log since, which does no harm: the partition knows its log's start. Pages and
states never change, so the last ones are kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from sparklog.broker.remote_log.copying.heads import read_head
from sparklog.broker.remote_log.reading.segments import HistoryCut, HistoryMissing, StoredSegment
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.remote_log.head import Head, segment_for_offset
from sparklog.core.remote_log.page import PageRef, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import parse_state
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.remote.store import RemoteStore

HEAD_AGE_MAX_MS: Final = 5_000
PAGES_KEPT_MAX: Final = 16
STATES_KEPT_MAX: Final = 1_000

T = TypeVar("T")
Key = tuple[TopicId, int]


@dataclass(slots=True)
class ManifestCatalog:
    """The ``Catalog`` of ``reading.segments``, for any number of threads; its calls block."""

    zookeeper: ZooKeeper
    store: RemoteStore
    clock: Clock
    guard: Guard
    _heads: dict[Key, tuple[int, Head | None]] = field(default_factory=dict)
    """By log: the time of the read, and the head; None for a log that has none."""
    _pages: OrderedDict[str, Sequence[RemoteSegment]] = field(default_factory=OrderedDict)
    _aborted: OrderedDict[str, tuple[AbortedTransaction, ...]] = field(default_factory=OrderedDict)

    def segment_for(
        self, topic_id: TopicId, topic_partition: TopicPartition, offset: int, *, is_fresh: bool = False
    ) -> StoredSegment | HistoryCut:
        """See ``Catalog``."""
        remote = RemotePartition(topic_partition.topic, topic_id, topic_partition.partition)
        # A head in memory may be older than the segment; only a fresh one proves that there is none.
        for asks in (True,) if is_fresh else (False, True):
            head = self._head(remote, is_fresh=asks)
            found = head and segment_for_offset(head, offset, lambda page: self._page(remote, page))
            if found:
                return self._stored(remote, found)
        if head is not None and head.is_cut and (head.end_offset or head.start_offset) <= offset:
            return HistoryCut(head.cut_epoch)
        raise HistoryMissing(
            f"the manifest of {topic_partition} has no segment with offset {offset}: its history is from "
            f"{None if head is None else head.start_offset} to {None if head is None else head.end_offset}"
        )

    def segments_from_time(
        self, topic_id: TopicId, topic_partition: TopicPartition, timestamp_ms: int
    ) -> Iterable[StoredSegment]:
        """See ``Catalog``."""
        remote = RemotePartition(topic_partition.topic, topic_id, topic_partition.partition)
        head = self._head(remote, is_fresh=True)
        for entry in () if head is None else head.entries:
            if entry.max_timestamp_ms < timestamp_ms:
                continue
            for segment in self._page(remote, entry) if isinstance(entry, PageRef) else (entry,):
                if segment.max_timestamp_ms >= timestamp_ms:
                    yield self._stored(remote, segment)

    def _head(self, remote: RemotePartition, *, is_fresh: bool) -> Head | None:
        key, now_ms = (remote.topic_id, remote.partition), self.clock.monotonic_ms()
        with self.guard:
            known = self._heads.get(key)
        if known is not None and not is_fresh and now_ms - known[0] <= HEAD_AGE_MAX_MS:
            return known[1]
        stored = read_head(self.zookeeper, remote)
        head = None if stored is None else stored.head
        with self.guard:
            self._heads[key] = (now_ms, head)
        return head

    def _page(self, remote: RemotePartition, page: PageRef) -> Sequence[RemoteSegment]:
        def read() -> Sequence[RemoteSegment]:
            name = remote.page_name(page.base_offset, page.page_id)
            return parse_page(remote, page, self.store.read(name, 0, page.object_bytes))

        return self._kept(self._pages, page.page_id, PAGES_KEPT_MAX, read)

    def _stored(self, remote: RemotePartition, segment: RemoteSegment) -> StoredSegment:
        def read() -> tuple[AbortedTransaction, ...]:
            data = self.store.read(remote.object_name(segment, "state"), 0, segment.state_bytes)
            return parse_state(segment, data).aborted

        return StoredSegment(
            segment.base_offset,
            segment.end_offset,
            remote.object_name(segment, "rest"),
            segment.rest_bytes,
            remote.object_name(segment, "arrow") if segment.arrow_bytes else "",
            self._kept(self._aborted, segment.segment_id, STATES_KEPT_MAX, read),
        )

    def _kept(self, kept: OrderedDict[str, T], key: str, kept_max: int, read: Callable[[], T]) -> T:
        with self.guard:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        value = read()
        with self.guard:
            kept[key] = value
            if len(kept) > kept_max:
                kept.popitem(last=False)
        return value
