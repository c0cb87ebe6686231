"""What a rule is told, and how it ends the run that breaks it.

A rule gets facts: a replica changed (``on_replica``), the committed log grew (``on_commit``), ZooKeeper holds
another state (``on_state``), a client was answered (``on_ack``, ``on_read``). Most rules need one or two.
"""

from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.model.cluster_facts import PartitionState


class Violation(BaseException):
    """An invariant does not hold; ends the run."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant
        self.what = what


class Invariant:
    """One rule. ``broken`` ends the run."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        """A replica's log, watermarks or role changed; ``added`` are its new entries."""

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        """A leader's high watermark passed ``added``."""

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        """ZooKeeper holds another state."""

    def on_leader(self, truth: PartitionTruth, view: ReplicaView, told: PartitionState | None) -> None:
        """A replica leads, and its broker has had an update of metadata since, or has had none at all.

        ``told`` is what the broker tells clients of the partition.
        """

    def on_ack(self, truth: PartitionTruth, sent: Entry, base_offset: int) -> None:
        """A producer was told that its batch is safe (acks=all)."""

    def on_read(self, truth: PartitionTruth, entry: Entry) -> None:
        """A consumer was given a batch."""

    def broken(self, truth: PartitionTruth, what: str) -> Violation:
        return Violation(type(self).__name__, f"{truth.topic_partition}: {what}")
