"""Where logs begin and end, and which offset belongs to a time: ListOffsets, asked of each leader.

"Latest" means three things: the high watermark for a consumer, the last stable offset for a read-committed
one, and for a debugging replica (``DEBUG_REPLICA``) the leader's log end offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, KnownLeader
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER: Final = -1
DEBUG_REPLICA: Final = -2

FIGURES: Final = 5
"""Numbers of a ``RemoteShare``."""


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """A record's offset and timestamp; both -1 if there is no such record."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


def earliest(cluster: ClusterClient, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The log start offset of each partition."""
    found = _ask(
        cluster, dict.fromkeys(topic_partitions, EARLIEST_TIMESTAMP), IsolationLevel.READ_UNCOMMITTED
    )
    return {topic_partition: answer.offset for topic_partition, answer in found.items()}


def latest(
    cluster: ClusterClient, topic_partitions: Iterable[TopicPartition], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """The end (exclusive) of each partition for this kind of reader."""
    found = _ask(cluster, dict.fromkeys(topic_partitions, LATEST_TIMESTAMP), isolation_level)
    return {topic_partition: answer.offset for topic_partition, answer in found.items()}


def for_times(
    cluster: ClusterClient, timestamps_ms: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The first record at or after each timestamp; None where every record is earlier."""
    found = _ask(cluster, timestamps_ms, isolation_level)
    return {
        topic_partition: None if answer.offset < 0 else answer for topic_partition, answer in found.items()
    }


def log_ends(
    cluster: ClusterClient, topic_partition: TopicPartition, isolation_level: IsolationLevel
) -> tuple[int, int]:
    """The readable range of one partition: ``[start, end)``."""
    return earliest(cluster, [topic_partition])[topic_partition], latest(
        cluster, [topic_partition], isolation_level
    )[topic_partition]


@dataclass(frozen=True, slots=True)
class RemoteShare:
    """What a remote store has of a partition, as its leader last saw it; -1 is unknown, or nothing."""

    start_offset: int = -1
    end_offset: int = -1
    size_bytes: int = -1
    lag_segments: int = -1
    lag_bytes: int = -1
    trouble: str = ""
    """What is wrong with it; empty if nothing is known to be."""


def local_starts(
    cluster: ClusterClient,
    seen: ClusterMetadata,
    topic_partitions: Sequence[TopicPartition],
    deadline: Deadline,
) -> dict[TopicPartition, tuple[int, RemoteShare | None]]:
    """Where each log begins on its leader's disk, -1 if that does not answer or waits for the store; and what
    a remote store has, None for a topic that is in none.
    """
    timestamps_ms = dict.fromkeys(topic_partitions, EARLIEST_LOCAL_TIMESTAMP)

    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> ListOffsetsRequest:
        return offsets_request(leaders, timestamps_ms, IsolationLevel.READ_UNCOMMITTED, CONSUMER)

    answers = cluster.ask_leaders(topic_partitions, seen, build, _read_shares, deadline)
    return {
        topic_partition: (-1, None) if found is None else found
        for topic_partition, (_, found) in answers.items()
    }


def _read_shares(
    response: ListOffsetsResponse,
) -> dict[TopicPartition, Answer[tuple[int, RemoteShare | None]]]:
    return {
        TopicPartition(topic.name, one.partition_index): _answer_about_store(one)
        for topic in response.topics
        for one in topic.partitions
    }


def _answer_about_store(one: ListOffsetsPartitionResponse) -> Answer[tuple[int, RemoteShare | None]]:
    """A leader that waits for the store has no offset to give, and says why."""
    waits = one.error_code is ErrorCode.offset_not_available and bool(one.remote_trouble)
    if one.error_code is ErrorCode.none or waits:
        return ErrorCode.none, (one.offset, _share(one))
    return one.error_code, None


def _share(answer: ListOffsetsPartitionResponse) -> RemoteShare | None:
    """A later release may say more; the figures that this one knows come first."""
    figures = answer.remote_share[:FIGURES]
    return RemoteShare(*figures, trouble=answer.remote_trouble) if len(figures) == FIGURES else None


def ask_once(
    cluster: ClusterClient,
    seen: ClusterMetadata,
    topic_partitions: Sequence[TopicPartition],
    timestamp: int,
    replica_id: int,
    deadline: Deadline,
) -> dict[TopicPartition, int]:
    """The offset that each leader answers if it answers at all; -1 for the others."""
    timestamps_ms = dict.fromkeys(topic_partitions, timestamp)

    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> ListOffsetsRequest:
        return offsets_request(leaders, timestamps_ms, IsolationLevel.READ_UNCOMMITTED, replica_id)

    answers = cluster.ask_leaders(topic_partitions, seen, build, read_offsets, deadline)
    return {
        topic_partition: -1 if found is None else found.offset
        for topic_partition, (_, found) in answers.items()
    }


def _ask(
    cluster: ClusterClient, timestamps_ms: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAndTimestamp]:
    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> ListOffsetsRequest:
        return offsets_request(leaders, timestamps_ms, isolation_level, CONSUMER)

    return cluster.call_leaders(timestamps_ms, build, read_offsets)


def offsets_request(
    leaders: Mapping[TopicPartition, KnownLeader],
    timestamps_ms: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    replica_id: int,
) -> ListOffsetsRequest:
    """For the partitions of one leader, and the time that is asked for in each."""
    topics: dict[str, ListOffsetsTopic] = {}
    for topic_partition, leader in leaders.items():
        topic = topics.setdefault(topic_partition.topic, ListOffsetsTopic(name=topic_partition.topic))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=topic_partition.partition,
                current_leader_epoch=leader.leader_epoch,
                timestamp=timestamps_ms[topic_partition],
            )
        )
    return ListOffsetsRequest(
        replica_id=replica_id, isolation_level=isolation_level, topics=list(topics.values())
    )


def read_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, Answer[OffsetAndTimestamp]]:
    """Each partition's error, and what its leader says if there is none."""
    answers: dict[TopicPartition, Answer[OffsetAndTimestamp]] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            found = OffsetAndTimestamp(partition.offset, partition.timestamp, partition.leader_epoch)
            is_found = partition.error_code is ErrorCode.none
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            answers[topic_partition] = (partition.error_code, found if is_found else None)
    return answers
