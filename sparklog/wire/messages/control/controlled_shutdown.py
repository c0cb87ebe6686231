"""ControlledShutdown (key 7): a broker asks the controller to move its leaderships before it stops."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ControlledShutdownRequest:
    API_KEY: ClassVar[int] = 7

    broker_id: int
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class RemainingPartition:
    """A partition that the broker still leads because nobody else can."""

    topic_name: str
    partition_index: int


@dataclass(slots=True, kw_only=True)
class ControlledShutdownResponse:
    API_KEY: ClassVar[int] = 7

    error_code: ErrorCode = ErrorCode.none
    remaining_partitions: list[RemainingPartition] = field(default_factory=list)
