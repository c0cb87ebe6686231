"""What a broker is excused from after a fault of its disk, and what it is not.

A power cut, rot or an empty disk may take committed records. The replicas on that disk are *tainted* until
an ISR counts them again, in a later incarnation and without rot. A failed fsync takes nothing by itself,
but no broker can prove that. Such replicas are *distrusted*: an election of the last of them may say that
records may be lost. What a broker had synced must be there after a power cut in any case, unless its disk
was damaged.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from simulation.invariants.invariant import Violation
from simulation.truth import PartitionTruth, ReplicaView
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class Excuses:
    """``truths`` are all partitions that there are, kept by the witness."""

    truths: dict[TopicPartition, PartitionTruth]
    rots: Callable[[BrokerId, TopicPartition], bool] = lambda broker, partition: False
    """Whether this replica holds a batch that rotted."""
    struck: dict[BrokerId, int] = field(default_factory=dict)
    """The last incarnation of each broker whose logs may have lost records."""
    has_damage: bool = False
    """Whether a disk lost what it had synced."""
    lost_disks: dict[BrokerId, int] = field(default_factory=dict)
    """The last incarnation of each broker whose disk was emptied, or is another one."""

    def who_rots(self, topic_partition: TopicPartition) -> Callable[[BrokerId], bool]:
        """Of a partition: whether a broker's replica of it holds a batch that rotted."""
        return lambda broker: self.rots(broker, topic_partition)

    # ---- what may be gone ----------------------------------------------------------------------------------

    def taint(
        self, broker_id: BrokerId, incarnation: int, where: Collection[TopicPartition] | None = None
    ) -> None:
        """What this broker's replicas (of these partitions) held in that incarnation may be gone: each is
        excused until it is counted again, in a later one, and without rot."""
        self.struck[broker_id] = incarnation
        for topic_partition in self.truths if where is None else where:
            truth = self.truths[topic_partition]
            if _may_hold(truth, broker_id):
                truth.tainted[broker_id] = incarnation

    def taint_new(self, truth: PartitionTruth, state: PartitionState) -> None:
        """A new partition counts whoever is registered, also a broker whose power was cut while its session
        lives on. It had nothing to lose there, but no restart can prove that."""
        for member in state.isr:
            struck = self.struck.get(member, -1)
            if state.isr_incarnations[member] <= struck:
                truth.tainted[member] = struck

    def lose_disk(self, broker_id: BrokerId, incarnation: int) -> None:
        """Nothing is left of what this broker's replicas held in that incarnation."""
        self.lost_disks[broker_id] = incarnation
        self.taint(broker_id, incarnation)
        self.expect_nothing(broker_id)

    def distrust(self, broker_id: BrokerId, where: Collection[TopicPartition], incarnation: int) -> None:
        """An fsync failed in the directory that these replicas are in: whoever elects one as the last may say
        that it is at a loss, until it is counted again, in a later incarnation. Nothing else is excused."""
        for topic_partition in where:
            truth = self.truths[topic_partition]
            if _may_hold(truth, broker_id):
                truth.distrusted[broker_id] = incarnation

    def excuse_no_longer(
        self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState
    ) -> None:
        """A later incarnation is counted. With a rotten batch it proves nothing: a start after a clean stop
        reads no batches, so the one after it may be the first to find the rot, and to end the log there. Nor
        does it where an fsync failed, and who was counted stayed so: that directory may have been offline at
        its start, and its failure told of only then."""
        for broker_id, incarnation in list(truth.tainted.items()):
            counted = state.isr_incarnations[broker_id] if broker_id in state.isr else -1
            if counted > incarnation and self.rots(broker_id, truth.topic_partition):
                truth.tainted[broker_id] = counted
            elif counted > incarnation:
                del truth.tainted[broker_id]
        stayed = () if before is None or state.lost_in_epoch > before.lost_in_epoch else before.isr
        for broker_id, incarnation in list(truth.distrusted.items()):
            is_counted = broker_id in state.isr and state.isr_incarnations[broker_id] > incarnation
            if is_counted and broker_id not in stayed:
                del truth.distrusted[broker_id]

    @staticmethod
    def excuse_no_longer_who_left(truth: PartitionTruth) -> None:
        """Replicas that were removed, and whose log is gone."""
        for excused in (truth.tainted, truth.distrusted):
            for broker_id in list(excused):
                if not _may_hold(truth, broker_id):
                    del excused[broker_id]

    # ---- what must be there --------------------------------------------------------------------------------

    def expect_what_was_synced(self, broker_id: BrokerId) -> None:
        """The power of this broker's machine goes: what it had synced must be there when it is back. Not
        where a batch has rotted: the next start reads it, and ends the log there. Nor where its log is on a
        disk that is there no more."""
        for truth in self.truths.values():
            view = truth.views.get(broker_id)
            if truth.is_thinned or self.rots(broker_id, truth.topic_partition):
                continue
            if view is not None and view.log is not None and view.log.disk.is_directory(view.log.directory):
                point = view.log.recovery_point
                view.synced = tuple(entry for entry in view.entries if entry.next_offset <= point)

    def expect_nothing(self, broker_id: BrokerId) -> None:
        """What was synced on this broker's disk is damaged, too."""
        self.has_damage = True
        for truth in self.truths.values():
            truth.view(broker_id).synced = ()

    @staticmethod
    def check_synced(truth: PartitionTruth, view: ReplicaView) -> None:
        """Raises ``Violation``."""
        synced, view.synced = view.synced, ()
        expected = [entry for entry in synced if entry.base_offset >= view.log_start]
        missing = set(expected).difference(view.entries)
        if missing:
            raise Violation(
                "SyncedSurvives",
                f"{truth.topic_partition}: broker {view.broker_id} lost {min(missing)}, which it had synced, "
                "in a power cut",
            )


def _may_hold(truth: PartitionTruth, broker_id: BrokerId) -> bool:
    """Whether it is a replica, or has the log still of one that it was: it may be added again with that."""
    view = truth.views.get(broker_id)
    return broker_id in truth.assignment.replicas or (view is not None and view.log is not None)
