"""What brokers ask for themselves: requests as commands, results as responses."""

from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
    ControlledShutdown,
    ControlledShutdownResult,
    LoseLogs,
    LoseLogsResult,
)
from sparklog.model.ids import (
    BrokerEpoch,
    BrokerId,
)
from sparklog.wire.messages.control.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
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
