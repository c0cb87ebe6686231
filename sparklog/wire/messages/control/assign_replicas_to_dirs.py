"""AssignReplicasToDirs (key 73, KIP-858): a broker says in which log directories replicas are.

Of its uses there is one here: replicas that are said to be in the directory ``LOST`` are in none any more,
because their disk failed.
"""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId

LOST: Final = uuid.UUID(int=1)
"""Kafka's id for a directory that failed."""


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsPartition:
    partition_index: int


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsTopic:
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[AssignReplicasToDirsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsDirectory:
    id_: uuid.UUID = LOST
    topics: list[AssignReplicasToDirsTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsRequest:
    API_KEY: ClassVar[int] = 73

    broker_id: int
    broker_epoch: int = -1
    directories: list[AssignReplicasToDirsDirectory] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsPartitionResponse:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsTopicResponse:
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[AssignReplicasToDirsPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsDirectoryResponse:
    id_: uuid.UUID = LOST
    topics: list[AssignReplicasToDirsTopicResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsResponse:
    """``directories`` stays empty: a report is taken as a whole, or refused as a whole."""

    API_KEY: ClassVar[int] = 73

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    directories: list[AssignReplicasToDirsDirectoryResponse] = field(default_factory=list)
