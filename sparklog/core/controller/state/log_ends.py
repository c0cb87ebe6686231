"""Where replicas' logs end while nobody leads: how the best of several unproven logs is found.

After a power cut of everything no member of the last ISR is proven, and none may be elected on trust. But
they can be compared. A partition without a leader is told so to all its replicas (LeaderAndIsr, leader -1),
and each answers with the last epoch and the end of its log, which stands still for as long as nobody leads.
Once *every* member of the last ISR and of the eligible set has answered, the greatest (last epoch first, then
end) has all that is left, and leads. While one is missing it may be the one that has more: wait.

An answer belongs to one incarnation of a broker and to one leader epoch. A controller that takes over, and
one that meets a broker anew, tells every replica its role in any case, so it is answered again: nothing has
to be kept, nor asked for separately.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class LogEnd:
    """One replica's answer; ``leader_epoch`` is that of the state without a leader that it was told."""

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
    state: PartitionState, members: Iterable[BrokerId], told: Mapping[BrokerId, LogEnd]
) -> dict[BrokerId, LogEnd]:
    """The members whose logs are known to end where they say, in the order given."""
    known = {}
    for member in members:
        end = told.get(member)
        if end is not None and end.leader_epoch == state.leader_epoch and not state.has_leader:
            known[member] = end
    return known


def greatest(ends: Mapping[BrokerId, LogEnd]) -> BrokerId:
    """Whose log is the greatest; the first of equals."""
    return max(ends, key=lambda member: ends[member].rank)
