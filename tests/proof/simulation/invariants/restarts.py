"""What a broker must know again when it starts, and what it may not believe."""

from dataclasses import dataclass, field

from simulation.invariants.invariant import Invariant
from simulation.truth import PartitionTruth
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import BrokerId, TopicId


@dataclass(slots=True)
class RemembersWhatIsCommitted(Invariant):
    """What a replica knew to be committed when its broker started, it knows when it starts again, as far as
    its log reaches: a checkpoint that had it is not followed by one that has not.

    Power cuts and rot may cost a checkpoint, and elections that lose records take back what was committed.
    A cut of the log lowers it first: who dies then knows as much as the cut would have left, though all of
    its log may be there.
    """

    checkpoints_rot: bool = False
    _known: dict[tuple[BrokerId, TopicId, int], int] = field(default_factory=dict)

    def on_start(
        self,
        truth: PartitionTruth,
        broker_id: BrokerId,
        partition: Partition,
        *,
        end_before: int,
        was_struck: bool,
    ) -> None:
        """A log was opened; ``end_before`` is where it ended for the process that had it before, which may
        have died in the middle of a cut. ``was_struck``: this broker's disk may have lost something once."""
        key = broker_id, truth.topic_id, truth.topic_partition.partition
        before, now = self._known.get(key, 0), partition.high_watermark
        self._known[key] = now
        is_excused = was_struck or self.checkpoints_rot or truth.lossy_epoch >= 0
        if now < min(before, end_before, partition.log_end_offset) and not is_excused:
            raise self.broken(
                truth,
                f"broker {broker_id} starts with high watermark {now}, and a log up to "
                f"{partition.log_end_offset}; when it started before, it knew {before}",
            )


@dataclass(slots=True)
class OnlyDamageIsCalledDamage(Invariant):
    """A start that finds a log damaged is right: a replica that nothing has befallen is not taken out of the
    ISR, and its broker does not count as one that lost something.
    """

    def on_start(
        self, truth: PartitionTruth, broker_id: BrokerId, partition: Partition, *, may_be_damaged: bool
    ) -> None:
        """A log was opened; ``may_be_damaged``: this broker's disk may have lost or spoilt something once."""
        found = partition.log.corruption
        if found is not None and not may_be_damaged:
            raise self.broken(
                truth, f"broker {broker_id} calls its log damaged, which nothing has touched: {found.reason}"
            )
