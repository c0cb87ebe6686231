"""With acks=all ``min.insync.replicas`` holds when a record is appended, and when it is committed."""

from dataclasses import dataclass, field

from simulation.invariants.invariant import Invariant
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.isr import committed_isr
from sparklog.core.replication.leader import Leader


@dataclass(slots=True)
class EnoughAreInSync(Invariant):
    """As far as its leader knows, the ISR has ``min.insync.replicas`` members, or all replicas if they are
    fewer, when it appends what is sent with acks=all, and when its high watermark passes anything. (Kafka
    asks at the append and at the answer only; here nothing is committed, or read, below the minimum.)

    A later ISR may be smaller: who asks again for what is committed is told that it is.
    """

    asked_all: set[tuple[int, ...]] = field(default_factory=set)
    """What was sent with acks=all, by producer, epoch, sequence and CRC."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if not added or view.is_read_anew:
            return
        leader = partition._replica.leader
        if leader is None or self._has_enough(truth, leader):
            return
        for entry in added:
            if entry[3:] in self.asked_all and entry.leader_epoch == leader.leader_epoch:
                raise self.broken(truth, f"broker {view.broker_id} took {entry} with {_isr(leader)}")

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        assert leader.partition is not None
        machine, now = leader.partition._replica.leader, leader.partition.high_watermark
        if now <= leader.high_watermark:
            return  # it knew that before it led, and an election has lost it since
        if machine is not None and not self._has_enough(truth, machine):
            raise self.broken(truth, f"broker {leader.broker_id} committed {added[-1]} with {_isr(machine)}")

    def _has_enough(self, truth: PartitionTruth, leader: Leader) -> bool:
        """By ZooKeeper's minimum, if that is of this leader's epoch: it changes with the epoch only."""
        least = leader.min_isr
        state = truth.state
        if state is not None and state.leader_epoch == leader.leader_epoch:
            least = min(state.min_insync_replicas, len(state.replicas))
        return len(committed_isr(leader.isr).members) >= least


def _isr(leader: Leader) -> str:
    return f"the ISR {sorted(committed_isr(leader.isr).members)} in epoch {leader.leader_epoch}"
