"""From the machine's words to the wire's, and back: pushes, their answers, commands, results."""

from collections.abc import Iterable, Mapping

from sparklog.core.controller.actions import (
    PushAnswer,
    Send,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
    ControlledShutdown,
    ControlledShutdownResult,
    LoseLogs,
    LoseLogsResult,
)
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterPartitionResult,
    IsrAnswer,
    IsrProposal,
    ProposedMember,
)
from sparklog.core.controller.commands.topic_commands import (
    CreateTopics,
    DeleteTopics,
    DoomedTopic,
    NewTopic,
    TopicResult,
    TopicsResult,
)
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster import Broker, PartitionState
from sparklog.model.config import TOPIC_SETTINGS, BrokerConfig, render
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from sparklog.wire.messages.admin.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.admin.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from sparklog.wire.messages.control.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
)
from sparklog.wire.messages.control.assign_replicas_to_dirs import (
    LOST,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from sparklog.wire.messages.control.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from sparklog.wire.messages.control.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

CONTROLLER_ID = -1
"""A controller is no broker; brokers name one of their own to clients that ask."""

FULL, INCREMENTAL = 1, 2
"""The types of a LeaderAndIsr request."""

PushRequest = UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest


# ------------------------------------------------------------------------------------------- pushes


def push_request(send: Send, controller_epoch: ControllerEpoch) -> PushRequest:
    match send:
        case SendUpdateMetadata():
            return _update_metadata(send, controller_epoch)
        case SendLeaderAndIsr():
            return _leader_and_isr(send, controller_epoch)
        case SendStopReplica():
            return _stop_replica(send, controller_epoch)


def _update_metadata(send: SendUpdateMetadata, controller_epoch: ControllerEpoch) -> UpdateMetadataRequest:
    live = {broker.id for broker in send.live_brokers}
    return UpdateMetadataRequest(
        controller_id=CONTROLLER_ID,
        controller_epoch=controller_epoch,
        broker_epoch=send.broker_epoch,
        type_=FULL if send.is_full else INCREMENTAL,
        dynamic_configs=dict(send.dynamic_configs),
        default_configs=dict(send.default_configs),
        push=send.push,
        live_brokers=[_live_broker(broker) for broker in send.live_brokers],
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=topic.name,
                topic_id=topic.id,
                configs=dict(topic.configs),
                partition_states=[
                    _metadata_state(number, state, live, controller_epoch)
                    for number, state in topic.partitions
                ],
            )
            for topic in send.topics
        ],
    )


def _live_broker(broker: Broker) -> UpdateMetadataBroker:
    endpoint = UpdateMetadataEndpoint(host=broker.host, port=broker.port)
    return UpdateMetadataBroker(id_=broker.id, endpoints=[endpoint], rack=broker.rack, epoch=broker.epoch)


def _metadata_state(
    number: int, state: PartitionState, live: set[BrokerId], controller_epoch: ControllerEpoch
) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=number,
        controller_epoch=controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(state.replicas),
        offline_replicas=[replica for replica in state.replicas if replica not in live],
        lost_in_epoch=state.lost_in_epoch,
    )


def _leader_and_isr(send: SendLeaderAndIsr, controller_epoch: ControllerEpoch) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=CONTROLLER_ID,
        controller_epoch=controller_epoch,
        broker_epoch=send.broker_epoch,
        type_=FULL if send.is_full else INCREMENTAL,
        topic_states=[
            LeaderAndIsrTopicState(
                topic_name=topic.name,
                topic_id=topic.id,
                configs=dict(topic.configs),
                partition_states=[
                    _role(
                        number, state, controller_epoch, is_new=TopicPartition(topic.name, number) in send.new
                    )
                    for number, state in topic.partitions
                ],
            )
            for topic in send.topics
        ],
        live_leaders=[
            LeaderAndIsrLiveLeader(broker_id=broker.id, host_name=broker.host, port=broker.port)
            for broker in send.live_leaders
        ],
    )


def _role(
    number: int, state: PartitionState, controller_epoch: ControllerEpoch, *, is_new: bool
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=number,
        controller_epoch=controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding),
        removing_replicas=list(state.removing),
        is_new=is_new,
        min_insync_replicas=state.min_insync_replicas,
        lost_in_epoch=state.lost_in_epoch,
    )


def _stop_replica(send: SendStopReplica, controller_epoch: ControllerEpoch) -> StopReplicaRequest:
    by_topic: dict[str, list[StopReplicaPartitionState]] = {}
    for partition, leader_epoch in send.partitions:
        by_topic.setdefault(partition.topic, []).append(
            StopReplicaPartitionState(
                partition_index=partition.partition, leader_epoch=leader_epoch, delete_partition=send.delete
            )
        )
    return StopReplicaRequest(
        controller_id=CONTROLLER_ID,
        controller_epoch=controller_epoch,
        broker_epoch=send.broker_epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name=name, topic_id=send.topic_ids.get(name, NO_TOPIC_ID), partition_states=states
            )
            for name, states in by_topic.items()
        ],
    )


def push_answer(send: Send, response: object) -> PushAnswer:
    ends = {}
    if isinstance(send, SendLeaderAndIsr) and isinstance(response, LeaderAndIsrResponse):
        ends = _log_ends(send, response)
    return PushAnswer(send.push, send.broker, send.broker_epoch, push_errors(send, response), ends)


