"""StopReplica: replicas that this broker stops serving, and those that it deletes, from the controller."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.from_controller import judge
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.control.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


def handle(call: Call, request: StopReplicaRequest) -> None:
    error = judge(call, request.controller_epoch, request.broker_epoch)
    if error is None:
        return
    if error is not ErrorCode.none:
        call.reply(StopReplicaResponse(error_code=error))
        return
    call.reply(
        StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(
                    topic_name=topic.topic_name,
                    partition_index=state.partition_index,
                    error_code=call.broker.roles.stop_replica(
                        TopicPartition(topic.topic_name, state.partition_index),
                        state.leader_epoch,
                        delete=state.delete_partition,
                        topic_id=topic.topic_id,
                    ),
                )
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        )
    )
