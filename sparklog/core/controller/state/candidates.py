"""The replicas that an election of one partition may choose from, and what is known of their logs."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sparklog.core.controller.state.incarnation import LogId, StoredIncarnation
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId

UNCOUNTED = -1
"""The incarnation of a member that was never counted. It proves nothing."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who may take part in an election of one partition: the live brokers that can host it.

    ``failed`` are live brokers whose log of this partition is broken: its records may be lost. ``log_ends``
    are the ends of the logs that brokers reported since the partition has no leader. ``log`` is the
    partition's log, because some incarnations prove certain logs only. ``has_waited_enough``: an unclean
    election waits for no more reports.
    """

    live: Mapping[BrokerId, StoredIncarnation]
    shutting_down: AbstractSet[BrokerId] = frozenset()
    failed: AbstractSet[BrokerId] = frozenset()
    log_ends: Mapping[BrokerId, LogEnd] = field(default_factory=dict)
    log: LogId | None = None
    has_waited_enough: bool = False

    def is_proven(self, member: BrokerId, state: PartitionState) -> bool:
        """Whether it is alive, and its log has all records that it had when it was last counted."""
        stored = self.live.get(member)
        counted_at = state.isr_incarnations.get(member, UNCOUNTED)
        return stored is not None and stored.record.proves(counted_at, self.log)

    def is_unproven(self, member: BrokerId, state: PartitionState) -> bool:
        """Whether it is alive and not proven. (A dead broker is neither proven nor unproven.)"""
        return member in self.failed or (member in self.live and not self.is_proven(member, state))

    def has_lost_disk(self, member: BrokerId, state: PartitionState) -> bool:
        """Whether it is alive, and the disk of its log was emptied or replaced since it was last counted."""
        stored = self.live.get(member)
        counted_at = state.isr_incarnations.get(member, UNCOUNTED)
        return stored is not None and not stored.record.keeps(counted_at, self.log)

    def has_restarted(self, member: BrokerId, state: PartitionState) -> bool:
        stored = self.live.get(member)
        return stored is not None and stored.number != state.isr_incarnations.get(member, UNCOUNTED)
