"""DescribeLogDirs (key 35, KIP-113): what a broker's log directories hold, and which of them are broken."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DescribableLogDirTopic:
    topic: str
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """``topics`` None asks for all."""

    API_KEY: ClassVar[int] = 35

    topics: list[DescribableLogDirTopic] | None = None


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsPartition:
    """``partition_size`` in bytes; ``offset_lag`` is how far the replica lags the high watermark."""

    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsTopic:
    name: str
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResult:
    """``total_bytes`` and ``usable_bytes`` are those of the file system, -1 where unknown."""

    error_code: ErrorCode = ErrorCode.none
    log_dir: str
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: int = -1
    usable_bytes: int = -1


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponse:
    API_KEY: ClassVar[int] = 35

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    results: list[DescribeLogDirsResult] = field(default_factory=list)
