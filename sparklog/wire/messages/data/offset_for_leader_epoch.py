"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, so that a reader can find out what it lost."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderPartition:
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"current_leader_epoch"})

    partition: int
    current_leader_epoch: int = -1
    leader_epoch: int


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopic:
    topic: str
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """``replica_id``: -1 a consumer, -2 unknown (before version 3), otherwise the follower's broker id."""

    API_KEY: ClassVar[int] = 23
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"replica_id"})

    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class EpochEndOffset:
    """(-1, -1) when the epoch is one that the leader does not know the end of."""

    error_code: ErrorCode = ErrorCode.none
    partition: int
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopicResult:
    topic: str
    partitions: list[EpochEndOffset] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    API_KEY: ClassVar[int] = 23

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
