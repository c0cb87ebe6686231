"""Elections lose records only where they may, and then take the greatest log that can be known.

The rule knows by itself which records logs have and which disks were emptied. It asks neither the replicas'
reports nor the incarnations that brokers write.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.invariant import Invariant
from simulation.truth import PartitionTruth, ReplicaView
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, TopicId

Rank = tuple[int, int]
"""The epoch of a log's last record, then its end (exclusive); of two logs the greater one has more."""

WAITS_MS: Final = 25_000
"""An unclean election waits for reports of live replicas for longer than that, on any clock that drifts."""


def ranks_of(view: ReplicaView) -> tuple[Rank, Rank]:
    """The least and the greatest rank that a log may have. They differ where every record was removed, and no
    epoch is known of the last one: a leader that had it may have noted a later epoch.
    """
    end = view.end_offset
    if view.entries and view.entries[-1].next_offset == end:
        rank = view.entries[-1].leader_epoch, end
        return rank, rank
    if view.log is None or not end:
        return (-1, end), (-1, end)
    epochs = view.log.epochs
    known = epochs.epoch_at(end - 1)  # compacted away, or in a remote store
    return (known, end), (known if known >= 0 else epochs.latest_epoch, end)


@dataclass(slots=True)
class NoElectionLoses(Invariant):
    """An election loses records only while the topic, or an administrator, allows it, or when nobody's log is
    proven; and then the greatest of those that may have them leads. It says so in the partition's state.

    That a replica is unproven costs a warning even if it has everything, so it takes a reason: a fault that
    may have cost it records, or an fsync that failed in its very directory.

    The greatest is that of the counted replicas (the last ISR and the eligible), dead or alive, and of every
    other live one that was told of the epoch without a leader: a broker that no controller can know yet does
    not count. If each counted one lost its disk, it is the greatest of all replicas. Where the topic allows
    unclean elections, it is the greatest of the live ones. Whose reports were there when an administrator
    demanded an election is unknown, so that is not judged.

    ``lost_disks``: the last incarnation of each broker whose disk was emptied.
    """

    lost_disks: Mapping[BrokerId, int] = field(default_factory=dict)
    is_registered: Callable[[BrokerId], bool] = lambda broker: False
    now_ms: Callable[[], int] = lambda: 0
    _leaderless_since_ms: dict[tuple[TopicId, int], int] = field(default_factory=dict)

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        partition = truth.topic_id, truth.topic_partition.partition
        if before is not None and state.lost_in_epoch > before.lost_in_epoch:
            waited_ms = self.now_ms() - self._leaderless_since_ms.get(partition, self.now_ms())
            self._check(truth, before, state, waited_ms)
        if state.has_leader:
            self._leaderless_since_ms.pop(partition, None)
        else:
            self._leaderless_since_ms.setdefault(partition, self.now_ms())

    def _check(
        self, truth: PartitionTruth, before: PartitionState, state: PartitionState, waited_ms: int
    ) -> None:
        told = self._told(truth, before)
        if truth.was_allowed:
            if not truth.is_demanded(self.now_ms()) and waited_ms < WAITS_MS:
                self._check_greatest(truth, state, told)
            return
        counted = (*before.isr, *before.eligible)
        excused = truth.tainted.keys() | truth.distrusted.keys()
        proven = [member for member in counted if member not in excused]
        if proven:
            raise self.broken(
                truth, f"broker {state.leader} was elected at a loss; brokers {proven} had lost nothing"
            )
        has_nothing = all(self._has_lost_disk(member, before) for member in counted)
        self._check_greatest(truth, state, before.replicas if has_nothing else (*counted, *told))

    def _told(self, truth: PartitionTruth, before: PartitionState) -> list[BrokerId]:
        """The live replicas that know of the epoch without a leader; a controller that told them waits for
        their answers.
        """
        return [
            member
            for member in before.replicas
            if self.is_registered(member) and _knows(truth.view(member), before.leader_epoch)
        ]

    def _has_lost_disk(self, member: BrokerId, before: PartitionState) -> bool:
        """Whether its disk was emptied since it was counted."""
        lost_in = self.lost_disks.get(member)
        return lost_in is not None and before.isr_incarnations.get(member, -1) <= lost_in

    def _check_greatest(
        self, truth: PartitionTruth, state: PartitionState, compared: Collection[BrokerId]
    ) -> None:
        _, most = ranks_of(truth.view(state.leader))
        for member in compared:
            least, _ = ranks_of(truth.view(member))
            if least > most:
                raise self.broken(
                    truth,
                    f"broker {state.leader} was elected with a log of (last epoch, end) {most}; "
                    f"broker {member} has one of {least}",
                )


def _knows(view: ReplicaView, leader_epoch: int) -> bool:
    """Whether the broker's present process has this log, and was told of the epoch."""
    partition = view.partition
    return partition is not None and not partition.is_offline and partition.leader_epoch == leader_epoch
