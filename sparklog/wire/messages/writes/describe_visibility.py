"""DescribeVisibility (key 10003, sparklog's own): what leaders know of open and ended writes, for a cut.

A reader asks it after it has learned all high watermarks, which are the ``since_offset``s.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AskedPartition:
    partition_index: int
    current_leader_epoch: int = -1
    since_offset: int


@dataclass(slots=True, kw_only=True)
class AskedTopic:
    name: str
    partitions: list[AskedPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeVisibilityRequest:
    API_KEY: ClassVar[int] = 10_003

    topics: list[AskedTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribedPartition:
    """``stable_offset``: the last stable offset that counts only transactions of Kafka's clients.

    ``writes``: the numbers of the atomic writes that are open below the high watermark, or have had a marker
    at or above the ``since_offset``. OFFSET_OUT_OF_RANGE: that offset is gone, or too long ago.
    """

    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = -1
    stable_offset: int = -1
    writes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribedTopic:
    name: str
    partitions: list[DescribedPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeVisibilityResponse:
    API_KEY: ClassVar[int] = 10_003

    throttle_time_ms: int = 0
    topics: list[DescribedTopic] = field(default_factory=list)
