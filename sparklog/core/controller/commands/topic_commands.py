"""Creation and deletion of topics, additional partitions, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId


@dataclass(frozen=True, slots=True)
class TopicToCreate:
    """A topic to create. ``id`` was drawn by the shell, which has dice; it also seeds the placement.

    ``partitions`` and ``replication_factor`` are -1 for the cluster's default, or when ``assignment`` says
    where every partition goes. A config without a value is refused.
    """

    name: str
    id: TopicId
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    topics: tuple[TopicToCreate, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DescribeSchemas:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedSchema:
    """``version`` 0 and no ``document``: the topic has no columns."""

    name: str
    error: ErrorCode = ErrorCode.none
    message: str = ""
    id: TopicId = NO_TOPIC_ID
    version: int = 0
    document: bytes = b""


@dataclass(frozen=True, slots=True)
class DescribedSchemas:
    topics: tuple[DescribedSchema, ...]


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """Make the version after ``from_version`` of a topic's columns.

    ``changes``: operations and texts, as ``parse_change`` takes them.
    """

    topic: str
    from_version: int
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AlteredSchema:
    """``version``: the newest that there is now; 0 if the topic has no columns, or is not there."""

    error: ErrorCode = ErrorCode.none
    message: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class TopicResult:
    """What became of one topic, created or deleted. ``name`` is empty for an unknown id."""

    name: str
    error: ErrorCode = ErrorCode.none
    message: str = ""
    id: TopicId = NO_TOPIC_ID
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsResult:
    topics: tuple[TopicResult, ...]
    throttle_ms: int = 0
    """How long the client must wait, by its quota of mutations."""


@dataclass(frozen=True, slots=True)
class DoomedTopic:
    """A topic to delete, by name, or by id where ``name`` is None."""

    name: str | None = None
    id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    topics: tuple[DoomedTopic, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Increase:
    """A topic is to have ``count`` partitions in all; ``assignment`` places the new ones, in order."""

    topic: str
    count: int
    assignment: tuple[tuple[BrokerId, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    topics: tuple[Increase, ...]
    timeout_ms: int
    validate_only: bool = False
