"""DeleteRecords (key 21, KIP-107): raise a partition's log start, so that what is below it is gone."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartition:
    """Offsets below ``offset`` (exclusive) are deleted; -1 stands for the high watermark."""

    partition_index: int
    offset: int


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopic:
    name: str
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequest:
    API_KEY: ClassVar[int] = 21

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: int = 60_000


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    """``low_watermark`` is the smallest log start of the live replicas; -1 with an error."""

    partition_index: int
    low_watermark: int = -1
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    name: str
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponse:
    API_KEY: ClassVar[int] = 21

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)
