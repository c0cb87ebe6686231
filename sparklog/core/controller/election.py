"""Who leads a partition, and who is in its ISR, given who is alive and whose log is proven intact.

``settle`` looks at one partition and returns the state that it should have, or None if it has it already.
It is level-triggered: it does not matter which event made it necessary, or how many events were missed.

The order of preference when the leader cannot go on (KIP-966 for the eligible replicas):
  1. ISR members that are alive, proven intact and not shutting down, in assignment order;
  2. ISR members that are alive, proven intact and shutting down: better a short leader than none;
  3. eligible replicas, alive and proven: they left the ISR when it fell below the minimum, and since then
     nothing could be committed without them;
  4. if the topic allows unclean elections: any live replica, those of the ISR first;
  5. the only replica that may hold everything committed, although a restart proves nothing about it: there
     is nobody to compare it with and nothing to wait for;
  6. nobody: leader -1, and the ISR is kept as it was, never emptied, so that its first proven member to
     return leads.
4 and 5 may lose acknowledged records, and say so.

An ISR member is *proven* by its stored incarnation (``sparklog.core.controller.incarnation``), not by being
listed: a member that restarted with an unproven log may stay listed while nobody better is alive.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from sparklog.core.controller.incarnation import StoredIncarnation
from sparklog.model.cluster import PartitionState
from sparklog.model.ids import NO_LEADER, BrokerId, LeaderEpoch

UNCOUNTED = -1
"""The incarnation of a member that was never counted: it proves nothing."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who may take part in an election of one partition: the live brokers that can host it.

    ``failed`` are live brokers whose log of this partition is broken: what it held may be gone.
    """

    live: Mapping[BrokerId, StoredIncarnation]
    shutting_down: AbstractSet[BrokerId] = frozenset()
    failed: AbstractSet[BrokerId] = frozenset()

    def is_proven(self, member: BrokerId, state: PartitionState) -> bool:
        """Alive, and its log still holds what it held when the state last counted it."""
        stored = self.live.get(member)
        return stored is not None and stored.record.proves(state.isr_incarnations.get(member, UNCOUNTED))

    def is_unproven(self, member: BrokerId, state: PartitionState) -> bool:
        """Alive, and known not to be proven. (A dead broker is neither.)"""
        return member in self.failed or (member in self.live and not self.is_proven(member, state))

    def has_restarted(self, member: BrokerId, state: PartitionState) -> bool:
        stored = self.live.get(member)
        return stored is not None and stored.number != state.isr_incarnations.get(member, UNCOUNTED)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the topic's settings say about elections."""

    min_insync_replicas: int = 1
    allows_unclean: bool = False

    def min_isr(self, replicas: Sequence[BrokerId]) -> int:
        """No more than there are replicas: a higher setting would never let anything be committed."""
        return min(self.min_insync_replicas, len(replicas))


@dataclass(frozen=True, slots=True)
class Election:
    """A new state. ``relies_on`` are the members whose incarnations the write must check.

    ``loss`` says why acknowledged records may be gone; empty for a clean election.
    """

    state: PartitionState
    relies_on: tuple[BrokerId, ...]
    loss: str = field(default="")


def settle(state: PartitionState, candidates: Candidates, rules: Rules) -> Election | None:
    """The state that follows, with a new leader epoch, or None if ``state`` can stay."""
    proven = [member for member in state.isr if candidates.is_proven(member, state)]
    staying = [member for member in proven if member not in candidates.shutting_down] or proven
    if not staying:
        return _elect_outside_isr(state, candidates, rules)
    leader = state.leader
    if leader not in staying or candidates.has_restarted(leader, state):
        leader = _in_assignment_order(state, staying)[0]
    elif tuple(staying) == state.isr and candidates.failed.isdisjoint(state.eligible):
        return None
    return _elected(state, leader, staying, candidates, rules)


def initial_state(replicas: Sequence[BrokerId], candidates: Candidates) -> Election | None:
    """The first state of a new partition: led by its first live replica; None while all of them are dead."""
    live = tuple(
        member for member in replicas if member in candidates.live and member not in candidates.shutting_down
    )
    if not live:
        return None
    state = PartitionState(
        leader=live[0],
        leader_epoch=LeaderEpoch(0),
        isr=live,
        replicas=tuple(replicas),
        isr_incarnations={member: candidates.live[member].number for member in live},
    )
    return Election(state, live)


