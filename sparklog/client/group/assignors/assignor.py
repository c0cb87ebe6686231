"""What an assignor is: the members with their subscriptions go in, the partitions of each member come out.

The leader of a group runs the assignor that the coordinator chose; the other members receive the result. An
assignor is a pure function of its arguments, so that its result does not depend on which member leads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sparklog.model.ids import TopicPartition

PartitionCounts = Mapping[str, int]
"""The number of partitions of each existing topic; unknown topics are absent."""

Assignments = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id. Every member has an entry; every list is sorted."""


class RebalanceProtocol(Enum):
    """What members do with their partitions while the group rebalances (KIP-429)."""

    EAGER = "eager"
    """Each member gives up all partitions before it joins again."""
    COOPERATIVE = "cooperative"
    """Members keep their partitions, and give up only those that another member shall get."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as assignors see it: the topics it wants, and the partitions that it claims to own."""

    member_id: str
    topics: frozenset[str]
    group_instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    """The generation in which the member got ``owned``; -1 if it did not say."""


class Assignor(Protocol):
    """One rule. ``name`` is Kafka's, so that clients of other origins can vote for the same rule."""

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        """The rebalance protocols under which the rule works."""
        ...

    def assign(self, subscribers: Sequence[Subscriber], partition_counts: PartitionCounts) -> Assignments: ...


def in_order(subscribers: Sequence[Subscriber]) -> list[Subscriber]:
    """Static members by instance id, then dynamic members by member id: the order of Kafka's assignors.

    A static member has the same place after a restart, although its member id is a new one.
    """
    return sorted(
        subscribers,
        key=lambda member: (
            member.group_instance_id is None,
            member.group_instance_id or "",
            member.member_id,
        ),
    )


def partitions_of(topic: str, partition_counts: PartitionCounts) -> list[TopicPartition]:
    """The partitions of a topic in order; none if the topic does not exist."""
    return [TopicPartition(topic, partition) for partition in range(partition_counts.get(topic, 0))]


def topics_of(subscribers: Sequence[Subscriber]) -> list[str]:
    """Every subscribed topic, sorted."""
    return sorted({topic for member in subscribers for topic in member.topics})
