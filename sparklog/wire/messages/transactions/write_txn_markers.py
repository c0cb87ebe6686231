"""WriteTxnMarkers (key 27): a coordinator has the leaders of partitions end transactions there."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerTopic:
    name: str
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarker:
    """One end. ``transaction_result`` False aborts."""

    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: int


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersRequest:
    API_KEY: ClassVar[int] = 27

    markers: list[WritableTxnMarker] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerPartitionResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerTopicResult:
    name: str
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerResult:
    producer_id: int
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponse:
    API_KEY: ClassVar[int] = 27

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)