def with_isr(
    state: PartitionState, isr: Sequence[BrokerId], candidates: Candidates, rules: Rules
) -> PartitionState:
    """The state after its leader's proposal was accepted: same leader and epoch. All of ``isr`` are live."""
    return _follow_up(state, state.leader, state.leader_epoch, isr, candidates, rules)


def _elected(
    state: PartitionState, leader: BrokerId, isr: Sequence[BrokerId], candidates: Candidates, rules: Rules
) -> Election:
    epoch = LeaderEpoch(state.leader_epoch + 1)
    return Election(_follow_up(state, leader, epoch, isr, candidates, rules), tuple(isr))


def _elect_outside_isr(state: PartitionState, candidates: Candidates, rules: Rules) -> Election | None:
    eligible = [member for member in state.eligible if candidates.is_proven(member, state)]
    if eligible:
        leader = _longest_living(state, eligible, candidates)
        return _elected(state, leader, (leader,), candidates, rules)
    known = (*state.isr, *state.eligible)
    if rules.allows_unclean:
        unclean = _unclean_leader(state, known, candidates)
        if unclean is not None:
            return _lossy(state, unclean, candidates, f"unclean election of broker {unclean}")
    elif len(known) == 1 and known[0] in candidates.live:
        reason = f"broker {known[0]} leads although its restart did not prove its log intact; no other can"
        return _lossy(state, known[0], candidates, reason)
    if not state.has_leader:
        return None
    epoch = LeaderEpoch(state.leader_epoch + 1)
    waiting = replace(state, leader=NO_LEADER, leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
    return Election(waiting, ())


def _unclean_leader(
    state: PartitionState, known: Sequence[BrokerId], candidates: Candidates
) -> BrokerId | None:
    """Those that may hold more come first: of the ISR, then eligible, then any replica."""
    for group in (state.isr, known, state.replicas):
        live = [member for member in group if member in candidates.live]
        if live:
            return _longest_living(state, live, candidates)
    return None


def _lossy(state: PartitionState, leader: BrokerId, candidates: Candidates, loss: str) -> Election:
    """Whatever the new leader has is the truth from here on; nobody else is known to have it."""
    elected = replace(
        state,
        leader=leader,
        leader_epoch=LeaderEpoch(state.leader_epoch + 1),
        isr=(leader,),
        partition_epoch=state.partition_epoch + 1,
        eligible=(),
        isr_incarnations={leader: candidates.live[leader].number},
    )
    return Election(elected, (leader,), loss)


def _follow_up(
    state: PartitionState,
    leader: BrokerId,
    leader_epoch: LeaderEpoch,
    isr: Sequence[BrokerId],
    candidates: Candidates,
    rules: Rules,
) -> PartitionState:
    """The members of ``isr``, all live, are counted at their present incarnation."""
    eligible = _eligible_after(state, isr, candidates, rules)
    incarnations = {member: candidates.live[member].number for member in isr}
    incarnations.update({member: state.isr_incarnations[member] for member in eligible})
    return replace(
        state,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=tuple(isr),
        partition_epoch=state.partition_epoch + 1,
        eligible=eligible,
        isr_incarnations=incarnations,
    )


def _eligible_after(
    state: PartitionState, isr: Sequence[BrokerId], candidates: Candidates, rules: Rules
) -> tuple[BrokerId, ...]:
    """Who holds everything committed though outside the new ISR (KIP-966).

    While the ISR has its minimum, commits go on without those outside, and nobody there is eligible. Below
    it nothing is committed, so whoever was in the ISR or eligible before stays eligible, unless its log has
    since been lost.
    """
    if len(isr) >= rules.min_isr(state.replicas):
        return ()
    return tuple(
        member
        for member in (*state.isr, *state.eligible)
        if member not in isr
        and member in state.isr_incarnations
        and not candidates.is_unproven(member, state)
    )


def _in_assignment_order(state: PartitionState, members: Iterable[BrokerId]) -> list[BrokerId]:
    order = {member: position for position, member in enumerate(state.replicas)}
    return sorted(members, key=lambda member: order.get(member, len(order)))


def _longest_living(state: PartitionState, members: Sequence[BrokerId], candidates: Candidates) -> BrokerId:
    """The first in assignment order that is not shutting down, or the first if all of them are."""
    ordered = _in_assignment_order(state, members)
    return next((member for member in ordered if member not in candidates.shutting_down), ordered[0])
