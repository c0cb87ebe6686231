"""DescribeProducers (key 61): what the leaders of partitions remember of their producers (KIP-664)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DescribeProducersTopic:
    name: str
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersRequest:
    API_KEY: ClassVar[int] = 61

    topics: list[DescribeProducersTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ActiveProducer:
    """``current_txn_start_offset`` -1: no transaction of it is open. ``last_timestamp``: milliseconds."""

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int
    current_txn_start_offset: int = -1


@dataclass(slots=True, kw_only=True)
class DescribeProducersPartitionResponse:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    active_producers: list[ActiveProducer] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersTopicResponse:
    name: str
    partitions: list[DescribeProducersPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponse:
    API_KEY: ClassVar[int] = 61

    throttle_time_ms: int = 0
    topics: list[DescribeProducersTopicResponse] = field(default_factory=list)
