"""TxnOffsetCommit (key 28): a group's offsets, which count when the producer's transaction is committed.

Version 3 names member, generation and instance, so that members which were replaced are refused (KIP-447).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition:
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"committed_leader_epoch"})

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    name: str
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    API_KEY: ClassVar[int] = 28

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    name: str
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    API_KEY: ClassVar[int] = 28

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)
