"""The ends of replicas' logs in an epoch without a leader; they show the best of several unproven logs.

After a power cut of all hosts no member of the last ISR is proven, so no member may be elected unchecked. The
controller compares logs instead. It sends LeaderAndIsr with leader -1 to all replicas, and each answers with
the epoch of its last record and the end of its log, which do not change in an epoch without a leader. The
greatest log (by that epoch, then by end) has all remaining records, and its replica leads. An epoch that a
leader noted before its first record does not count: an emptied log that led once would seem greater than a
full one.

``leader_choice`` says for whose answers an election waits.

An answer belongs to one incarnation of a broker and to one leader epoch. A new controller, and a controller
that connects to a new incarnation, sends every replica its role anyway and gets the answers again. Answers
are therefore neither stored nor requested separately.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class LogEnd:
    """One replica's answer in ``leader_epoch``, which has no leader. ``last_epoch`` is that of its last
    record, -1 if the log never had a record; ``end_offset`` is exclusive.
    """

    leader_epoch: LeaderEpoch
    last_epoch: int
    end_offset: int

    @property
    def rank(self) -> tuple[int, int]:
        """The log with the greater rank has everything committed that another log of the partition has."""
        return self.last_epoch, self.end_offset

    def __str__(self) -> str:
        if self.last_epoch < 0:
            return f"no record, end {self.end_offset}"
        return f"end {self.end_offset}, last record of epoch {self.last_epoch}"


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
