"""Losses of the store: objects that a manifest names, and that no listing has.

A person or the store has removed them. An object counts as lost once it was missed for ``LATE_MS``, because a
listing may be late, and lacks objects that are named after it. Copies go on, because later segments can be
read. The log names the lost range and the object once, until that changes; ``topics describe`` shows it.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.remote_log.copying.lineages import read_page
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import PageRef
from sparklog.core.remote_log.reach import OffsetRange
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.ids import TopicPartition
from sparklog.remote.store import RemoteStore

logger: Final = logging.getLogger(__name__)

LATE_MS: Final = 5_000
RANGES_NAMED_MAX: Final = 5

Missing = tuple[OffsetRange, str]
"""Offsets that cannot be read, and the missing object."""


@dataclass(slots=True)
class Losses:
    """The losses of the partitions that are led here."""

    _missed_since_ms: dict[TopicPartition, dict[Missing, int]] = field(default_factory=dict)
    """The objects that the last look at each partition missed, and since when."""
    _reported: dict[TopicPartition, str] = field(default_factory=dict)
    """The losses in the log: partitions that have missed an object for ``LATE_MS``."""
    _suspected: set[TopicPartition] = field(default_factory=set)
    """Partitions of which a read has failed since the last look."""

    @property
    def partitions(self) -> set[TopicPartition]:
        return set(self._reported)

    def reported(self, topic_partition: TopicPartition) -> str:
        """The loss of this partition in words; empty if none is known."""
        return self._reported.get(topic_partition, "")

    def suspect(self, topic_partition: TopicPartition) -> None:
        """Note that a read of the partition has failed; for any thread."""
        self._suspected.add(topic_partition)

    def is_due(self, topic_partition: TopicPartition) -> bool:
        """Whether to look at the partition now, without waiting for its time."""
        return topic_partition in self._suspected or bool(self._missed_since_ms.get(topic_partition))

    def forget_all_but(self, led: Collection[TopicPartition]) -> None:
        self._missed_since_ms = {
            topic_partition: since
            for topic_partition, since in self._missed_since_ms.items()
            if topic_partition in led
        }
        self._reported = {
            topic_partition: text
            for topic_partition, text in self._reported.items()
            if topic_partition in led
        }
        self._suspected.intersection_update(led)

    def on_looked(
        self, topic_partition: TopicPartition, url: str, missing: Iterable[Missing], now_ms: int
    ) -> None:
        """Note the objects that a look at a partition has missed."""
        self._suspected.discard(topic_partition)
        before = self._missed_since_ms.get(topic_partition, {})
        since_ms = {loss: before.get(loss, now_ms) for loss in missing}
        self._missed_since_ms[topic_partition] = since_ms
        lost = [loss for loss, since in since_ms.items() if now_ms - since >= LATE_MS]
        if not lost:
            self._reported.pop(topic_partition, None)
            return
        text = _text(url, lost)
        if self._reported.get(topic_partition) != text:
            self._reported[topic_partition] = text
            logger.error(
                "%s: %s. Put back what is missing from a backup, or give the records up with DeleteRecords",
                topic_partition,
                text,
            )


def missing_in(
    store: RemoteStore, remote: RemotePartition, head: Head, listed: Collection[str]
) -> Iterator[Missing]:
    """The unreadable parts of the history of ``head``, if the store has the ``listed`` objects alone."""
    for entry in head.entries:
        if isinstance(entry, PageRef):
            page = remote.page_name(entry.base_offset, entry.page_id)
            if page not in listed:  # its segments cannot be named, so the page stands for them
                yield _from_start(head, entry.base_offset, entry.end_offset), page
                continue
        for segment in read_page(store, remote, entry) if isinstance(entry, PageRef) else (entry,):
            gone = next((name for name in remote.object_names(segment) if name not in listed), None)
            if gone is not None and segment.end_offset > head.start_offset:
                yield _from_start(head, segment.base_offset, segment.end_offset), gone


def _from_start(head: Head, base_offset: int, end_offset: int) -> OffsetRange:
    return OffsetRange(max(base_offset, head.start_offset), end_offset)


def _text(url: str, lost: list[Missing]) -> str:
    ranges: list[OffsetRange] = []
    for offsets, _ in lost:
        if ranges and ranges[-1].end_offset == offsets.base_offset:
            ranges[-1] = OffsetRange(ranges[-1].base_offset, offsets.end_offset)
        else:
            ranges.append(offsets)
    shown = [f"{offsets.base_offset} to {offsets.end_offset - 1}" for offsets in ranges[:RANGES_NAMED_MAX]]
    if len(ranges) > RANGES_NAMED_MAX:
        shown.append(f"{len(ranges) - RANGES_NAMED_MAX} more ranges")
    objects = f"{lost[0][1]} is" if len(lost) == 1 else f"{lost[0][1]} and {len(lost) - 1} more objects are"
    return f"offsets {', '.join(shown)} are gone from the remote store: {objects} missing at {url}"
