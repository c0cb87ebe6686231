"""Counts of all partitions, kept while they change: a report of the cluster looks at no partition."""

from collections import Counter
from dataclasses import dataclass, field

from sparklog.core.controller.state.znodes import Assignment
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId


@dataclass(slots=True)
class PartitionCounts:
    """Counts every partition of every topic that is not being deleted. ``add`` what comes, ``remove`` what
    goes; a change is both.
    """

    partitions: int = 0
    under_replicated: int = 0
    """With a replica that is not in sync; also those without a state, which have no replica in sync."""
    led_by_another: int = 0
    """Led by another broker than their first replica, and not being moved."""
    moving: int = 0
    leaders: Counter[BrokerId] = field(default_factory=Counter)
    """By leader; those without one are counted at ``NO_LEADER``, those without a state nowhere."""
    replicas: Counter[BrokerId] = field(default_factory=Counter)
    in_sync: Counter[BrokerId] = field(default_factory=Counter)

    def add(self, assignment: Assignment, state: PartitionState | None) -> None:
        self._count(assignment, state, 1)

    def remove(self, assignment: Assignment, state: PartitionState | None) -> None:
        self._count(assignment, state, -1)

    def _count(self, assignment: Assignment, state: PartitionState | None, by: int) -> None:
        self.partitions += by
        if state is None:
            self.under_replicated += by
            for replica in assignment.replicas:
                self.replicas[replica] += by
            return
        self.leaders[state.leader] += by
        for replica in state.replicas:
            self.replicas[replica] += by
        for replica in state.isr:
            self.in_sync[replica] += by
        is_moving = bool(state.adding or state.removing)
        self.moving += by * is_moving
        self.under_replicated += by * (len(state.isr) < len(state.replicas))
        is_elsewhere = state.has_leader and state.leader != state.replicas[0] and not is_moving
        self.led_by_another += by * is_elsewhere
