"""Chooses a partition's leader and ISR from the live brokers and the logs that are proven intact.

``settle`` returns the state that a partition should have, or None if it has that state. It is
level-triggered: the event that made it necessary does not matter, nor how many events were missed.

The order of preference when the leader cannot go on (KIP-966 for the eligible replicas):
  1. ISR members that are alive, proven intact and not shutting down, in assignment order;
  2. ISR members that are alive, proven intact and shutting down: they lead for a short time;
  3. eligible replicas, alive and proven: they left the ISR when it fell below the minimum, and since then
     nothing could be committed without them;
  4. the greatest log of all live replicas, although it is not proven, once every report that counts is there
     (``unproven_choice``), or sooner if the topic allows unclean elections;
  5. no leader (-1). The ISR is kept as it was, so that its first proven member to return leads.
Elections by rule 4 may lose acknowledged records. They report that, and note it in the partition's state.

An ISR member is *proven* by its stored incarnation (``sparklog.core.controller.state.incarnation``). The list
alone proves nothing: a member that restarted with an unproven log stays listed while no better replica lives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.unproven_choice import unproven_leader
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import NO_LEADER, BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True)
class Rules:
    """The topic's settings for elections."""

    min_insync_replicas: int = 1
    allows_unclean: bool = False

    def min_isr(self, replicas: Sequence[BrokerId]) -> int:
        """At most the number of replicas: with a greater minimum no record would ever be committed."""
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
    """The state that follows, with a new leader epoch, or None if ``state`` can stay.

    A changed ``min.insync.replicas`` also begins a new epoch: which replicas are eligible follows from the
    minimum that the leader commits with, and so each epoch has one minimum.
    """
    proven = [member for member in state.isr if candidates.is_proven(member, state)]
    staying = [member for member in proven if member not in candidates.shutting_down] or proven
    if not staying:
        return _elect_outside_isr(state, candidates, rules)
    leader = state.leader
    if leader not in staying or candidates.has_restarted(leader, state):
        leader = _in_assignment_order(state, staying)[0]
    elif (
        tuple(staying) == state.isr
        and candidates.failed.isdisjoint(state.eligible)
        and state.min_insync_replicas == rules.min_insync_replicas
    ):
        return None
    return _elected(state, leader, staying, candidates, rules)


def initial_state(replicas: Sequence[BrokerId], candidates: Candidates, rules: Rules) -> Election | None:
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
        min_insync_replicas=rules.min_insync_replicas,
    )
    return Election(state, live)


def with_isr(state: PartitionState, isr: Sequence[BrokerId], candidates: Candidates) -> PartitionState:
    """The state after its leader's proposal was accepted: same leader and epoch, so the same minimum. All of
    ``isr`` are live.
    """
    rules = Rules(state.min_insync_replicas)
    return _follow_up(state, state.leader, state.leader_epoch, isr, candidates, rules)


def settle_unclean(state: PartitionState, candidates: Candidates, rules: Rules) -> Election | None:
    """The election of a partition without a leader that is demanded: it waits for no report."""
    hurried = replace(candidates, has_waited_enough=True)
    return settle(state, hurried, replace(rules, allows_unclean=True))


def settle_without_store(state: PartitionState, candidates: Candidates, rules: Rules) -> Election | None:
    """The election, demanded by an operator, whose leader does not ask the remote store for what it lacks.
    The leader of a partition that has one leads on. None if no replica can lead.
    """
    if not state.has_leader:
        election = settle_unclean(state, candidates, rules)
    else:
        proven = [member for member in state.isr if candidates.is_proven(member, state)]
        if state.leader not in proven:
            return None
        election = _elected(state, state.leader, proven, candidates, rules)
    if election is None or not election.state.has_leader:
        return None
    epoch = election.state.leader_epoch
    given_up = replace(election.state, lost_in_epoch=epoch, store_given_up_in_epoch=epoch)
    loss = election.loss or f"broker {given_up.leader} leads without the history in the remote store"
    return Election(given_up, election.relies_on, loss)


def hand_over(state: PartitionState, to: BrokerId, candidates: Candidates, rules: Rules) -> Election | None:
    """``to`` becomes the leader; None unless it is a proven member of the ISR that is not shutting down."""
    proven = [member for member in state.isr if candidates.is_proven(member, state)]
    if to not in proven or to in candidates.shutting_down:
        return None
    return _elected(state, to, proven, candidates, rules)


def move(
    state: PartitionState,
    replicas: Sequence[BrokerId],
    adding: Sequence[BrokerId],
    removing: Sequence[BrokerId],
    candidates: Candidates,
    rules: Rules,
) -> Election | None:
    """The partition with these replicas, in a new epoch; members that are not among them leave the
    ISR. None if no member of the ISR would be left to lead.
    """
    kept = replace(
        state,
        replicas=tuple(replicas),
        adding=tuple(adding),
        removing=tuple(removing),
        isr=tuple(member for member in state.isr if member in replicas),
        eligible=tuple(member for member in state.eligible if member in replicas),
    )
    proven = [member for member in kept.isr if candidates.is_proven(member, kept)]
    staying = [member for member in proven if member not in candidates.shutting_down] or proven
    if not staying:
        return None
    leader = kept.leader if kept.leader in staying else _in_assignment_order(kept, staying)[0]
    return _elected(kept, leader, staying, candidates, rules)


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
    unproven = unproven_leader(state, candidates, allows_unclean=rules.allows_unclean)
    if unproven is not None:
        return _lossy(state, *unproven, candidates, rules)
    if not state.has_leader:
        return None
    epoch = LeaderEpoch(state.leader_epoch + 1)
    waiting = replace(state, leader=NO_LEADER, leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
    return Election(waiting, ())


def _lossy(
    state: PartitionState, leader: BrokerId, loss: str, candidates: Candidates, rules: Rules
) -> Election:
    """The log of the new leader becomes the partition's log; no other replica is known to have it."""
    elected = replace(
        state,
        leader=leader,
        leader_epoch=LeaderEpoch(state.leader_epoch + 1),
        isr=(leader,),
        partition_epoch=state.partition_epoch + 1,
        eligible=(),
        isr_incarnations={leader: candidates.live[leader].number},
        min_insync_replicas=rules.min_insync_replicas,
        lost_in_epoch=LeaderEpoch(state.leader_epoch + 1),
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
        min_insync_replicas=rules.min_insync_replicas,
    )


def _eligible_after(
    state: PartitionState, isr: Sequence[BrokerId], candidates: Candidates, rules: Rules
) -> tuple[BrokerId, ...]:
    """The replicas outside the new ISR that have all committed records (KIP-966).

    While the ISR has its minimum, records are committed without the replicas outside, and none of those is
    eligible. Below the minimum nothing is committed, so replicas that were in the ISR or eligible before stay
    eligible, unless their log was lost since.
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
