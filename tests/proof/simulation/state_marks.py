"""Which marks (``marks.py``) changes of logs, of partitions' states and of controllers reach."""

from collections.abc import Collection

from simulation.marks import Marks
from simulation.truth import PartitionTruth, ReplicaView
from sparklog.core.controller.state.znodes import DELETE_TOPICS
from sparklog.core.replication.isr import pending_proposal
from sparklog.model.cluster_facts import PartitionState
from sparklog.testing.memory_zookeeper import ZooKeeperTree


def mark_log(
    marks: Marks, truth: PartitionTruth, view: ReplicaView, *, end_before: int, starts_before: tuple[int, int]
) -> None:
    """The same log as before, with other ends (both exclusive at the end). ``starts_before``: for readers,
    and on the disk.
    """
    history_before, disk_before = starts_before
    if view.end_offset < end_before:
        marks.reach("a follower cut its log")
    if view.log_start > max(disk_before, view.history_start):
        is_anew = view.log_start > end_before
        marks.reach("a follower began anew behind a history" if is_anew else "segments left a disk")
    if view.history_start > history_before:
        marks.reach("a log's start was raised")
        if view.history_start > end_before:
            marks.reach("a follower began anew where the leader's log begins")
        elif truth.deleted_end < view.history_start:
            marks.reach("retention removed committed records")


def mark_state(
    marks: Marks, truth: PartitionTruth, before: PartitionState | None, state: PartitionState
) -> None:
    """``before`` is ``None`` for a partition that is new."""
    if not state.has_leader:
        marks.reach("a partition had no leader")
    if len(state.isr) == 1:
        marks.reach("an ISR of one")
    if len(state.isr) < state.min_insync_replicas:
        marks.reach("an ISR below the minimum")
    if before is None:
        return
    if before.leader != state.leader:
        _mark_election(marks, truth, before, state)
    if state.lost_in_epoch > before.lost_in_epoch and state.leader not in (*before.isr, *before.eligible):
        marks.reach("a replica that did not count had the greatest log")
    if state.has_leader and state.leader in before.eligible and state.leader not in before.isr:
        marks.reach("an eligible replica was elected")
    if state.min_insync_replicas != before.min_insync_replicas:
        raised = state.min_insync_replicas > before.min_insync_replicas
        marks.reach("a minimum was raised" if raised else "a minimum was lowered")
    _mark_move(marks, before, state)


def _mark_election(
    marks: Marks, truth: PartitionTruth, before: PartitionState, state: PartitionState
) -> None:
    if before.has_leader and truth.assignment.replicas[:1] == (state.leader,):
        is_same = before.isr == state.isr and before.replicas == state.replicas
        if is_same and before.leader in state.isr:
            marks.reach("a preferred election moved a leader")
    if _has_pending_change(truth.views.get(before.leader)):
        marks.reach("a leader changed while a change of its ISR was pending")


def _mark_move(marks: Marks, before: PartitionState, state: PartitionState) -> None:
    was, now = (before.adding, before.removing), (state.adding, state.removing)
    if was == now:
        return
    if was == ((), ()):
        marks.reach("a move began")
    elif now != ((), ()):
        marks.reach("a move was given another target")
    elif set(state.replicas) == set(before.replicas) - set(before.adding):
        marks.reach("a move was cancelled")
    else:
        marks.reach("a move was finished")
    if before.leader != state.leader:
        marks.reach("a move changed the leader")


def mark_take_over(marks: Marks, truths: Collection[PartitionTruth], tree: ZooKeeperTree) -> None:
    """There is another controller."""
    marks.reach("a controller took over")
    if any(one.assignment.adding or one.assignment.removing for one in truths):
        marks.reach("a controller took over with a move under way")
    if tree.exists(DELETE_TOPICS) is not None and tree.children(DELETE_TOPICS):
        marks.reach("a controller took over with a topic being deleted")


def _has_pending_change(view: ReplicaView | None) -> bool:
    leader = None if view is None or view.partition is None else view.partition._replica.leader
    return leader is not None and pending_proposal(leader.isr) is not None
