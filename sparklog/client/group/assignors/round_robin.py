"""The assignor ``roundrobin``: the partitions of all topics in order, one to each member in turn.

A member that does not subscribe to the topic of a partition is passed over for that partition.
"""

from collections.abc import Sequence

from sparklog.client.group.assignors.assignor import (
    Assignments,
    PartitionCounts,
    RebalanceProtocol,
    Subscriber,
    in_order,
    partitions_of,
    topics_of,
)


class RoundRobinAssignor:
    name = "roundrobin"
    protocols = (RebalanceProtocol.EAGER,)

    def assign(self, subscribers: Sequence[Subscriber], partition_counts: PartitionCounts) -> Assignments:
        assignments: Assignments = {member.member_id: [] for member in subscribers}
        members = in_order(subscribers)
        turn = 0
        for topic in topics_of(subscribers):
            for topic_partition in partitions_of(topic, partition_counts):
                while topic not in members[turn % len(members)].topics:
                    turn += 1
                assignments[members[turn % len(members)].member_id].append(topic_partition)
                turn += 1
        return assignments
