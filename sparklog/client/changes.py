"""Changes to topics and brokers that exist: partitions, settings, leaders, placement.

Each change is sent to any broker, which forwards it to the controller. A refused change of one topic or
partition raises ``KafkaError`` with its name. A change of many partitions returns the refusals instead,
because the other partitions were changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.wire.messages.admin.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from sparklog.wire.messages.admin.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from sparklog.wire.messages.admin.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from sparklog.wire.messages.admin.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicPartitions,
)
from sparklog.wire.messages.admin.incremental_alter_configs import (
    ConfigOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementallyAlterableConfig,
)
from sparklog.wire.messages.admin.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

ANSWER_SLACK_MS: Final = 5_000
"""Extra time in which the broker can answer that its own time is up."""

Refusals = dict[TopicPartition, KafkaError]
"""The partitions that were not changed, and why."""


@dataclass(frozen=True, slots=True)
class OngoingMove:
    """A reassignment in progress. ``replicas`` includes those that are ``adding`` and ``removing``."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(one for one in self.replicas if one not in self.removing)


@dataclass(frozen=True, slots=True)
class ReplicaInLogDir:
    """``lag`` is the high watermark that the replica knows, minus its log end offset."""

    size_bytes: int
    lag: int


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory; one that ``is_offline`` has failed. Space is that of its file system, -1: unknown."""

    is_offline: bool
    replicas: Mapping[TopicPartition, ReplicaInLogDir]
    total_bytes: int
    usable_bytes: int


class ClusterChanges:
    """Stateless over a ``ClusterClient``; as safe to share between threads as that is."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: int = 30_000,
    ) -> None:
        """Give ``topic`` ``count`` partitions in all; ``assignment`` places the new ones. KafkaError."""
        placed = None
        if assignment is not None:
            placed = [CreatePartitionsAssignment(broker_ids=list(one)) for one in assignment]
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=count, assignments=placed)],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = self._cluster.call_controller(
            request, lambda answer: _retriable(one.error_code for one in answer.results)
        )
        for result in response.results:
            _check(result.error_code, result.error_message, f"topic {result.name!r}")

    def alter_topic_configs(
        self, topic: str, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Set a topic's settings; None gives one back to the brokers' default. KafkaError."""
        self._alter_configs(TOPIC_RESOURCE, topic, configs, validate_only=validate_only)

    def alter_broker_configs(
        self, broker: int | None, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Set settings of a broker, or of all with None, while it runs; None deletes one. KafkaError."""
        name = "" if broker is None else str(broker)
        self._alter_configs(BROKER_RESOURCE, name, configs, validate_only=validate_only)

    def _alter_configs(
        self, resource_type: int, name: str, configs: Mapping[str, str | None], *, validate_only: bool
    ) -> None:
        changes = [
            IncrementallyAlterableConfig(
                name=setting,
                config_operation=ConfigOperation.delete if value is None else ConfigOperation.set,
                value=value,
            )
            for setting, value in configs.items()
        ]
        resource = IncrementalAlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=changes
        )
        response: IncrementalAlterConfigsResponse = self._cluster.call_controller(
            IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only),
            lambda answer: _retriable(one.error_code for one in answer.responses),
        )
        kind = "topic" if resource_type == TOPIC_RESOURCE else "broker"
        for result in response.responses:
            _check(result.error_code, result.error_message, f"{kind} {result.resource_name!r}")

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        without_store: bool = False,
        timeout_ms: int = 30_000,
    ) -> tuple[list[TopicPartition], Refusals]:
        """Elect preferred replicas, or any live replica where no leader is; (elected, refused).
        ``without_store``: an unclean election also ends a leader's wait for the remote store, and gives up
        what that has beyond the leader's log.
        """
        request = ElectLeadersRequest(
            election_type=ElectionType.unclean if unclean else ElectionType.preferred,
            topic_partitions=None
            if partitions is None
            else [
                ElectLeadersTopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(partitions).items()
            ],
            timeout_ms=timeout_ms,
            without_store=1 if without_store else -1,
        )
        response: ElectLeadersResponse = self._cluster.call_controller(request, _whole_error)
        _check(response.error_code, None, "the election")
        elected: list[TopicPartition] = []
        refused: Refusals = {}
        for topic in response.replica_election_results:
            for one in topic.partition_result:
                partition = TopicPartition(topic.topic, one.partition_id)
                if one.error_code is ErrorCode.none:
                    elected.append(partition)
                else:
                    refused[partition] = KafkaError(one.error_code, one.error_message or "refused")
        return elected, refused

    def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int = 30_000
    ) -> Refusals:
        """Begin to move partitions to these brokers, preferred leader first; None cancels a move."""
        return self.reassign_with_throttle(targets, -1, timeout_ms=timeout_ms)[0]

    def reassign_with_throttle(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        bytes_per_s: int,
        *,
        timeout_ms: int = 30_000,
    ) -> tuple[Refusals, int]:
        """The same, with what each broker sends and fetches at most for these moves, and the operation that
        limits them until they have ended; -1 if none does. ``bytes_per_s`` -1: no limit.
        """
        topics: dict[str, list[ReassignablePartition]] = {}
        for partition, replicas in targets.items():
            wanted = None if replicas is None else list(replicas)
            topics.setdefault(partition.topic, []).append(
                ReassignablePartition(partition_index=partition.partition, replicas=wanted)
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms,
            topics=[ReassignableTopic(name=topic, partitions=moves) for topic, moves in topics.items()],
            throttle=bytes_per_s,
        )
        response: AlterPartitionReassignmentsResponse = self._cluster.call_controller(request, _whole_error)
        _check(response.error_code, response.error_message, "the reassignment")
        refused = {
            TopicPartition(topic.name, one.partition_index): KafkaError(
                one.error_code, one.error_message or "refused"
            )
            for topic in response.responses
            for one in topic.partitions
            if one.error_code is not ErrorCode.none
        }
        return refused, response.operation

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, int]:
        """Delete the records below these offsets (-1: the high watermark); the new log start offsets.

        Returns once no live replica has any of these records. Raises KafkaError for the first partition that
        refuses: OFFSET_OUT_OF_RANGE above the high watermark, POLICY_VIOLATION if logs are compacted only.
        """

        def build(leaders: Mapping[TopicPartition, KnownLeader]) -> DeleteRecordsRequest:
            topics: dict[str, DeleteRecordsTopic] = {}
            for topic_partition in leaders:
                topic = topics.setdefault(
                    topic_partition.topic, DeleteRecordsTopic(name=topic_partition.topic)
                )
                topic.partitions.append(
                    DeleteRecordsPartition(
                        partition_index=topic_partition.partition, offset=offsets[topic_partition]
                    )
                )
            return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)

        def read(response: DeleteRecordsResponse) -> dict[TopicPartition, Answer[int]]:
            return {
                TopicPartition(topic.name, one.partition_index): (one.error_code, one.low_watermark)
                for topic in response.topics
                for one in topic.partitions
            }

        return self._cluster.call_leaders(offsets, build, read, timeout_ms=timeout_ms + ANSWER_SLACK_MS)

    def describe_log_dirs(
        self, broker: int, *, with_replicas: bool = True, timeout_ms: int = 30_000
    ) -> dict[str, LogDirDescription]:
        """A broker's log directories by path. OSError if the broker cannot be reached, KafkaError.

        Without ``with_replicas`` only the directories and their space are asked for.
        """
        response: DescribeLogDirsResponse = self._cluster.call_broker(
            broker, DescribeLogDirsRequest(topics=None if with_replicas else []), timeout_ms=timeout_ms
        )
        _check(response.error_code, None, f"the log directories of broker {broker}")
        return {
            one.log_dir: LogDirDescription(
                one.error_code is not ErrorCode.none,
                {
                    TopicPartition(topic.name, replica.partition_index): ReplicaInLogDir(
                        replica.partition_size, replica.offset_lag
                    )
                    for topic in one.topics
                    for replica in topic.partitions
                },
                one.total_bytes,
                one.usable_bytes,
            )
            for one in response.results
        }

    def ongoing_moves(self, *, timeout_ms: int = 30_000) -> dict[TopicPartition, OngoingMove]:
        """Every reassignment that is under way."""
        response: ListPartitionReassignmentsResponse = self._cluster.call_controller(
            ListPartitionReassignmentsRequest(timeout_ms=timeout_ms), _whole_error
        )
        _check(response.error_code, response.error_message, "the list of reassignments")
        return {
            TopicPartition(topic.name, one.partition_index): OngoingMove(
                tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
            )
            for topic in response.topics
            for one in topic.partitions
        }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for partition in partitions:
        numbers.setdefault(partition.topic, []).append(partition.partition)
    return numbers


def _check(code: ErrorCode, message: str | None, what: str) -> None:
    if code is not ErrorCode.none:
        raise KafkaError(code, f"{what}: {message or 'refused'}")


def _whole_error(response: ElectLeadersResponse | AlterPartitionReassignmentsResponse) -> ErrorCode:
    return _retriable([response.error_code])


_AGAIN: Final = (ErrorCode.not_controller, ErrorCode.network_exception)


def _retriable(codes: Iterable[ErrorCode]) -> ErrorCode:
    """The code for which the request is retried; ``none`` if any part was carried out or refused."""
    found = list(codes)
    return found[0] if found and all(code in _AGAIN for code in found) else ErrorCode.none
