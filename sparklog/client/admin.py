"""Questions about a cluster and changes to it: topics, offsets, settings.

Changes are sent to any broker, which forwards them to the controller. Offsets are requested from each
partition's leader. A description includes partitions without a leader: their offsets are -1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, TopicMetadata
from sparklog.client.offsets import CONSUMER, DEBUG_REPLICA, OffsetAndTimestamp, RemoteShare
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.kafka_numbers import TOPIC_RESOURCE, ConfigSource
from sparklog.model.schema.schema_settings import SCHEMA_SETTINGS
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.admin.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
)
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

__all__ = [
    "Admin",
    "ClusterDescription",
    "NewTopic",
    "OffsetAndTimestamp",
    "PartitionDescription",
    "TopicDescription",
]


UNKNOWN_TOPIC_WAIT_MS: Final = 1_000
"""How long a description waits for a topic that may have been created a moment ago."""

DESCRIBE_TIMEOUT_MS: Final = 5_000
"""How long a description waits for a leader that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; -1 partitions or replicas mean the cluster's defaults."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition; offsets are -1 if its leader did not answer."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int = -1
    local_start_offset: int = -1
    """Where it begins on its leader's disk: later than the log, if a remote store has what is before."""
    high_watermark: int = -1
    log_end_offset: int = -1
    lost_in_epoch: int = -1
    """The last leader epoch that may have begun without records that were acknowledged; -1 if none did."""
    remote: RemoteShare | None = None
    """What a remote store has of it; None if its topic is in none, or its leader has not looked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionDescription, ...]
    configs: Mapping[str, str]
    """The topic's own settings; all other settings have the brokers' values."""
    is_internal: bool = False
    schema_version: int = 0
    """The newest version of its columns; 0 if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int
    brokers: tuple[Node, ...]


_Offsets = dict[TopicPartition, tuple[int, tuple[int, RemoteShare | None], int, int]]


