"""In-sync replicas, elections and moves: requests as commands, results as responses."""

from collections.abc import Iterable

from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterPartitionResult,
    AlterReassignments,
    ElectLeaders,
    IsrAnswer,
    IsrProposal,
    ListReassignments,
    Move,
    PartitionsResult,
    ProposedMember,
    ReassignmentsResult,
)
from sparklog.model.ids import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from sparklog.wire.messages.admin.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from sparklog.wire.messages.admin.elect_leaders import (
    ElectionType,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from sparklog.wire.messages.admin.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
)


def alter_partition(request: AlterPartitionRequest) -> AlterPartition:
    proposals = tuple(
        IsrProposal(
            topic_id=topic.topic_id,
            partition=one.partition_index,
            leader_epoch=LeaderEpoch(one.leader_epoch),
            partition_epoch=one.partition_epoch,
            isr=tuple(
                ProposedMember(BrokerId(member.broker_id), BrokerEpoch(member.broker_epoch))
                for member in one.new_isr_with_epochs
            ),
        )
        for topic in request.topics
        for one in topic.partitions
    )
    return AlterPartition(BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch), proposals)


def alter_partition_response(result: AlterPartitionResult) -> AlterPartitionResponse:
    by_topic: dict[TopicId, list[AlterPartitionPartitionResponse]] = {}
    for answer in result.answers:
        by_topic.setdefault(answer.topic_id, []).append(_isr_answer(answer))
    topics = [
        AlterPartitionTopicResponse(topic_id=topic, partitions=answers) for topic, answers in by_topic.items()
    ]
    return AlterPartitionResponse(error_code=result.error, topics=topics)


def _isr_answer(answer: IsrAnswer) -> AlterPartitionPartitionResponse:
    state = answer.state
    if state is None:
        return AlterPartitionPartitionResponse(partition_index=answer.partition, error_code=answer.error)
    return AlterPartitionPartitionResponse(
        partition_index=answer.partition,
        error_code=answer.error,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
    )


def elect_leaders(request: ElectLeadersRequest) -> ElectLeaders:
    asked = request.topic_partitions
    partitions = None
    if asked is not None:
        partitions = tuple(TopicPartition(one.topic, number) for one in asked for number in one.partitions)
    is_unclean = request.election_type == ElectionType.unclean
    return ElectLeaders(is_unclean, partitions, without_store=request.without_store == 1)


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
    moves = tuple(
        Move(
            TopicPartition(topic.name, one.partition_index),
            None if one.replicas is None else _ids(one.replicas),
        )
        for topic in request.topics
        for one in topic.partitions
    )
    return AlterReassignments(moves, max(0, request.throttle))


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
        operation=result.operation,
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


def _ids(brokers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))
