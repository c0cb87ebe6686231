"""What the controller sends to brokers by itself, as requests, and the brokers' responses as facts."""

from sparklog.core.controller.actions import (
    PushAnswer,
    Send,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster_facts import Broker, PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import (
    NO_TOPIC_ID,
    BrokerId,
    ControllerEpoch,
    TopicPartition,
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
"""A controller is no broker. Brokers give clients the id of a live broker as that of the controller."""

FULL, INCREMENTAL = 1, 2
"""The types of a LeaderAndIsr request."""

PushRequest = UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest


def push_request(send: Send, controller_epoch: ControllerEpoch, listener: str) -> PushRequest:
    """The request of a push. ``listener`` is the brokers' own: leaders are named by their address there."""
    match send:
        case SendUpdateMetadata():
            return _update_metadata(send, controller_epoch)
        case SendLeaderAndIsr():
            return _leader_and_isr(send, controller_epoch, listener)
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
        ended=send.ended,
        live_brokers=[_live_broker(broker) for broker in send.live_brokers],
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=topic.name,
                topic_id=topic.id,
                configs=dict(topic.configs),
                schema_version=topic.schema_version,
                partition_states=[
                    _metadata_state(number, state, live, controller_epoch)
                    for number, state in topic.partitions
                ],
            )
            for topic in send.topics
        ],
    )


def _live_broker(broker: Broker) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(
            host=one.host, port=one.port, listener=name, security_protocol=one.security_protocol
        )
        for name, one in broker.endpoints.items()
    ]
    return UpdateMetadataBroker(id_=broker.id, endpoints=endpoints, rack=broker.rack, epoch=broker.epoch)


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


def _leader_and_isr(
    send: SendLeaderAndIsr, controller_epoch: ControllerEpoch, listener: str
) -> LeaderAndIsrRequest:
    leaders = (broker.node(listener) for broker in send.live_leaders)
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
                schema_version=topic.schema_version,
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
            LeaderAndIsrLiveLeader(broker_id=leader.id, host_name=leader.host, port=leader.port)
            for leader in leaders
            if leader is not None
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
        store_given_up_in_epoch=state.store_given_up_in_epoch,
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
    """The errors of a message's partitions: of those that failed, or of all if the message was refused.

    After a LeaderAndIsr also those that succeeded, because their logs work.
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
