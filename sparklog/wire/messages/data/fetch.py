"""Fetch (key 1): read batches from partitions; consumers and followers alike.

``records`` of a response are parts (bytes, or slices of files that go out by ``sendfile``); when a
response is decoded they are one view into the frame, or none if the partition had nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId
from sparklog.model.parts import Part

NO_SESSION: Final = 0
OPENING_EPOCH: Final = 0
CLOSING_EPOCH: Final = -1
"""The session id of a fetch without a session, and the epochs that open and end one (KIP-227)."""


@dataclass(slots=True, kw_only=True)
class FetchPartition:
    """``columns`` is an extension of ours: the ids of the columns of a typed topic that this client wants,
    outside sessions only; None for all, and also () names some. ``condition``, another one, says beside it
    which rows are wanted (``model/schema/predicates/packed``): batches without any may be passed over.
    """

    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {"current_leader_epoch", "log_start_offset", "columns", "condition"}
    )

    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int
    columns: tuple[int, ...] | None = None
    condition: bytes = b""


@dataclass(slots=True, kw_only=True)
class FetchTopic:
    """A topic by name up to version 12, by id from 13 on; give both and either version can be sent."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"topic", "topic_id"})

    topic: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[FetchPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ForgottenTopic:
    """Partitions to remove from an incremental fetch session (KIP-227)."""

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"topic", "topic_id"})

    topic: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FetchRequest:
    """``replica_id`` is -1 for consumers; a follower gives its id, and from version 15 on its broker epoch.

    ``payload_kinds`` is an extension of ours: the payload kinds, each ``kind << 8 | version``, that this
    client can read; to others everything is served as plain Kafka records. ``with_aborted`` 1, another one:
    a fetch up to the high watermark is answered with the aborted transactions too.
    """

    API_KEY: ClassVar[int] = 1
    INLINED: ClassVar[frozenset[str]] = frozenset({"replica_state"})
    IGNORABLE: ClassVar[frozenset[str]] = frozenset(
        {
            "cluster_id",
            "replica_epoch",
            "max_bytes",
            "session_id",
            "session_epoch",
            "rack_id",
            "payload_kinds",
        }
    )

    cluster_id: str | None = None
    replica_id: int = -1
    replica_epoch: int = -1
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)
    rack_id: str = ""
    payload_kinds: tuple[int, ...] = ()
    with_aborted: int = -1


@dataclass(slots=True, kw_only=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int


@dataclass(slots=True, kw_only=True)
class FetchEpochEndOffset:
    """Where the follower's log parts from the leader's: it truncates to here at the most (KIP-595)."""

    epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True, kw_only=True)
class LeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class SnapshotId:
    end_offset: int = -1
    epoch: int = -1


@dataclass(slots=True, kw_only=True)
class FetchPartitionData:
    """What one partition answers. The last four travel as tags; three are None when absent.

    ``aborted_transactions`` None is what a read-uncommitted fetch gets. ``looked_to`` is an extension of
    ours: from the fetch offset up to here all batches are there but those without a row that is wanted; -1
    to a fetch without a condition.
    """

    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"looked_to"})

    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: list[AbortedTransaction] | None = None
    preferred_read_replica: int = -1
    records: Sequence[Part] = ()
    diverging_epoch: FetchEpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    looked_to: int = -1


@dataclass(slots=True, kw_only=True)
class FetchableTopicResponse:
    topic: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[FetchPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FetchResponse:
    API_KEY: ClassVar[int] = 1

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    session_id: int = 0
    responses: list[FetchableTopicResponse] = field(default_factory=list)
