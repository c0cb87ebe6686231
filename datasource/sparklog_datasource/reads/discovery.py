"""The partitions of a read, as the cluster has them now.

Brokers receive a new topic one after the other, so a single broker that does not know a topic proves little.
A topic counts as deleted after it stayed unknown for a few seconds. If it were dropped sooner and found
again, its partitions would count as new ones, which are read from the start.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparklog.client.cluster import NEW_TOPIC_WAIT_MS, ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.reads.subscription import Subscription

UNKNOWN_TOPIC: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)


@dataclass(slots=True)
class Discovery:
    """Asks for a subscription's partitions. With ``missing_is_error`` every named topic must exist."""

    subscription: Subscription
    missing_is_error: bool
    _gone: set[str] = field(default_factory=set)
    """Topics whose wait ended without an answer; there is no second wait for them."""

    def partitions(self, cluster: ClusterClient, known: Iterable[str] = ()) -> dict[TopicPartition, TopicId]:
        """The partitions to read with their topics' ids; topics in ``known`` were found earlier."""
        topics = self._topics(cluster, set(known))
        return {
            topic_partition: topics[topic_partition.topic].topic_id
            for topic_partition in self.subscription.partitions_of(topics.values())
        }

    def _topics(self, cluster: ClusterClient, known: set[str]) -> dict[str, TopicMetadata]:
        names = set(self.subscription.named_topics)
        seen = cluster.metadata(sorted(names) if self.subscription.pattern is None else None, max_age_ms=0)
        topics = {name: topic for name, topic in seen.topics.items() if self.subscription.takes(topic)}
        for name in sorted({*names, *topics, *known}):
            topic = topics.pop(name, None)
            if topic is None or topic.error_code is not ErrorCode.none:
                topic = self._confirmed(cluster, name, self.missing_is_error and name in names - known)
            if topic is not None:
                topics[name] = topic
        self._gone.difference_update(topics)
        return topics

    def _confirmed(self, cluster: ClusterClient, name: str, missing_is_error: bool) -> TopicMetadata | None:
        try:
            return cluster.topic(name, timeout_ms=0 if name in self._gone else NEW_TOPIC_WAIT_MS)
        except KafkaError as error:
            if error.code not in UNKNOWN_TOPIC:
                raise
            if missing_is_error:
                raise KafkaError(error.code, f"{error.message}; check the name, or create it") from None
            self._gone.add(name)
            return None
