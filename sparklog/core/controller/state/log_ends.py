"""The ends of replicas' logs in an epoch without a leader; they show the best of several unproven logs.

After a power cut of all hosts no member of the last ISR is proven, so no member may be elected unchecked. The
controller compares their logs instead. It sends LeaderAndIsr with leader -1 to all replicas, and each answers
with the last epoch and the end of its log, which does not change in an epoch without a leader. Once *every*
member of the last ISR and of the eligible set has answered, the greatest log (by last epoch, then by end) has
all remaining records, and its replica leads. The controller waits for missing answers, because a missing
replica may have more.

An answer belongs to one incarnation of a broker and to one leader epoch. A new controller, and a controller
that connects to a new incarnation, sends every replica its role anyway and gets the answers again. Answers
are therefore neither stored nor requested separately.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class LogEnd:
    """One replica's answer in ``leader_epoch``, which has no leader."""

    leader_epoch: LeaderEpoch
    last_epoch: int
    end_offset: int

    @property
    def rank(self) -> tuple[int, int]:
        """Of two logs of one partition, the greater has everything committed that the lesser has."""
        return self.last_epoch, self.end_offset

    def __str__(self) -> str:
        return f"offset {self.end_offset} in epoch {self.last_epoch}"


def ends_of(
    state: PartitionState, members: Iterable[BrokerId], reported: Mapping[BrokerId, LogEnd]
) -> dict[BrokerId, LogEnd]:
    """The ends that members reported in the current leader epoch, in the order of ``members``."""
    known = {}
    for member in members:
        end = reported.get(member)
        if end is not None and end.leader_epoch == state.leader_epoch and not state.has_leader:
            known[member] = end
    return known


def greatest(ends: Mapping[BrokerId, LogEnd]) -> BrokerId:
    """The replica with the greatest log; the first of equals."""
    return max(ends, key=lambda member: ends[member].rank)
