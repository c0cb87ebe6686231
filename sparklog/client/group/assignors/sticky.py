"""The assignor ``cooperative-sticky``: balanced, and each member keeps what it owns as far as balance allows.

1. A member keeps the partitions that it owns, if it still subscribes to their topics, and if no other member
   owns them by a later generation. Two claims of the same generation contradict each other: both are void.
2. Every other partition goes to the member with the fewest partitions that subscribes to its topic.
3. While a member has two partitions more than another that could take one of them, it gives one.

The rule is cooperative (KIP-429): a partition that another member still owns is left out of this round. Its
owner finds the partition missing in its assignment, gives it up and joins again; the next round assigns it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from sparklog.client.group.assignors.assignor import (
    Assignments,
    PartitionCounts,
    RebalanceProtocol,
    Subscriber,
    in_order,
    partitions_of,
    topics_of,
)
from sparklog.model.ids import TopicPartition


class CooperativeStickyAssignor:
    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE)

    def assign(self, subscribers: Sequence[Subscriber], partition_counts: PartitionCounts) -> Assignments:
        balanced = balance(subscribers, partition_counts)
        return withhold_transfers(subscribers, balanced)


def balance(subscribers: Sequence[Subscriber], partition_counts: PartitionCounts) -> Assignments:
    """A complete and balanced assignment with few moves; steps 1 to 3 of the module."""
    table = _Table(in_order(subscribers))
    topics = topics_of(subscribers)
    partitions = [one for topic in topics for one in partitions_of(topic, partition_counts)]
    owners = valid_owners(subscribers)
    for topic_partition in partitions:
        owner = owners.get(topic_partition)
        if owner is not None:
            table.give(owner, topic_partition)
    unowned = [topic_partition for topic_partition in partitions if topic_partition not in owners]
    # Partitions with few candidates first: the members with many choices fill the gaps that remain.
    for topic_partition in sorted(unowned, key=lambda one: (len(table.members_of(one.topic)), one)):
        table.give(table.least_loaded(topic_partition.topic), topic_partition)
    while table.move_one():
        pass
    return table.assignments()


def valid_owners(subscribers: Sequence[Subscriber]) -> dict[TopicPartition, str]:
    """The member that owns each partition; partitions without a valid claim are absent."""
    claims: dict[TopicPartition, list[Subscriber]] = {}
    for member in subscribers:
        for topic_partition in member.owned:
            if topic_partition.topic in member.topics:
                claims.setdefault(topic_partition, []).append(member)
    owners: dict[TopicPartition, str] = {}
    for topic_partition, claimants in claims.items():
        latest = max(member.generation for member in claimants)
        of_latest = [member for member in claimants if member.generation == latest]
        if len(of_latest) == 1:
            owners[topic_partition] = of_latest[0].member_id
    return owners


def withhold_transfers(subscribers: Iterable[Subscriber], assignments: Assignments) -> Assignments:
    """The assignment without the partitions that a member other than the assigned one still claims."""
    claims = Counter(topic_partition for member in subscribers for topic_partition in member.owned)
    owned = {member.member_id: member.owned for member in subscribers}
    return {
        member_id: [
            topic_partition
            for topic_partition in partitions
            if claims[topic_partition] == (topic_partition in owned[member_id])
        ]
        for member_id, partitions in assignments.items()
    }


class _Table:
    """Who has which partitions, while the assignment is made."""

    def __init__(self, members: Sequence[Subscriber]) -> None:
        self._held: dict[str, dict[str, list[TopicPartition]]] = {member.member_id: {} for member in members}
        """By member id, then by topic: partitions in the order in which the member got them."""
        self._load = dict.fromkeys(self._held, 0)
        self._members_of: dict[str, list[str]] = {}
        for member in members:
            for topic in member.topics:
                self._members_of.setdefault(topic, []).append(member.member_id)

    def members_of(self, topic: str) -> list[str]:
        """The members that subscribe to the topic, in the order of assignors."""
        return self._members_of[topic]

    def least_loaded(self, topic: str) -> str:
        """The first member with the fewest partitions, among those that subscribe to the topic."""
        return min(self._members_of[topic], key=self._load.__getitem__)

    def give(self, member_id: str, topic_partition: TopicPartition) -> None:
        self._held[member_id].setdefault(topic_partition.topic, []).append(topic_partition)
        self._load[member_id] += 1

    def move_one(self) -> bool:
        """Move one partition to a member that has at least two partitions less; False if none can move.

        Each move lowers the sum of the squared loads, so a sequence of moves ends.
        """
        for giver in sorted(self._load, key=lambda member_id: -self._load[member_id]):
            for topic, partitions in sorted(self._held[giver].items()):
                taker = self.least_loaded(topic)
                if partitions and self._load[taker] + 2 <= self._load[giver]:
                    self.give(taker, partitions.pop())
                    self._load[giver] -= 1
                    return True
        return False

    def assignments(self) -> Assignments:
        return {
            member_id: sorted(one for partitions in held.values() for one in partitions)
            for member_id, held in self._held.items()
        }
