"""What brokers announce of their leadership is true, and each epoch's end follows its begin."""

from dataclasses import dataclass, field

from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.model.ids import LeaderEpoch, TopicId, TopicPartition


class LeadershipIsAnnounced(Invariant):
    """Listeners hear of the begin and the end of each leader epoch, in turn and with rising epochs. No epoch
    of a partition begins at two replicas, or in two lives of one. A replica leads if and only if it said so.
    """

    def __init__(self) -> None:
        self.is_silent = False
        self._began_at: dict[tuple[TopicId, int, LeaderEpoch], str] = {}
        self._leading: dict[Partition, LeaderEpoch] = {}
        self._last: dict[Partition, LeaderEpoch] = {}

    def began(self, process: str, partition: Partition, epoch: LeaderEpoch) -> None:
        """``process`` announced that its replica leads."""
        key = (partition.topic_id, partition.topic_partition.partition, epoch)
        earlier = self._began_at.setdefault(key, process)
        if earlier != process:
            self._accuse(partition, f"epoch {epoch} began at {process}, and before at {earlier}")
        if partition in self._leading or epoch <= self._last.get(partition, -1):
            last = self._last[partition]
            self._accuse(partition, f"{process} began epoch {epoch} after epoch {last}, which must end first")
        self._leading[partition] = self._last[partition] = epoch

    def ceased(self, process: str, partition: Partition, epoch: LeaderEpoch) -> None:
        """``process`` announced that its replica leads no more."""
        announced = self._leading.pop(partition, None)
        if announced != epoch:
            self._accuse(partition, f"{process} ended epoch {epoch}; it had begun {announced}")

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        leads_in = partition.leader_epoch if partition.is_leader else None
        announced = self._leading.get(partition)
        if leads_in != announced:
            self._accuse(
                partition, f"broker {view.broker_id} leads in epoch {leads_in}, and announced {announced}"
            )

    def _accuse(self, partition: Partition, what: str) -> None:
        if not self.is_silent:
            raise Violation(type(self).__name__, f"{partition.topic_partition}: {what}")


@dataclass(slots=True)
class Announcements:
    """The listener in one life of a broker."""

    rule: LeadershipIsAnnounced
    process: str
    replicas: PartitionTable
    _partitions: dict[TopicPartition, Partition] = field(default_factory=dict)
    """Those that have led: a deleted one is not found any more when it announces its end."""

    def began_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        partition = self.replicas.get(topic_partition)
        assert partition is not None, topic_partition
        self._partitions[topic_partition] = partition
        self.rule.began(self.process, partition, leader_epoch)

    def ceased_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        self.rule.ceased(self.process, self._partitions[topic_partition], leader_epoch)
