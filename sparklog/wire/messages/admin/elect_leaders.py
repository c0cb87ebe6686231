"""ElectLeaders (key 43, KIP-460): make the preferred replica lead, or any live one if nobody else can."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from sparklog.model.errors import ErrorCode


class ElectionType(IntEnum):
    preferred = 0
    unclean = 1


@dataclass(slots=True, kw_only=True)
class ElectLeadersTopicPartitions:
    topic: str
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ElectLeadersRequest:
    """``topic_partitions`` None means every partition. Version 0 knows preferred elections only.

    ``without_store`` is an extension of ours. 1: an unclean election that also ends a leader's wait for the
    history in the remote store.
    """

    API_KEY: ClassVar[int] = 43

    election_type: int = ElectionType.preferred
    topic_partitions: list[ElectLeadersTopicPartitions] | None = None
    timeout_ms: int = 60_000
    without_store: int = -1


@dataclass(slots=True, kw_only=True)
class ElectLeadersPartitionResult:
    partition_id: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class ReplicaElectionResult:
    topic: str
    partition_result: list[ElectLeadersPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponse:
    API_KEY: ClassVar[int] = 43

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
