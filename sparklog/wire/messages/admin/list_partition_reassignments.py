"""ListPartitionReassignments (key 46, KIP-455): which moves are under way."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsTopics:
    name: str
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    """``topics`` None asks for every move."""

    API_KEY: ClassVar[int] = 46

    timeout_ms: int = 60_000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@dataclass(slots=True, kw_only=True)
class OngoingPartitionReassignment:
    """``replicas`` has the adding and the removing ones in it."""

    partition_index: int
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OngoingTopicReassignment:
    name: str
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    API_KEY: ClassVar[int] = 46

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    topics: list[OngoingTopicReassignment] = field(default_factory=list)
