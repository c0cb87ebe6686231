"""The offset from which on records of a partition may be lost: where the epoch began that may lack some.

Metadata name that epoch (``lost_in_epoch``). Its leader noted the epoch at its log's end, so all that was
acknowledged beyond that offset may be gone. How much that was nobody knows once disks are gone. The leader
answers (OffsetForLeaderEpoch): where the epoch before ended is where this one began.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, KnownLeader
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@dataclass(frozen=True, slots=True)
class PossibleLoss:
    """``from_offset`` is inclusive; -1 if the leader does not answer, or no longer knows."""

    topic: str
    partition: int
    leader_epoch: int
    from_offset: int = -1

    def __str__(self) -> str:
        where = f"offset {self.from_offset}" if self.from_offset >= 0 else "an unknown offset"
        return f"{self.topic}-{self.partition} from {where} on (leader epoch {self.leader_epoch})"


def possible_losses(cluster: ClusterClient, seen: ClusterMetadata, deadline: Deadline) -> list[PossibleLoss]:
    """The possible losses of all partitions that ``seen`` names, in the order of their names."""
    epochs = {
        TopicPartition(topic.name, number): partition.lost_in_epoch
        for topic in seen.topics.values()
        for number, partition in topic.partitions.items()
        if partition.lost_in_epoch >= 0
    }
    starts = _starts(cluster, seen, epochs, deadline) if epochs else {}
    return [
        PossibleLoss(one.topic, one.partition, epoch, starts.get(one, -1))
        for one, epoch in sorted(epochs.items())
    ]


def _starts(
    cluster: ClusterClient, seen: ClusterMetadata, epochs: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> OffsetForLeaderEpochRequest:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for one, leader in leaders.items():
            topic = topics.setdefault(one.topic, OffsetForLeaderTopic(topic=one.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=one.partition,
                    current_leader_epoch=leader.leader_epoch,
                    leader_epoch=epochs[one] - 1,
                )
            )
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))

    answers = cluster.ask_leaders(epochs, seen, build, _read_ends, deadline)
    return {one: end for one, (_, end) in answers.items() if end is not None}


def _read_ends(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, Answer[int]]:
    return {
        TopicPartition(topic.topic, one.partition): (
            one.error_code,
            one.end_offset if one.error_code is ErrorCode.none else None,
        )
        for topic in response.topics
        for one in topic.partitions
    }
