"""What the committed log of ``__transaction_state`` has decided of the members of atomic writes.

Markers follow decisions: a marker that is committed before the record that decides it could say otherwise
than the next coordinator, which knows the record alone.
"""

from dataclasses import dataclass, field

from simulation.invariants.coordinator_logs import records_in
from simulation.truth import Entry, ReplicaView
from sparklog.core.write_coordinator.records import Head, Member, MemberKey
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.write_ids import producer_id_of, write_and_member
from sparklog.model.write_outcomes import MemberState


@dataclass(slots=True)
class WriteDecisions:
    """All that was ever decided. Writes are known by their numbers."""

    _winners: dict[int, frozenset[int]] = field(default_factory=dict)
    _aborted_writes: set[int] = field(default_factory=set)
    _aborted_runs: set[tuple[int, str]] = field(default_factory=set)
    _aborted_members: set[int] = field(default_factory=set)
    """By producer id."""

    def take(self, leader: ReplicaView, entry: Entry) -> None:
        """A batch of that topic is committed."""
        assert leader.log is not None
        for record in records_in(leader.log, entry, TRANSACTION_STATE_TOPIC):
            key, value = record.key, record.value
            if isinstance(value, Head):
                self._take_head(value)
            elif isinstance(value, Member) and value.state is MemberState.ABORTED:
                assert isinstance(key, MemberKey), key
                self._aborted_members.add(producer_id_of(key.write_number, key.member_number))

    def _take_head(self, head: Head) -> None:
        if head.state is AppState.PREPARED_COMMIT:
            self._winners[head.write_number] = head.winners
        elif head.state is AppState.PREPARED_ABORT:
            self._aborted_writes.add(head.write_number)
        self._aborted_runs.update((head.write_number, run) for run in head.aborted_runs)

    def is_decided(self, producer_id: int, run: str, *, is_commit: bool) -> bool:
        """Whether a marker of a member of that run may say so."""
        write, number = write_and_member(producer_id)
        winners = self._winners.get(write)
        if is_commit:
            return winners is not None and number in winners
        return (
            (winners is not None and number not in winners)
            or write in self._aborted_writes
            or (write, run) in self._aborted_runs
            or producer_id in self._aborted_members
        )
