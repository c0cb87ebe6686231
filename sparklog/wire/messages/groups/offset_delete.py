"""OffsetDelete (key 47, KIP-496): forget a group's offsets of topics that it is not subscribed to."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest:
    API_KEY: ClassVar[int] = 47

    group_id: str
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse:
    """``error_code`` is that of the whole group; the partitions are left out then."""

    API_KEY: ClassVar[int] = 47

    error_code: ErrorCode = ErrorCode.none
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)
