"""DeleteTopics (key 20): by name up to version 5 (``topic_names``), by name or id in 6 (``topics``)."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class DeleteTopicState:
    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(slots=True, kw_only=True)
class DeleteTopicsRequest:
    API_KEY: ClassVar[int] = 20

    topics: list[DeleteTopicState] = field(default_factory=list)
    topic_names: list[str] = field(default_factory=list)
    timeout_ms: int = 60_000


@dataclass(slots=True, kw_only=True)
class DeletableTopicResult:
    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DeleteTopicsResponse:
    API_KEY: ClassVar[int] = 20

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)
