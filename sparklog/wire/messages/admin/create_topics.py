"""CreateTopics (key 19)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class CreatableReplicaAssignment:
    partition_index: int
    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatableTopicConfig:
    name: str
    value: str | None = None


@dataclass(slots=True, kw_only=True)
class CreatableTopic:
    """-1 partitions or replicas mean the broker's defaults, or that ``assignments`` says it."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequest:
    API_KEY: ClassVar[int] = 19

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: int = 60_000
    validate_only: bool = False


@dataclass(slots=True, kw_only=True)
class CreatableTopicConfigs:
    """One setting that the topic was created with."""

    name: str
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(slots=True, kw_only=True)
class CreatableTopicResult:
    name: str
    topic_id: TopicId = NO_TOPIC_ID
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreateTopicsResponse:
    API_KEY: ClassVar[int] = 19

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)