class Admin:
    """Stateless over a ``ClusterClient``; as safe to share between threads as that is."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    # Topics.

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, timeout_ms: int = 30_000
    ) -> dict[str, TopicId]:
        """Create topics; returns when leaders serve them. KafkaError for the first that was refused."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
        )
        response: CreateTopicsResponse = self._cluster.call_controller(request, _first_retriable_creation)
        for result in response.topics:
            if result.error_code is not ErrorCode.none:
                raise _refusal(result.name, result.error_code, result.error_message)
        return {result.name: result.topic_id for result in response.topics}

    def delete_topics(self, names: Sequence[str], *, timeout_ms: int = 30_000) -> None:
        """Delete topics with all their records; KafkaError for the first that was refused."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms
        )
        response: DeleteTopicsResponse = self._cluster.call_controller(request, _first_retriable_deletion)
        for result in response.responses:
            if result.error_code is not ErrorCode.none:
                raise _refusal(result.name or "", result.error_code, result.error_message)

    def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """Names of all topics, sorted."""
        return [topic.name for topic in self.topics(include_internal=include_internal)]

    def topics(self, *, include_internal: bool = False) -> list[TopicMetadata]:
        """All topics, sorted by name, without asking leaders for offsets."""
        topics = sorted(self._cluster.metadata().topics.values(), key=lambda topic: topic.name)
        return [topic for topic in topics if include_internal or not topic.is_internal]

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Topics (None: all) with state and offsets of their partitions; KafkaError if one is unknown."""
        if names is None:
            seen = self._cluster.metadata()
            topics = sorted(seen.topics.values(), key=lambda topic: topic.name)
        else:
            topics = [self._cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS) for name in names]
            seen = self._cluster.metadata(names, max_age_ms=0)
            topics = [seen.topics[topic.name] for topic in topics]
        configs = self.topic_configs([topic.name for topic in topics]) if topics else {}
        ends = self._offsets(seen, topics)
        return [_description(topic, ends, configs.get(topic.name, {})) for topic in topics]

    # Offsets; see ``client.offsets``.

    def earliest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log start offset of each partition."""
        return offsets.earliest(self._cluster, topic_partitions)

    def latest(
        self,
        topic_partitions: Iterable[TopicPartition],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:
        """The high watermark of each partition; for ``READ_COMMITTED`` its last stable offset."""
        return offsets.latest(self._cluster, topic_partitions, isolation_level)

    def offsets_for_times(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp; None where every record is earlier."""
        return offsets.for_times(self._cluster, timestamps_ms, isolation_level)

    # Settings and the cluster.

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Each topic's own settings, without the brokers' values, and without columns."""
        described = self.describe_configs(TOPIC_RESOURCE, names)
        return {
            name: {
                key: value
                for key, (value, source) in settings.items()
                if source == ConfigSource.TOPIC and key not in SCHEMA_SETTINGS
            }
            for name, settings in described.items()
        }

    def describe_configs(
        self,
        resource_type: int,
        names: Sequence[str],
        *,
        settings: Sequence[str] | None = None,
        by_broker: int | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, dict[str, tuple[str, int]]]:
        """Each setting of topics or brokers, or those named: its value, and that value's ``config_source``.

        What a topic does not set comes from the broker that answers: any, or ``by_broker``, which is asked
        once (OSError if it is not reached within ``timeout_ms``).
        """
        keys = None if settings is None else list(settings)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=resource_type, resource_name=n, configuration_keys=keys)
                for n in names
            ]
        )
        response: DescribeConfigsResponse = (
            self._cluster.call_any(request, timeout_ms=timeout_ms)
            if by_broker is None
            else self._cluster.call_broker(by_broker, request, timeout_ms=timeout_ms)
        )
        described: dict[str, dict[str, tuple[str, int]]] = {}
        for result in response.results:
            if result.error_code is not ErrorCode.none:
                raise KafkaError(result.error_code, f"{result.resource_name!r}: {result.error_message or ''}")
            described[result.resource_name] = {
                entry.name: (entry.value or "", entry.config_source) for entry in result.configs
            }
        return described

    def describe_cluster(self) -> ClusterDescription:
        """The brokers that are registered now."""
        response: DescribeClusterResponse = self._cluster.call_any(DescribeClusterRequest())
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, response.error_message or "cannot describe the cluster")
        seen = self._cluster.metadata([], max_age_ms=0)
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers=tuple(seen.brokers[broker_id] for broker_id in sorted(seen.brokers)),
        )

    # Inside.

    def _offsets(self, seen: ClusterMetadata, topics: Sequence[TopicMetadata]) -> _Offsets:
        """Start, start on the leader's disk with what a remote store has, high watermark and log end of each
        partition; -1 where a leader does not answer.
        """
        topic_partitions = [
            topic_partition for topic in topics for topic_partition in topic.topic_partitions()
        ]
        deadline = self._cluster.deadline(DESCRIBE_TIMEOUT_MS)
        local_starts = offsets.local_starts(self._cluster, seen, topic_partitions, deadline)
        columns = [
            offsets.ask_once(self._cluster, seen, topic_partitions, timestamp, replica_id, deadline)
            for timestamp, replica_id in (
                (EARLIEST_TIMESTAMP, CONSUMER),
                (LATEST_TIMESTAMP, CONSUMER),
                (LATEST_TIMESTAMP, DEBUG_REPLICA),
            )
        ]
        return {
            topic_partition: (
                columns[0][topic_partition],
                local_starts[topic_partition],
                columns[1][topic_partition],
                columns[2][topic_partition],
            )
            for topic_partition in topic_partitions
        }


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _refusal(topic: str, code: ErrorCode, message: str | None) -> KafkaError:
    """The server's words, with the topic's name if they lack it."""
    words = message or ("there is none" if code is ErrorCode.unknown_topic_or_partition else "refused")
    return KafkaError(code, words if f"'{topic}'" in words else f"topic {topic!r}: {words}")


def _first_retriable(codes: Iterable[ErrorCode]) -> ErrorCode:
    """The code for which a request is retried; ``none`` if a topic of it was carried out or refused."""
    found = list(codes)
    again = all(code in (ErrorCode.not_controller, ErrorCode.network_exception) for code in found)
    return found[0] if found and again else ErrorCode.none


def _first_retriable_creation(response: CreateTopicsResponse) -> ErrorCode:
    return _first_retriable(result.error_code for result in response.topics)


def _first_retriable_deletion(response: DeleteTopicsResponse) -> ErrorCode:
    return _first_retriable(result.error_code for result in response.responses)


def _description(topic: TopicMetadata, known: _Offsets, configs: Mapping[str, str]) -> TopicDescription:
    partitions = []
    for topic_partition in topic.topic_partitions():
        state = topic.partitions[topic_partition.partition]
        start, (local_start, remote), high_watermark, end = known[topic_partition]
        partitions.append(
            PartitionDescription(
                partition=topic_partition.partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                replicas=state.replicas,
                isr=state.isr,
                log_start_offset=start,
                local_start_offset=local_start,
                high_watermark=high_watermark,
                log_end_offset=end,
                lost_in_epoch=state.lost_in_epoch,
                remote=remote,
            )
        )
    return TopicDescription(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(partitions),
        configs=configs,
        is_internal=topic.is_internal,
        schema_version=topic.schema_version,
    )
