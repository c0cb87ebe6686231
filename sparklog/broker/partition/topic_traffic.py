"""Bytes and records of each topic on one broker, for metrics.

A scrape shows the topics with the most bytes since the scrape before, ``TOPICS_MAX`` at most, because a
server of metrics must not keep a series for each of 20,000 topics. All others share one series. A figure is
counted in the series that its topic has when it is read, so each series only rises, and none is lost.
"""

from collections.abc import Callable
from functools import reduce
from heapq import nlargest
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from sparklog.model.ports import Guard

TOPICS_MAX: Final = 1_000

OTHER_TOPICS: Final = ""
"""The name under which topics without a series of their own are summed; no topic has it."""


class Traffic(NamedTuple):
    """What was appended by leaders here, and what consumers were sent, both as they are stored."""

    produced_bytes: int = 0
    produced_records: int = 0
    fetched_bytes: int = 0
    fetched_records: int = 0

    @property
    def bytes_moved(self) -> int:
        return self.produced_bytes + self.fetched_bytes

    def plus(self, other: "Traffic") -> "Traffic":
        return Traffic(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "Traffic") -> "Traffic":
        return Traffic(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class TopicCounts:
    """Counts of one topic, by any thread. Its partitions here hold it, and it ends with the last of them."""

    __slots__ = (
        "__weakref__",
        "_fetched_bytes",
        "_fetched_records",
        "_guard",
        "_produced_bytes",
        "_produced_records",
        "read",
        "shown",
    )

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._produced_bytes = self._produced_records = self._fetched_bytes = self._fetched_records = 0
        self.read = Traffic()
        """The counts at the last scrape."""
        self.shown = Traffic()
        """What the topic's own series has."""

    def count_produced(self, size_bytes: int, records: int) -> None:
        with self._guard:
            self._produced_bytes += size_bytes
            self._produced_records += records

    def count_fetched(self, size_bytes: int, records: int) -> None:
        with self._guard:
            self._fetched_bytes += size_bytes
            self._fetched_records += records

    @property
    def now(self) -> Traffic:
        with self._guard:
            return Traffic(
                self._produced_bytes, self._produced_records, self._fetched_bytes, self._fetched_records
            )


class TopicTraffic:
    """The topics of one broker; for any thread."""

    def __init__(self, new_guard: Callable[[], Guard]) -> None:
        self._new_guard = new_guard
        self._guard = new_guard()
        self._topics: WeakValueDictionary[str, TopicCounts] = WeakValueDictionary()
        self._others = Traffic()

    def of(self, topic: str) -> TopicCounts:
        """The counts of a topic, for a partition that is made."""
        with self._guard:
            counts = self._topics.get(topic)
            if counts is None:
                counts = self._topics[topic] = TopicCounts(self._new_guard())
            return counts

    def total(self) -> Traffic:
        """All topics that are here now."""
        with self._guard:
            topics = list(self._topics.values())
        return reduce(Traffic.plus, (counts.now for counts in topics), Traffic())

    def read(self) -> dict[str, Traffic]:
        """The series of now, by topic; ``OTHER_TOPICS`` is the last one, if it is not all 0."""
        with self._guard:
            topics = [(topic, counts, counts.now) for topic, counts in sorted(self._topics.items())]
            busiest = {topic for topic, *_ in nlargest(TOPICS_MAX, topics, key=_rank)}
            for topic, counts, now in topics:
                delta, counts.read = now.minus(counts.read), now
                if topic in busiest:
                    counts.shown = counts.shown.plus(delta)
                else:
                    self._others = self._others.plus(delta)
            read = {topic: counts.shown for topic, counts, _ in topics if topic in busiest}
            return {**read, OTHER_TOPICS: self._others} if any(self._others) else read


def _rank(entry: tuple[str, TopicCounts, Traffic]) -> tuple[int, int]:
    """Without news, those that have a series of their own keep it."""
    _, counts, now = entry
    return now.minus(counts.read).bytes_moved, counts.shown.bytes_moved
