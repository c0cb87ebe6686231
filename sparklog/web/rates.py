"""How many records clients write to each topic, looked at every ten seconds.

What was written is how far the high watermarks went. A partition counts from the second look that knows its
end; one whose end went back, after an election that lost records, counts nothing then. The cluster's own
topics are left out.
"""

import threading
from collections.abc import Mapping

from sparklog.client.cluster import ClusterClient
from sparklog.client.group.lag_look import ends_of
from sparklog.client.metadata.cluster_metadata import ClusterMetadata
from sparklog.model.ids import TopicPartition


class WriteRates:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[int, Mapping[TopicPartition, int]] | None = None
        self._by_topic: dict[str, float] = {}

    def add(self, time_ms: int, ends: Mapping[TopicPartition, int]) -> None:
        """A look: the end of each partition, -1 where none is known."""
        with self._lock:
            before, self._last = self._last, (time_ms, ends)
            if before is None or time_ms <= before[0]:
                return
            seconds = (time_ms - before[0]) / 1_000
            written: dict[str, int] = {}
            for one, end in ends.items():
                begin = before[1].get(one, -1)
                if begin >= 0:
                    written[one.topic] = written.get(one.topic, 0) + max(0, end - begin)
            self._by_topic = {topic: count / seconds for topic, count in written.items()}

    def of_topic(self, name: str) -> float | None:
        """Records a second between the last two looks; None before there were two."""
        with self._lock:
            return self._by_topic.get(name)


def look_at_ends(cluster: ClusterClient, seen: ClusterMetadata) -> dict[TopicPartition, int]:
    """Where each partition of clients' topics ends."""
    topics = [topic for topic in seen.topics.values() if not topic.is_internal]
    return ends_of(cluster, [one for topic in topics for one in topic.topic_partitions()])
