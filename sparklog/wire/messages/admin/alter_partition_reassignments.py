"""AlterPartitionReassignments (key 45, KIP-455): move partitions to other brokers, or cancel a move."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ReassignablePartition:
    """``replicas`` is where the partition shall be; None cancels a move that is under way."""

    partition_index: int
    replicas: list[int] | None = None


@dataclass(slots=True, kw_only=True)
class ReassignableTopic:
    name: str
    partitions: list[ReassignablePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    """``throttle`` is an extension of ours: what each broker sends and fetches at most for these moves, in
    bytes a second; -1: no limit.
    """

    API_KEY: ClassVar[int] = 45

    timeout_ms: int = 60_000
    topics: list[ReassignableTopic] = field(default_factory=list)
    throttle: int = -1


@dataclass(slots=True, kw_only=True)
class ReassignablePartitionResponse:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class ReassignableTopicResponse:
    name: str
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    """``operation`` is an extension of ours: the operation that limits the moves; -1: none does."""

    API_KEY: ClassVar[int] = 45

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    responses: list[ReassignableTopicResponse] = field(default_factory=list)
    operation: int = -1
