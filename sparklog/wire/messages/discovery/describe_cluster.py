"""DescribeCluster (key 60): the live brokers, for admin clients."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.metadata import OPERATIONS_OMITTED


@dataclass(slots=True, kw_only=True)
class DescribeClusterRequest:
    API_KEY: ClassVar[int] = 60

    include_cluster_authorized_operations: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeClusterBroker:
    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True, kw_only=True)
class DescribeClusterResponse:
    API_KEY: ClassVar[int] = 60

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: int = OPERATIONS_OMITTED
