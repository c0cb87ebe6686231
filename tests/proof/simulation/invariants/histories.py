"""The history in a remote store counts as a replica: what it has of the committed log, no election loses.

A leader that was elected at a loss compares its log with the history before it serves anybody. If it lacks a
part, and has no record of a later epoch than the last copy, it begins anew at the history's end. If it has
one, the history is cut behind what it shares. Where an operator gave the store up, nobody asks it.
"""

from bisect import bisect_right

from simulation.truth import Entry, PartitionTruth, ReplicaView


def kept_by_history(truth: PartitionTruth, elected: ReplicaView) -> int:
    """How many of the first committed batches stay because the store has them; 0 where it has another log."""
    if not _counts(truth, elected):
        return 0
    last = truth.stored[-1]
    kept = bisect_right(truth.committed, last.next_offset, key=lambda entry: entry.next_offset)
    stored = set(truth.stored)
    start = max(truth.stored_start, truth.start_max)
    there = (one in stored for one in truth.committed[:kept] if one.next_offset > start)
    return kept if all(there) else 0


def revived_by_history(truth: PartitionTruth, elected: ReplicaView) -> list[Entry]:
    """Batches of the history, behind all that is committed: an election without the store lost them, its
    leader ended before it wrote a record, and the next leader begins anew at the history's end.
    """
    end = truth.committed_end
    if not _counts(truth, elected) or truth.stored[0].base_offset > max(end, truth.stored_start):
        return []
    return [one for one in truth.stored if one.base_offset >= end and truth.was_lost(one)]


def awaits_history(truth: PartitionTruth, view: ReplicaView) -> bool:
    """Whether a leader that was elected at a loss may lack what the history has: it serves nobody yet. A
    record of its own is a sign that it does.
    """
    state = truth.state
    if truth.lossy_epoch < 0 or state is None or not truth.stored or _is_given_up(truth):
        return False
    has_served = bool(view.entries) and view.entries[-1].leader_epoch >= truth.lossy_epoch
    is_alone = state.isr == (view.member,)
    return is_alone and not has_served and view.shared_end < truth.stored[-1].next_offset


def _counts(truth: PartitionTruth, elected: ReplicaView) -> bool:
    """Whether the elected leader takes what the history has: it has no record of a later epoch than that."""
    if not truth.stored or _is_given_up(truth):
        return False
    return not elected.entries or elected.entries[-1].leader_epoch <= truth.stored[-1].leader_epoch


def _is_given_up(truth: PartitionTruth) -> bool:
    """Whether the last election at a loss was demanded without the store."""
    state = truth.state
    return state is not None and state.store_given_up_in_epoch >= max(state.lost_in_epoch, 0)
