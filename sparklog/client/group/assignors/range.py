"""The assignor ``range``: of each topic, every member gets one contiguous run of partitions.

Topics are divided one by one. With 7 partitions and 3 members the runs are 0-2, 3-4 and 5-6. Members that
subscribe to two topics with equal numbers of partitions therefore get the same partition numbers of both,
which keeps records with equal keys together.
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


class RangeAssignor:
    name = "range"
    protocols = (RebalanceProtocol.EAGER,)

    def assign(self, subscribers: Sequence[Subscriber], partition_counts: PartitionCounts) -> Assignments:
        assignments: Assignments = {member.member_id: [] for member in subscribers}
        for topic in topics_of(subscribers):
            members = [member for member in in_order(subscribers) if topic in member.topics]
            partitions = partitions_of(topic, partition_counts)
            share, longer_runs = divmod(len(partitions), len(members))
            start = 0
            for position, member in enumerate(members):
                end = start + share + (position < longer_runs)
                assignments[member.member_id] += partitions[start:end]
                start = end
        return assignments
