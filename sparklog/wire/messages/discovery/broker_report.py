"""BrokerReport (key 10005, sparklog's own): what one broker knows of itself.

A broker answers for itself alone; the requester names what it wants beside the facts that every answer has.
Nothing waits for news: who follows asks again, from the last sample and warning that it has.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class BrokerReportRequest:
    """``samples_after_ms`` and ``warnings_after``: the last sample and warning that the requester has, both
    exclusive. ``samples_max`` and ``warnings_max`` 0: it wants none. ``topics``: whose partitions it wants.
    """

    API_KEY: ClassVar[int] = 10_005

    samples_after_ms: int = -1
    samples_max: int = 0
    warnings_after: int = 0
    warnings_max: int = 0
    topics: list[str] = field(default_factory=list)
    wants_metrics: bool = False


@dataclass(slots=True, kw_only=True)
class ReportedDirectory:
    """A log directory. ``reason``: why it is offline. ``device``: the disk's number at its host, empty where
    the disk does not answer; two directories of one number share a disk. ``floor_bytes``: the free bytes
    below which clients may not write; 0 without such a limit. -1 is what the disk does not say.
    """

    path: str
    is_online: bool = True
    reason: str | None = None
    device: str = ""
    total_bytes: int = -1
    free_bytes: int = -1
    floor_bytes: int = -1
    total_inodes: int = -1
    free_inodes: int = -1
    replicas: int = 0


@dataclass(slots=True, kw_only=True)
class ReportedFigure:
    """A figure at the times of the report's samples; NaN where it had no value."""

    name: str
    values: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedWarning:
    """A line of the broker's log. ``number`` rises by one since the broker's start."""

    number: int
    time_ms: int
    level: str
    logger: str
    words: str


@dataclass(slots=True, kw_only=True)
class ReportedFollower:
    """A replica as its leader sees it. ``lag``: offsets; -1 before its first fetch."""

    broker_id: int
    lag: int = -1


@dataclass(slots=True, kw_only=True)
class ReportedPartition:
    """A replica on this broker. Offsets are its own; ``followers`` are empty unless it leads."""

    topic: str
    partition: int
    is_leader: bool = False
    is_offline: bool = False
    leader_epoch: int = -1
    log_start_offset: int = -1
    high_watermark: int = -1
    log_end_offset: int = -1
    size_bytes: int = -1
    followers: list[ReportedFollower] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedLabel:
    name: str
    value: str


@dataclass(slots=True, kw_only=True)
class ReportedSeries:
    """``value``: of a histogram its sum. ``bounds`` and ``counts``: a histogram's buckets, as
    ``sparklog.model.metric.Metric`` has them.
    """

    labels: list[ReportedLabel] = field(default_factory=list)
    value: float = 0.0
    bounds: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedMetric:
    """All series of one name (docs/metrics.md)."""

    name: str
    kind: str
    doc: str
    series: list[ReportedSeries] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class BrokerReportResponse:
    """Times are in milliseconds since 1970, by the broker's clock; -1 is what its system does not say.

    ``open_files_max``, ``memory_bytes`` and ``cores`` are the process's: the limit of its descriptors, what
    it occupies, the cores that it may use. ``samples_ms``: the times of the samples, ascending.
    """

    API_KEY: ClassVar[int] = 10_005

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    broker_id: int = -1
    release: str = ""
    host: str = ""
    pid: int = -1
    time_ms: int = -1
    started_ms: int = -1
    open_files: int = -1
    open_files_max: int = -1
    threads: int = -1
    memory_bytes: int = -1
    cores: int = -1
    directories: list[ReportedDirectory] = field(default_factory=list)
    samples_ms: list[int] = field(default_factory=list)
    figures: list[ReportedFigure] = field(default_factory=list)
    last_warning: int = 0
    warnings: list[ReportedWarning] = field(default_factory=list)
    partitions: list[ReportedPartition] = field(default_factory=list)
    metrics: list[ReportedMetric] = field(default_factory=list)
