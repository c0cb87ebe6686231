"""AlterPartition (key 56): a leader proposes a new ISR to the controller, with each member's broker epoch."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class BrokerState:
    """A proposed ISR member and the epoch of the incarnation that was seen to be in sync (KIP-903)."""

    broker_id: int
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class AlterPartitionPartition:
    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: list[BrokerState] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int


@dataclass(slots=True, kw_only=True)
class AlterPartitionTopic:
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[AlterPartitionPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionRequest:
    API_KEY: ClassVar[int] = 56

    broker_id: int
    broker_epoch: int = -1
    topics: list[AlterPartitionTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionPartitionResponse:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    leader_id: int = -1
    leader_epoch: int = -1
    isr: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class AlterPartitionTopicResponse:
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[AlterPartitionPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionResponse:
    API_KEY: ClassVar[int] = 56

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    topics: list[AlterPartitionTopicResponse] = field(default_factory=list)
