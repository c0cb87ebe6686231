"""CreatePartitions (key 37): give a topic more partitions."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class CreatePartitionsAssignment:
    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopic:
    """``count`` is the new total; ``assignments`` None lets the controller place the new ones."""

    name: str
    count: int
    assignments: list[CreatePartitionsAssignment] | None = None


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequest:
    API_KEY: ClassVar[int] = 37

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: int = 60_000
    validate_only: bool = False


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopicResult:
    name: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponse:
    API_KEY: ClassVar[int] = 37

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)
