"""Which ranges of histories the store has lost: objects that a manifest names, and that no listing has.

Somebody has removed them by hand, or the store has. An object was missed for ``LATE_MS`` before it counts as
lost, because a listing may be late, and because what is named after a listing is not in it. Copies go on:
what comes later can be read. The log says which range is gone and where it was, once for as long as that
stays the same; ``topics describe`` shows it.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.remote_log.copying.lineages import read_page
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import PageRef
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.core.remote_log.tier import OffsetRange
from sparklog.model.ids import TopicPartition
from sparklog.remote.store import RemoteStore

logger = logging.getLogger(__name__)

LATE_MS: Final = 5_000
RANGES_TOLD_MAX: Final = 5

Missing = tuple[OffsetRange, str]
"""Offsets that cannot be read, and the object that is missing for it."""


@dataclass(slots=True)
class Losses:
    """The losses of the partitions that are led here."""

    _missed_since_ms: dict[TopicPartition, dict[Missing, int]] = field(default_factory=dict)
    _told: dict[TopicPartition, str] = field(default_factory=dict)
    _suspected: set[TopicPartition] = field(default_factory=set)

    @property
    def partitions(self) -> set[TopicPartition]:
        return set(self._told)

    def told(self, topic_partition: TopicPartition) -> str:
        """What of this partition is gone; empty if nothing is known to be."""
        return self._told.get(topic_partition, "")

    def suspect(self, topic_partition: TopicPartition) -> None:
        """A read of it has failed. Any thread may say so."""
        self._suspected.add(topic_partition)

    def is_due(self, topic_partition: TopicPartition) -> bool:
        """Whether the next look must not wait for its time."""
        return topic_partition in self._suspected or bool(self._missed_since_ms.get(topic_partition))

    def forget_all_but(self, led: Collection[TopicPartition]) -> None:
        self._missed_since_ms = {one: since for one, since in self._missed_since_ms.items() if one in led}
        self._told = {one: text for one, text in self._told.items() if one in led}
        self._suspected.intersection_update(led)

    def on_looked(
        self, topic_partition: TopicPartition, url: str, missing: Iterable[Missing], now_ms: int
    ) -> None:
        """What a look at a partition has missed."""
        self._suspected.discard(topic_partition)
        before = self._missed_since_ms.get(topic_partition, {})
        since_ms = {one: before.get(one, now_ms) for one in missing}
        self._missed_since_ms[topic_partition] = since_ms
        lost = [one for one, since in since_ms.items() if now_ms - since >= LATE_MS]
        if not lost:
            self._told.pop(topic_partition, None)
            return
        text = _text(url, lost)
        if self._told.get(topic_partition) != text:
            self._told[topic_partition] = text
            logger.error(
                "%s: %s. Put back what is missing from a backup, or give the records up with DeleteRecords",
                topic_partition,
                text,
            )


def missing_in(
    store: RemoteStore, remote: RemotePartition, head: Head, listed: Collection[str]
) -> Iterator[Missing]:
    """What of the history of ``head`` cannot be read, if ``listed`` is all that there is."""
    for place in head.places:
        if isinstance(place, PageRef):
            page = remote.page_name(place.base_offset, place.page_id)
            if page not in listed:
                yield _from_start(head, place.base_offset, place.end_offset), page
                continue
        for segment in read_page(store, remote, place) if isinstance(place, PageRef) else (place,):
            gone = next((name for name in remote.object_names(segment) if name not in listed), None)
            if gone is not None and segment.end_offset > head.start_offset:
                yield _from_start(head, segment.base_offset, segment.end_offset), gone


def _from_start(head: Head, base_offset: int, end_offset: int) -> OffsetRange:
    return OffsetRange(max(base_offset, head.start_offset), end_offset)


def _text(url: str, lost: list[Missing]) -> str:
    ranges: list[OffsetRange] = []
    for place, _ in lost:
        if ranges and ranges[-1].end_offset == place.base_offset:
            ranges[-1] = OffsetRange(ranges[-1].base_offset, place.end_offset)
        else:
            ranges.append(place)
    shown = [f"{one.base_offset} to {one.end_offset - 1}" for one in ranges[:RANGES_TOLD_MAX]]
    if len(ranges) > RANGES_TOLD_MAX:
        shown.append(f"{len(ranges) - RANGES_TOLD_MAX} more ranges")
    objects = f"{lost[0][1]} is" if len(lost) == 1 else f"{lost[0][1]} and {len(lost) - 1} more objects are"
    return f"offsets {', '.join(shown)} are gone from the remote store: {objects} missing at {url}"
