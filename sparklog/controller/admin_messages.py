"""From administrators' requests to the machine's commands, and from results to responses."""

from collections.abc import Iterable
from typing import Final

from sparklog.core.controller.commands.config_commands import (
    ChangeConfigs,
    ConfigChange,
    ConfigsResult,
    Operation,
    SettingChange,
)
from sparklog.core.controller.commands.partition_commands import (
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
    Move,
    PartitionsResult,
    ReassignmentsResult,
)
from sparklog.core.controller.commands.topic_commands import CreatePartitions, Increase, TopicsResult
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.wire.messages.admin.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from sparklog.wire.messages.admin.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from sparklog.wire.messages.admin.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from sparklog.wire.messages.admin.elect_leaders import (
    ElectionType,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from sparklog.wire.messages.admin.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

OPERATIONS: Final[tuple[Operation, ...]] = ("set", "delete", "append", "subtract")
"""By the number that stands for them in IncrementalAlterConfigs."""


def create_partitions(request: CreatePartitionsRequest) -> CreatePartitions:
    topics = tuple(
        Increase(
            topic.name,
            topic.count,
            None if topic.assignments is None else tuple(_ids(one.broker_ids) for one in topic.assignments),
        )
        for topic in request.topics
    )
    return CreatePartitions(topics, request.timeout_ms, request.validate_only)


def _ids(brokers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def create_partitions_response(result: TopicsResult) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.error, error_message=topic.message or None
            )
            for topic in result.topics
        ]
    )


def incremental_alter_configs(request: IncrementalAlterConfigsRequest) -> ChangeConfigs:
    resources = tuple(
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple(
                SettingChange(one.name, _operation(one.config_operation), one.value)
                for one in resource.configs
            ),
        )
        for resource in request.resources
    )
    return ChangeConfigs(resources, request.validate_only)


def _operation(number: int) -> Operation | None:
    return OPERATIONS[number] if 0 <= number < len(OPERATIONS) else None


def incremental_alter_configs_response(result: ConfigsResult) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=one.error,
                error_message=one.message or None,
                resource_type=one.kind,
                resource_name=one.name,
            )
            for one in result.resources
        ]
    )


def alter_configs(request: AlterConfigsRequest) -> ChangeConfigs:
    resources = tuple(
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple(SettingChange(one.name, "set", one.value) for one in resource.configs),
            replaces_all=True,
        )
        for resource in request.resources
    )
    return ChangeConfigs(resources, request.validate_only)


def alter_configs_response(result: ConfigsResult) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=one.error,
                error_message=one.message or None,
                resource_type=one.kind,
                resource_name=one.name,
            )
            for one in result.resources
        ]
    )


def elect_leaders(request: ElectLeadersRequest) -> ElectLeaders:
    asked = request.topic_partitions
    partitions = None
    if asked is not None:
        partitions = tuple(TopicPartition(one.topic, number) for one in asked for number in one.partitions)
    return ElectLeaders(request.election_type == ElectionType.unclean, partitions)


def elect_leaders_response(result: PartitionsResult) -> ElectLeadersResponse:
    by_topic: dict[str, list[ElectLeadersPartitionResult]] = {}
    for one in result.partitions:
        by_topic.setdefault(one.partition.topic, []).append(
            ElectLeadersPartitionResult(
                partition_id=one.partition.partition, error_code=one.error, error_message=one.message or None
            )
        )
    return ElectLeadersResponse(
        error_code=result.error,
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=results)
            for topic, results in by_topic.items()
        ],
    )


def alter_reassignments(request: AlterPartitionReassignmentsRequest) -> AlterReassignments:
    return AlterReassignments(
        tuple(
            Move(
                TopicPartition(topic.name, one.partition_index),
                None if one.replicas is None else _ids(one.replicas),
            )
            for topic in request.topics
            for one in topic.partitions
        )
    )


def alter_reassignments_response(result: PartitionsResult) -> AlterPartitionReassignmentsResponse:
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {}
    for one in result.partitions:
        by_topic.setdefault(one.partition.topic, []).append(
            ReassignablePartitionResponse(
                partition_index=one.partition.partition,
                error_code=one.error,
                error_message=one.message or None,
            )
        )
    return AlterPartitionReassignmentsResponse(
        error_code=result.error,
        error_message=result.message or None,
        responses=[
            ReassignableTopicResponse(name=topic, partitions=results) for topic, results in by_topic.items()
        ],
    )


def list_reassignments(request: ListPartitionReassignmentsRequest) -> ListReassignments:
    if request.topics is None:
        return ListReassignments()
    return ListReassignments(
        tuple(
            TopicPartition(topic.name, number)
            for topic in request.topics
            for number in topic.partition_indexes
        )
    )


def list_reassignments_response(result: ReassignmentsResult) -> ListPartitionReassignmentsResponse:
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for one in result.moves:
        by_topic.setdefault(one.partition.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=one.partition.partition,
                replicas=list(one.replicas),
                adding_replicas=list(one.adding),
                removing_replicas=list(one.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_code=result.error,
        error_message=result.message or None,
        topics=[OngoingTopicReassignment(name=topic, partitions=moves) for topic, moves in by_topic.items()],
    )
