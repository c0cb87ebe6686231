"""OffsetCommit (key 8): store the offsets up to which a group has consumed.

Version 0 was ZooKeeper's, and is stored like version 1. Version 1 names generation and member, and has a time
for each partition; versions 2 to 4 have one retention time for all; version 6 adds leader epochs (KIP-320),
version 7 static members (KIP-345).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode

NO_GENERATION: Final = -1
"""The generation of a commit from outside the group protocol: its consumer assigns partitions itself."""


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestPartition:
    """``commit_timestamp`` in wall-clock ms, -1 for the coordinator's own clock."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"committed_leader_epoch"})

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    commit_timestamp: int = -1
    committed_metadata: str | None = None


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    name: str
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequest:
    """``retention_time_ms`` -1 stands for the broker's ``offsets.retention.minutes``."""

    API_KEY: ClassVar[int] = 8
    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {"generation_id_or_member_epoch", "member_id", "retention_time_ms"}
    )

    group_id: str
    generation_id_or_member_epoch: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponsePartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    name: str
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponse:
    API_KEY: ClassVar[int] = 8

    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
