"""The ends of a streaming source's partitions, requested for each trigger but at a bounded rate.

The topics' ids are requested with the ends: a topic with another id is another log, for which earlier offsets
mean nothing.

An idle query asks some forty times a second. Its answers are not cached, because Spark takes "nothing new" as
proof that all records were processed (``processAllAvailable``). A request soon after the last one waits.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.client.admin import Admin
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.reads.bounds import Bound
from sparklog_datasource.reads.data_loss import Reason, deletion_reason
from sparklog_datasource.reads.discovery import Discovery
from sparklog_datasource.reads.offset_json import Offsets
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.resolution import earliest_offsets, latest_offsets, resolve

ASK_INTERVAL_MS: Final = 50
"""Shortest time between two questions."""


def others(before: Mapping[str, TopicId], now: Mapping[str, TopicId]) -> set[str]:
    """Topics that were deleted and created again: those whose ids differ."""
    return {topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id}


class LatestOffsets:
    """The ends for one source. It has no connection, because it is pickled with its reader."""

    def __init__(self, options: ReadOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._discovery = Discovery(options.subscription, missing_is_error=options.fail_on_data_loss)
        self.topic_ids: dict[str, TopicId] = {}
        """The ids of the topics that the last question found."""

        self._asked_ms: MonotonicMs | None = None
        self._sleep = sleep

    def now_ms(self) -> MonotonicMs:
        return cluster_client(self._options.connection).clock.monotonic_ms()

    def initial(self) -> dict[TopicPartition, int]:
        """The starts of a new query."""
        cluster = cluster_client(self._options.connection)
        found = Discovery(self._options.subscription, missing_is_error=True).partitions(cluster)
        self._note_ids(found)
        bounds: dict[TopicPartition, Bound] = self._options.start.each(found)
        return resolve(self._admin(), bounds, self._options.isolation_level)

    def latest(self, known: Offsets, known_ids: Mapping[str, TopicId]) -> dict[TopicPartition, int]:
        """The ends of all partitions now.

        An end below a known offset is requested again a few times, because a new leader may not know the high
        watermark yet. For a topic with another id it is not.
        """
        self._wait_for_turn()
        ends = self._ask(known)
        for _ in range(self._options.offset_retries_max):
            other = others(known_ids, self.topic_ids)
            if all(
                ends.get(topic_partition, offset) >= offset or topic_partition.topic in other
                for topic_partition, offset in known.items()
            ):
                break
            self._sleep(self._options.offset_retry_interval_ms / 1_000)
            ends = self._ask(known)
        return ends

    def earliest(self, topic_partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        """The log starts of the given partitions that exist."""
        topics = {topic_partition.topic for topic_partition in topic_partitions}
        existing = self._find(topics) if topic_partitions else {}
        return earliest_offsets(self._admin(), sorted(topic_partitions & existing.keys()))

    def deletion_reason(self, topic: str) -> Reason:
        """The reason of a topic's missing first records."""
        return deletion_reason(cluster_client(self._options.connection), topic)

    def _ask(self, known: Offsets) -> dict[TopicPartition, int]:
        found = self._find({topic_partition.topic for topic_partition in known})
        return latest_offsets(self._admin(), sorted(found), self._options.isolation_level)

    def _find(self, known_topics: set[str]) -> dict[TopicPartition, TopicId]:
        found = self._discovery.partitions(cluster_client(self._options.connection), known_topics)
        self._note_ids(found)
        return found

    def _note_ids(self, found: Mapping[TopicPartition, TopicId]) -> None:
        self.topic_ids = {
            topic_partition.topic: topic_id
            for topic_partition, topic_id in found.items()
            if topic_id != NO_TOPIC_ID
        }

    def _wait_for_turn(self) -> None:
        if self._asked_ms is not None:
            early_ms = self._asked_ms + ASK_INTERVAL_MS - self.now_ms()
            if early_ms > 0:
                self._sleep(early_ms / 1_000)
        self._asked_ms = self.now_ms()

    def _admin(self) -> Admin:
        return Admin(cluster_client(self._options.connection))
