"""What the controller is asked, and what it answers. The wire's versions and layouts are not known here.

A command travels with a ``CommandId`` that its shell chose; the machine returns the id with the result,
at once or after writes and acknowledgements, exactly once.
"""

from typing import NewType

from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
    ControlledShutdown,
    ControlledShutdownResult,
    LoseLogs,
    LoseLogsResult,
)
from sparklog.core.controller.commands.config_commands import (
    ChangeConfigs,
    ConfigResult,
    ConfigsResult,
)
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterPartitionResult,
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
    PartitionsResult,
    ReassignmentsResult,
)
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    TopicResult,
    TopicsResult,
)
from sparklog.model.errors import ErrorCode

CommandId = NewType("CommandId", int)


Command = (
    AlterPartition
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | ChangeConfigs
    | ElectLeaders
    | AlterReassignments
    | ListReassignments
    | ControlledShutdown
    | AllocateProducerIds
    | LoseLogs
)


Result = (
    AlterPartitionResult
    | TopicsResult
    | ConfigsResult
    | PartitionsResult
    | ReassignmentsResult
    | ControlledShutdownResult
    | AllocateProducerIdsResult
    | LoseLogsResult
)


def refusal(command: Command, error: ErrorCode, message: str = "") -> Result:
    """The answer to ``command`` that says ``error`` and nothing else."""
    match command:
        case AlterPartition():
            return AlterPartitionResult(error)
        case ControlledShutdown():
            return ControlledShutdownResult(error)
        case AllocateProducerIds():
            return AllocateProducerIdsResult(error)
        case LoseLogs():
            return LoseLogsResult(error)
        case CreateTopics(topics):
            return TopicsResult(tuple(TopicResult(topic.name, error, message) for topic in topics))
        case CreatePartitions(increases):
            return TopicsResult(tuple(TopicResult(one.topic, error, message) for one in increases))
        case ElectLeaders() | AlterReassignments():
            return PartitionsResult(error=error, message=message)
        case ListReassignments():
            return ReassignmentsResult(error=error, message=message)
        case ChangeConfigs(resources):
            return ConfigsResult(tuple(ConfigResult(one.kind, one.name, error, message) for one in resources))
        case DeleteTopics(doomed):
            return TopicsResult(tuple(TopicResult(one.name or "", error, message, one.id) for one in doomed))
