"""LeaderAndIsr: the controller says which partitions this broker leads and which it follows."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.from_controller import judge
from sparklog.broker.metadata_cache import broker_ids
from sparklog.model.cluster import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicPartition
from sparklog.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)


def handle(call: Call, request: LeaderAndIsrRequest) -> None:
    error = judge(call, request.controller_epoch, request.broker_epoch)
    if error is None:
        return
    if error is not ErrorCode.none:
        call.reply(LeaderAndIsrResponse(error_code=error))
        return
    call.reply(LeaderAndIsrResponse(topics=[_topic(call, topic) for topic in request.topic_states]))


def _topic(call: Call, topic: LeaderAndIsrTopicState) -> LeaderAndIsrTopicError:
    return LeaderAndIsrTopicError(
        topic_id=topic.topic_id,
        partition_errors=[
            LeaderAndIsrPartitionError(
                partition_index=state.partition_index,
                error_code=call.broker.replicas.become(
                    TopicPartition(topic.topic_name, state.partition_index),
                    topic.topic_id,
                    _state(state),
                    topic.configs,
                    is_new=state.is_new,
                ),
            )
            for state in topic.partition_states
        ],
    )


def _state(state: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        leader=BrokerId(state.leader),
        leader_epoch=LeaderEpoch(state.leader_epoch),
        isr=broker_ids(state.isr),
        replicas=broker_ids(state.replicas),
        partition_epoch=state.partition_epoch,
        adding=broker_ids(state.adding_replicas),
        removing=broker_ids(state.removing_replicas),
    )