def _log_ends(send: SendLeaderAndIsr, response: LeaderAndIsrResponse) -> dict[TopicPartition, LogEnd]:
    names = {topic.id: topic.name for topic in send.topics}
    epochs = {
        (topic.id, number): state.leader_epoch
        for topic in send.topics
        for number, state in topic.partitions
        if not state.has_leader
    }
    return {
        TopicPartition(names[topic.topic_id], one.partition_index): LogEnd(
            epochs[topic.topic_id, one.partition_index], one.last_epoch, one.log_end_offset
        )
        for topic in response.topics
        for one in topic.partition_errors
        if one.log_end_offset >= 0 and (topic.topic_id, one.partition_index) in epochs
    }


def push_errors(send: Send, response: object) -> dict[TopicPartition, ErrorCode]:
    """What became of a push's partitions, by its answer: those that went wrong (all of them if all of it was
    refused), and of a LeaderAndIsr also those that did not, because that says that their logs work.
    """
    match send, response:
        case SendLeaderAndIsr(), LeaderAndIsrResponse():
            names = {topic.id: topic.name for topic in send.topics}
            return {
                TopicPartition(names[topic.topic_id], one.partition_index): one.error_code
                for topic in response.topics
                if topic.topic_id in names
                for one in topic.partition_errors
            }
        case SendStopReplica(), StopReplicaResponse():
            if response.error_code != ErrorCode.none:
                return {partition: response.error_code for partition, _ in send.partitions}
            return {
                TopicPartition(one.topic_name, one.partition_index): one.error_code
                for one in response.partition_errors
                if one.error_code != ErrorCode.none
            }
    return {}


# ------------------------------------------------------------------------------------------- commands


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


def controlled_shutdown(request: ControlledShutdownRequest) -> ControlledShutdown:
    return ControlledShutdown(BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch))


def controlled_shutdown_response(result: ControlledShutdownResult) -> ControlledShutdownResponse:
    remaining = [
        RemainingPartition(topic_name=partition.topic, partition_index=partition.partition)
        for partition in result.remaining
    ]
    return ControlledShutdownResponse(error_code=result.error, remaining_partitions=remaining)


def allocate_producer_ids(request: AllocateProducerIdsRequest) -> AllocateProducerIds:
    return AllocateProducerIds(BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch))


def allocate_producer_ids_response(result: AllocateProducerIdsResult) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        error_code=result.error, producer_id_start=result.first, producer_id_len=result.length
    )


def lose_logs(request: AssignReplicasToDirsRequest) -> LoseLogs:
    lost = [
        (topic.topic_id, one.partition_index)
        for directory in request.directories
        if directory.id_ == LOST
        for topic in directory.topics
        for one in topic.partitions
    ]
    return LoseLogs(BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch), tuple(lost))


def lose_logs_response(result: LoseLogsResult) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=result.error)


def create_topics(request: CreateTopicsRequest, topic_ids: Iterable[TopicId]) -> CreateTopics:
    """``topic_ids`` are fresh ids, one for each topic."""
    topics = tuple(_new_topic(topic, id_) for topic, id_ in zip(request.topics, topic_ids, strict=True))
    return CreateTopics(topics, request.timeout_ms, request.validate_only)


def _new_topic(topic: CreatableTopic, topic_id: TopicId) -> NewTopic:
    return NewTopic(
        name=topic.name,
        id=topic_id,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={
            one.partition_index: tuple(BrokerId(broker) for broker in one.broker_ids)
            for one in topic.assignments
        },
        configs={one.name: one.value for one in topic.configs},
    )


SOURCE_TOPIC, SOURCE_BROKER, SOURCE_DEFAULT = 1, 4, 5
"""Where a setting's value comes from, as DescribeConfigs numbers it."""


def create_topics_response(result: TopicsResult, config: BrokerConfig) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_created(topic, config) for topic in result.topics])


def _created(topic: TopicResult, config: BrokerConfig) -> CreatableTopicResult:
    if topic.error != ErrorCode.none:
        return CreatableTopicResult(
            name=topic.name, error_code=topic.error, error_message=topic.message or None, configs=None
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=_settings(topic.configs, config),
    )


def _settings(overrides: Mapping[str, str], config: BrokerConfig) -> list[CreatableTopicConfigs]:
    """All settings of a topic with these overrides, each with its source."""
    settings = []
    inherited = config.topic({})
    for name, setting in TOPIC_SETTINGS.items():
        source = SOURCE_BROKER if setting.broker_name in config.given else SOURCE_DEFAULT
        value = overrides.get(name, render(inherited.get(name)))
        settings.append(
            CreatableTopicConfigs(
                name=name, value=value, config_source=SOURCE_TOPIC if name in overrides else source
            )
        )
    return settings


def delete_topics(request: DeleteTopicsRequest) -> DeleteTopics:
    by_name = tuple(DoomedTopic(name) for name in request.topic_names)
    by_either = tuple(DoomedTopic(topic.name, topic.topic_id) for topic in request.topics)
    return DeleteTopics(by_name + by_either, request.timeout_ms)


def delete_topics_response(result: TopicsResult) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=topic.name or None,
                topic_id=topic.id,
                error_code=topic.error,
                error_message=topic.message or None,
            )
            for topic in result.topics
        ]
    )
