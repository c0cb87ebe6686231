"""Leaders propose ISRs; the controller judges them, in Kafka's order (AlterPartition, KIP-497, 841, 903).

  1. unknown or other broker epoch              STALE_BROKER_EPOCH for the whole request
  2. an unknown topic or partition              UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
  3. epochs ahead of ours                       NOT_CONTROLLER: a newer controller knows more
  4. lower leader epoch                         FENCED_LEADER_EPOCH
  5. not its leader, empty, or without itself   INVALID_REQUEST
  6. equal to the present ISR                   success, before the version is compared: the reply to the
                                                first try was lost, and the retry has the old version
  7. lower partition epoch                      INVALID_UPDATE_VERSION
  8. a member that may not be counted           INELIGIBLE_REPLICA

A member may be counted if it is assigned, alive in exactly the incarnation that the leader saw (by epoch),
able to host the log, and not shutting down if it would join. A leader that no fetch of a member has reached
in this epoch sends epoch -1 for it: a proven member may stay with that, and no replica may join with it.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterPartitionResult,
    IsrAnswer,
    IsrProposal,
    ProposedMember,
)
from sparklog.core.controller.leaders.partition_writes import change_state, check_incarnations
from sparklog.core.controller.state.image import ClusterImage, PartitionChanged
from sparklog.core.controller.state.leader_choice import with_isr
from sparklog.core.controller.steps import ChangeIsrs, Decision
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerId, TopicPartition
from sparklog.model.zookeeper import Operation

PROPOSALS_PER_WRITE_MAX: Final = 500
"""Further proposals are answered with OPERATION_NOT_ATTEMPTED, and their leader sends them again."""


@dataclass(slots=True)
class Verdict:
    """The judged request. ``answers`` hold once ``changes`` are written."""

    answers: list[IsrAnswer] = field(default_factory=list)
    changes: list[PartitionChanged] = field(default_factory=list)


def decide_isrs(image: ClusterImage, step: ChangeIsrs) -> Decision | AlterPartitionResult:
    """What to write, or the answer if there is nothing to write."""
    request = step.request
    if not image.is_current(request.broker, request.broker_epoch):
        return AlterPartitionResult(ErrorCode.stale_broker_epoch)
    verdict = Verdict()
    for proposal in request.proposals:
        _judge_into(verdict, image, request, proposal)
    result = AlterPartitionResult(ErrorCode.none, tuple(verdict.answers))
    if not verdict.changes:
        return result
    members = {member for change in verdict.changes for member in change.state.isr}
    operations: list[Operation] = check_incarnations(image, members)
    for change in verdict.changes:
        before = image.state(change.partition)
        assert before is not None, change
        operations.append(change_state(image, change.partition, before, change.state))
    return Decision(step, tuple(operations), tuple(verdict.changes), result)


def _judge_into(
    verdict: Verdict, image: ClusterImage, request: AlterPartition, proposal: IsrProposal
) -> None:
    outcome = _judge(image, request, proposal)
    if isinstance(outcome, ErrorCode):
        verdict.answers.append(IsrAnswer(proposal.topic_id, proposal.partition, outcome))
        return
    partition = TopicPartition(image.topic_names[proposal.topic_id], proposal.partition)
    if outcome is not image.state(partition):
        if len(verdict.changes) == PROPOSALS_PER_WRITE_MAX:
            late = ErrorCode.operation_not_attempted
            verdict.answers.append(IsrAnswer(proposal.topic_id, proposal.partition, late))
            return
        verdict.changes.append(PartitionChanged(partition, outcome, roles_changed=False))
    verdict.answers.append(IsrAnswer(proposal.topic_id, proposal.partition, ErrorCode.none, outcome))


def _judge(image: ClusterImage, request: AlterPartition, proposal: IsrProposal) -> PartitionState | ErrorCode:
    """The new state (the present object if nothing changes), or the error."""
    name = image.topic_names.get(proposal.topic_id)
    if name is None or image.is_deleting(name):
        return ErrorCode.unknown_topic_id
    partition = TopicPartition(name, proposal.partition)
    state = image.state(partition)
    if state is None:
        return ErrorCode.unknown_topic_or_partition
    if proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch:
        return ErrorCode.not_controller
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    members = proposal.members
    if state.leader != request.broker or state.leader not in members or len(set(members)) < len(members):
        return ErrorCode.invalid_request
    if set(members) == set(state.isr):
        return state
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    if not all(_may_be_counted(image, partition, state, member) for member in proposal.isr):
        return ErrorCode.ineligible_replica
    return with_isr(state, members, image.candidates(partition))


def _may_be_counted(
    image: ClusterImage, partition: TopicPartition, state: PartitionState, member: ProposedMember
) -> bool:
    if member.broker not in state.replicas or not _is_live(image, partition, member.broker):
        return False
    stays = member.broker in state.isr
    if member.epoch == NO_BROKER_EPOCH:
        return stays and image.candidates(partition).is_proven(member.broker, state)
    if not image.is_current(member.broker, member.epoch):
        return False
    return stays or member.broker not in image.shutting_down


def _is_live(image: ClusterImage, partition: TopicPartition, broker: BrokerId) -> bool:
    return broker in image.brokers and partition not in image.offline.get(broker, ())
