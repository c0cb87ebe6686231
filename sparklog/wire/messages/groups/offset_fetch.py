"""OffsetFetch (key 9): the committed offsets of groups.

Up to version 7 a request names one group (``group_id``, ``topics``), from version 8 on several (``groups``,
KIP-709). The response has the same two layouts. Version 0 was ZooKeeper's; version 2 asks for all partitions
and has an error of the whole group.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode

NO_OFFSET: Final = -1
"""The committed offset of a partition without a commit."""


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    name: str
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopics:
    """A topic of ``OffsetFetchRequestGroup``; Kafka's schema has a name of its own for this version."""

    name: str
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    """``topics`` None asks for all partitions with a commit."""

    group_id: str
    topics: list[OffsetFetchRequestTopics] | None = None


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequest:
    """``topics`` None asks for all partitions with a commit, from version 2 on.

    ``require_stable``: partitions with commits of open transactions are answered with UNSTABLE_OFFSET_COMMIT
    (KIP-447).
    """

    API_KEY: ClassVar[int] = 9
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"require_stable"})

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list)
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list)
    require_stable: bool = False


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartition:
    partition_index: int
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    name: str
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartitions:
    """A partition of ``OffsetFetchResponseTopics``."""

    partition_index: int
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopics:
    """A topic of ``OffsetFetchResponseGroup``."""

    name: str
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseGroup:
    group_id: str
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponse:
    API_KEY: ClassVar[int] = 9

    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list)
    error_code: ErrorCode = ErrorCode.none
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list)
