"""What is asked of the controller, and what it answers. The wire's versions and layouts are not known here.

A command travels with a ``CommandId`` that its shell chose; the machine gives the id back with the result,
at once or after writes and acknowledgements, exactly once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from sparklog.core.controller.admin_commands import (
    AlterReassignments,
    ChangeConfigs,
    ConfigResult,
    ConfigsResult,
    CreatePartitions,
    ElectLeaders,
    ListReassignments,
    PartitionsResult,
    ReassignmentsResult,
)
from sparklog.model.cluster import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition

CommandId = NewType("CommandId", int)


# ------------------------------------------------------------------------------------- AlterPartition


@dataclass(frozen=True, slots=True)
class ProposedMember:
    """An ISR member as its leader saw it; epoch -1 when the leader has not heard of it in this epoch."""

    broker: BrokerId
    epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The ISR that a leader wants for one partition, and the state that it was decided on."""

    topic_id: TopicId
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[ProposedMember, ...]

    @property
    def members(self) -> tuple[BrokerId, ...]:
        return tuple(member.broker for member in self.isr)


@dataclass(frozen=True, slots=True)
class AlterPartition:
    broker: BrokerId
    broker_epoch: BrokerEpoch
    proposals: tuple[IsrProposal, ...]


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """``state`` is what now holds; None with an error."""

    topic_id: TopicId
    partition: int
    error: ErrorCode
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    error: ErrorCode
    answers: tuple[IsrAnswer, ...] = ()


# ------------------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``id`` was drawn by the shell, which has dice; it also seeds the placement.

    ``partitions`` and ``replication_factor`` are -1 for the cluster's default, or when ``assignment`` says
    where every partition goes. A config without a value is refused.
    """

    name: str
    id: TopicId
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    topics: tuple[NewTopic, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class TopicResult:
    """What became of one topic, created or deleted. ``name`` is empty for an id that nobody knows."""

    name: str
    error: ErrorCode = ErrorCode.none
    message: str = ""
    id: TopicId = NO_TOPIC_ID
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsResult:
    topics: tuple[TopicResult, ...]


@dataclass(frozen=True, slots=True)
class DoomedTopic:
    """A topic to delete, by name, or by id where ``name`` is None."""

    name: str | None = None
    id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    topics: tuple[DoomedTopic, ...]
    timeout_ms: int


# ------------------------------------------------------------------------------------- brokers


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class ControlledShutdownResult:
    """``remaining`` are partitions that the broker still leads although waiting may find them a leader."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResult:
    """``length`` ids from ``first`` on."""

    error: ErrorCode
    first: int = -1
    length: int = 0


@dataclass(frozen=True, slots=True)
class LoseLogs:
    """The disk under these replicas of a live broker failed: elect others, at once."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[tuple[TopicId, int], ...]


@dataclass(frozen=True, slots=True)
class LoseLogsResult:
    error: ErrorCode


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
