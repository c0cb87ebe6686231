"""What holds for every state of a partition that the controller writes, and from one to the next."""

from sparklog.core.controller.state.leader_choice import Rules
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import TopicPartition


def check_partition(partition: TopicPartition, state: PartitionState) -> None:
    """What holds for every state that the controller ever writes."""
    isr, eligible = set(state.isr), set(state.eligible)
    assert isr, f"{partition}: the ISR is empty: {state}"
    assert len(isr) == len(state.isr), f"{partition}: a member is listed twice: {state}"
    assert isr <= set(state.replicas), f"{partition}: an ISR member is not assigned: {state}"
    assert not state.has_leader or state.leader in isr, f"{partition}: the leader is not in the ISR: {state}"
    assert isr <= state.isr_incarnations.keys(), f"{partition}: a member was never counted: {state}"
    assert eligible <= state.isr_incarnations.keys(), f"{partition}: an eligible was never counted: {state}"
    assert state.store_given_up_in_epoch <= state.lost_in_epoch <= state.leader_epoch, (
        f"{partition}: a loss is still to come, or its reason: {state}"
    )
    assert not eligible & isr, f"{partition}: an ISR member is listed as eligible: {state}"
    assert not eligible or len(isr) < Rules(state.min_insync_replicas).min_isr(state.replicas), (
        f"{partition}: eligible replicas beside a sufficient ISR: {state}"
    )


def follows(before: PartitionState | None, after: PartitionState) -> bool:
    """Whether ``after`` may replace ``before``: epochs only grow, every write is one version, and a leader's
    epoch has one set of replicas and one minimum.
    """
    if before is None:
        return after.leader_epoch == 0 and after.partition_epoch == 0
    if after.partition_epoch != before.partition_epoch + 1 or after.leader_epoch < before.leader_epoch:
        return False
    if after.leader_epoch > before.leader_epoch:
        return True
    return _of_the_epoch(after) == _of_the_epoch(before)


def _of_the_epoch(state: PartitionState) -> tuple[object, ...]:
    return state.leader, state.replicas, state.adding, state.removing, state.min_insync_replicas
