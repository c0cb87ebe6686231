"""The leader of a partition of which no counted replica is proven: the greatest log that can be known.

*Counted* are the members of the last ISR and the eligible replicas: they had everything committed. None of
them is alive and proven, so acknowledged records may be gone, and the replicas' reports of their logs decide
(``log_ends``). Replicas outside count as well: after the last ISR member's disk was emptied, they have the
most.

The election waits for the reports of
  1. every counted replica, dead or alive, because a dead one may have more than all others;
  2. every other live replica;
  3. every assigned replica, if each counted one is alive and has lost its disk since it was counted. No
  report
     of theirs says how much there was, and the first empty log to return would cut all others to nothing.
With ``unclean.leader.election.enable`` it waits for live replicas only, and for ``REPORT_WAIT_MS`` at most. A
demanded election ends each wait, and takes the greatest log that was reported.
"""

from collections.abc import Sequence
from typing import Final

from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.log_ends import LogEnd, ends_of, greatest
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId

REPORT_WAIT_MS: Final = 30_000
"""How long an unclean election waits for the reports of live replicas."""


def missing_reports(state: PartitionState, candidates: Candidates) -> list[BrokerId]:
    """The replicas whose reports a clean topic's election waits for, in assignment order."""
    counted = (*state.isr, *state.eligible)
    if all(candidates.has_lost_disk(member, state) for member in counted):
        awaited = set(state.replicas)
    else:
        awaited = {*counted, *_live(state, candidates)}
    return [
        member for member in state.replicas if member in awaited and member not in _ends(state, candidates)
    ]


def unproven_leader(
    state: PartitionState, candidates: Candidates, *, allows_unclean: bool
) -> tuple[BrokerId, str] | None:
    """The replica with the greatest log, and why records may be lost; None while reports are missing."""
    ends = _ends(state, candidates)
    is_unclean = bool(missing_reports(state, candidates))
    if is_unclean and not allows_unclean:
        return None
    awaits_live = is_unclean and not candidates.has_waited_enough
    if not ends or (awaits_live and len(ends) < len(_live(state, candidates))):
        return None
    leader = greatest(ends)
    why = f"unclean election of broker {leader}" if is_unclean else "no log was proven intact"
    others = ", ".join(f"broker {member}: {end}" for member, end in ends.items())
    return (
        leader,
        f"{why}; of the logs that were reported broker {leader} has the greatest and leads ({others})",
    )


def _ends(state: PartitionState, candidates: Candidates) -> dict[BrokerId, LogEnd]:
    """The reports of live replicas, in assignment order."""
    return ends_of(state, _live(state, candidates), candidates.log_ends)


def _live(state: PartitionState, candidates: Candidates) -> Sequence[BrokerId]:
    return [member for member in state.replicas if member in candidates.live]
