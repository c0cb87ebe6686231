"""The typed records of ``__consumer_offsets``, with the fields of Kafka's.

A group's state is two kinds of records: one ``GroupValue`` for the group, which is written whenever a
generation is complete, and one ``OffsetValue`` for each partition with a committed offset.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.model.ids import TopicPartition

NO_TIMESTAMP_MS: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Kafka's OffsetCommitKey (key versions 0 and 1)."""

    group_id: str
    topic_partition: TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetValue:
    """Kafka's OffsetCommitValue: the next offset that the group reads.

    ``leader_epoch`` is -1 if the client gave none. ``expire_timestamp_ms`` is -1 unless the client named a
    retention time (OffsetCommit 2 to 4); only value version 1 has room for it.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP_MS


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Kafka's GroupMetadataKey (key version 2)."""

    group_id: str


@dataclass(frozen=True, slots=True)
class MemberValue:
    """One member of a generation. ``subscription`` is its metadata for the generation's protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupValue:
    """Kafka's GroupMetadataValue: a generation with its assignment. Without members the group is empty.

    ``protocol_type`` is "" if the group never had one. ``state_timestamp_ms`` is when the group came into its
    state, by the wall clock; -1 in records of value versions 0 and 1.
    """

    protocol_type: str
    generation_id: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberValue, ...]
