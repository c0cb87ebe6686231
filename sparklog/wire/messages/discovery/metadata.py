"""Metadata (key 3): brokers, topics, and who leads which partition."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId

OPERATIONS_OMITTED: Final = -(2**31)
"""The value of an ``*_authorized_operations`` bit set that was not requested."""


@dataclass(slots=True, kw_only=True)
class MetadataRequestTopic:
    """A topic asked for by name, or from version 10 on by id with ``name`` None."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"topic_id"})

    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(slots=True, kw_only=True)
class MetadataRequest:
    """``topics`` None asks for all topics; an empty list for none, but in version 0 for all."""

    API_KEY: ClassVar[int] = 3

    topics: list[MetadataRequestTopic] | None = None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


@dataclass(slots=True, kw_only=True)
class MetadataResponseBroker:
    """``has_left`` is an extension of ours: 1 for a broker that was live a moment ago, and is not now."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    has_left: int = 0


@dataclass(slots=True, kw_only=True)
class MetadataResponsePartition:
    """``lost_in_epoch`` is an extension of ours: the last leader epoch, if any, that may have begun without
    records that were acknowledged.
    """

    error_code: ErrorCode = ErrorCode.none
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)
    lost_in_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class MetadataResponseTopic:
    """``name`` may be None from version 12 on only: a topic asked for by an id that nobody knows.

    ``schema_version`` is an extension of ours: the newest version of its columns; 0 if it has none.
    """

    error_code: ErrorCode = ErrorCode.none
    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = OPERATIONS_OMITTED
    schema_version: int = 0


@dataclass(slots=True, kw_only=True)
class MetadataResponse:
    API_KEY: ClassVar[int] = 3

    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: int = OPERATIONS_OMITTED
