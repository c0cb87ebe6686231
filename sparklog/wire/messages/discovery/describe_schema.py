"""DescribeSchema (key 10007, sparklog's own): the columns of typed topics.

Clients ask any broker. A broker that lacks a topic's newest version asks the controller.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class DescribeSchemaRequest:
    API_KEY: ClassVar[int] = 10_007

    topics: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribedTopicSchema:
    """``version`` 0: the topic has no columns. ``document``: all versions, as JSON; null without columns."""

    name: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    version: int = 0
    document: bytes | None = None


@dataclass(slots=True, kw_only=True)
class DescribeSchemaResponse:
    API_KEY: ClassVar[int] = 10_007

    throttle_time_ms: int = 0
    topics: list[DescribedTopicSchema] = field(default_factory=list)
