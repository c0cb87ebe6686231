"""From a step to what must be written for it, or to actions if nothing must be written."""

from itertools import islice
from typing import assert_never

from sparklog.core.controller.acls.acl_changes import decide_acls
from sparklog.core.controller.actions import Action, Answer, WakeAt
from sparklog.core.controller.commands.controller_command import CommandId, Result
from sparklog.core.controller.commands.user_commands import DescribeUsers
from sparklog.core.controller.leaders.isr_changes import decide_isrs
from sparklog.core.controller.leaders.leader_moves import decide_leaders
from sparklog.core.controller.leaders.partition_writes import PARTITIONS_PER_WRITE_MAX, decide_elections
from sparklog.core.controller.operations.begin import decide_begin
from sparklog.core.controller.operations.cancelling import decide_cancel
from sparklog.core.controller.operations.planned_moves import decide_plan
from sparklog.core.controller.pipeline.broker_steps import (
    fail_brokers,
    finish_shutdown,
    remove_registration,
    start_brokers,
)
from sparklog.core.controller.pipeline.known_brokers import decide_notes
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.pipeline.waiting_commands import METADATA_PATIENCE_MS, WaitingCreation
from sparklog.core.controller.producer_id_blocks import decide_block
from sparklog.core.controller.quotas.quota_changes import decide_quotas
from sparklog.core.controller.quotas.quota_questions import describe_quotas
from sparklog.core.controller.steps import (
    AddPartitions,
    AdvanceOperation,
    AllocateIds,
    ApplyAcls,
    ApplyConfigs,
    ApplyQuotas,
    ApplyUsers,
    BeginOperation,
    CancelOperationStep,
    ChangeIsrs,
    ChangeSchema,
    CreateTopic,
    Decision,
    DescribeEntities,
    Elect,
    FailBrokers,
    FinishCreation,
    FinishDeletion,
    FinishSchemaChange,
    FinishShutdown,
    MoveLeaders,
    NoteBrokers,
    PurgeTopic,
    Reassign,
    RemoveRegistration,
    StartBrokers,
    StartDeletion,
    Step,
)
from sparklog.core.controller.topics.config_changes import decide_configs
from sparklog.core.controller.topics.partition_increase import decide_increase
from sparklog.core.controller.topics.schema_changes import decide_schema
from sparklog.core.controller.topics.topic_creation import decide_topic
from sparklog.core.controller.topics.topic_deletion import decide_deletion, decide_purge
from sparklog.core.controller.users.user_changes import decide_users
from sparklog.core.controller.users.user_questions import describe_users
from sparklog.model.ids import BrokerId


def next_outcome(work: PendingWork, now_ms: int) -> Decision | list[Action] | None:
    """The outcome of the next elections, or else of the next step, or else the next write of an operation;
    None if there is nothing to do.

    Brokers that failed leave the image first, so that none of them is elected.
    """
    elections = None if work.has_failures else _next_elections(work)
    if elections is not None:
        return elections
    if work.steps:
        return _decide(work, work.steps.popleft(), now_ms)
    return work.looks.next(work.image, now_ms)


def _next_elections(work: PendingWork) -> Decision | None:
    """Elections for one write, if any partition needs one."""
    while work.unchecked:
        batch = list(islice(work.unchecked, PARTITIONS_PER_WRITE_MAX))
        for partition in batch:
            del work.unchecked[partition]
        decision, left = decide_elections(work.image, batch)
        work.check(left)
        if decision is not None:
            return decision
    return None


def _decide(work: PendingWork, step: Step, now_ms: int) -> list[Action] | Decision:
    match step:
        case FailBrokers():
            return fail_brokers(work, step)
        case StartBrokers():
            return start_brokers(work, step)
        case NoteBrokers():
            return decide_notes(work.image, step) or []
        case RemoveRegistration():
            return remove_registration(work, step)
        case FinishShutdown():
            return finish_shutdown(work, step)
        case CreateTopic() | AddPartitions() | ChangeSchema():
            return _change_topic(work, step)
        case ChangeIsrs() | AllocateIds() | ApplyConfigs() | ApplyAcls() | MoveLeaders() | Reassign():
            return _decide_command(work, step)
        case BeginOperation() | CancelOperationStep() | AdvanceOperation():
            return _decide_operation(work, step)
        case ApplyQuotas() | ApplyUsers() | DescribeEntities():
            return _decide_entities(work, step)
        case FinishCreation() | FinishSchemaChange() | FinishDeletion():
            return _finish(work, step, now_ms)
        case StartDeletion():
            return decide_deletion(work.image, step) or []
        case PurgeTopic():
            return decide_purge(work.image, step) or []
        case Elect():
            raise work.events.illegal("an election is never queued as a step")
        case _:
            assert_never(step)


def _decide_command(
    work: PendingWork, step: ChangeIsrs | AllocateIds | ApplyConfigs | ApplyAcls | MoveLeaders | Reassign
) -> list[Action] | Decision:
    """Commands that are one decision: a write, or the answer if there is nothing to write."""
    match step:
        case ChangeIsrs(command):
            return _answer_or_write(command, decide_isrs(work.image, step))
        case AllocateIds(command):
            return _answer_or_write(command, decide_block(work.image, step))
        case ApplyConfigs(command):
            return _answer_or_write(command, decide_configs(work.image, step))
        case ApplyAcls(command):
            return _answer_or_write(command, decide_acls(work.image, step))
        case MoveLeaders(command):
            return _answer_or_write(command, decide_leaders(work.image, step))
        case Reassign(command):
            return _answer_or_write(command, decide_plan(work.image, step))


def _decide_operation(
    work: PendingWork, step: BeginOperation | CancelOperationStep | AdvanceOperation
) -> list[Action] | Decision:
    match step:
        case BeginOperation(command):
            return _answer_or_write(command, decide_begin(work.image, step))
        case CancelOperationStep(command):
            return _answer_or_write(command, decide_cancel(work.image, step))
        case AdvanceOperation():
            return []  # its write failed: what follows now is worked out anew


def _decide_entities(
    work: PendingWork, step: ApplyQuotas | ApplyUsers | DescribeEntities
) -> list[Action] | Decision:
    """Commands about users, clients and addresses, whose nodes have just been read."""
    match step:
        case ApplyQuotas(command):
            return _answer_or_write(command, decide_quotas(work.image, step))
        case ApplyUsers(command):
            return _answer_or_write(command, decide_users(work.image, step))
        case DescribeEntities(command, question):
            if isinstance(question, DescribeUsers):
                return [Answer(command, describe_users(work.image, question))]
            return [Answer(command, describe_quotas(work.image, question))]


def _answer_or_write(command: CommandId | None, verdict: Decision | Result) -> list[Action] | Decision:
    if isinstance(verdict, Decision):
        return verdict
    return [] if command is None else [Answer(command, verdict)]


def _change_topic(
    work: PendingWork, step: CreateTopic | AddPartitions | ChangeSchema
) -> list[Action] | Decision:
    """A write, or a result that waits for the command's other topics."""
    if isinstance(step, ChangeSchema):
        return _change_schema(work, step)
    if isinstance(step, CreateTopic):
        verdict = decide_topic(work.image, step)
    else:
        verdict = decide_increase(work.image, step)
    if isinstance(verdict, Decision):
        return verdict
    work.waiting.creations[step.command].results.append(verdict)
    return []


def _change_schema(work: PendingWork, step: ChangeSchema) -> list[Action] | Decision:
    verdict = decide_schema(work.image, step)
    if isinstance(verdict, Decision):
        return verdict
    work.waiting.schema_changes[step.command].result = verdict
    return []


def _finish(
    work: PendingWork, step: FinishCreation | FinishSchemaChange | FinishDeletion, now_ms: int
) -> list[Action]:
    match step:
        case FinishCreation():
            return _finish_creation(work, step, now_ms)
        case FinishSchemaChange(command):
            return _finish_schema_change(work, command, now_ms)
        case FinishDeletion():
            return _finish_deletion(work, step)


def _finish_schema_change(work: PendingWork, command: CommandId, now_ms: int) -> list[Action]:
    change = work.waiting.schema_changes[command]
    change.patience_ms = now_ms + METADATA_PATIENCE_MS
    work.waiting.written[command] = change
    sends = work.flush()
    change.await_answers(sends, ())
    return [*sends, WakeAt(change.patience_ms)]


def _finish_creation(work: PendingWork, step: FinishCreation, now_ms: int) -> list[Action]:
    creation = work.waiting.creations[step.command]
    creation.deadline_ms = step.deadline_ms
    creation.patience_ms = min(now_ms + METADATA_PATIENCE_MS, step.deadline_ms)
    work.waiting.written[step.command] = creation
    sends = work.flush()
    creation.await_answers(sends, _leaders_of(work, creation))
    return [*sends, WakeAt(creation.patience_ms), WakeAt(step.deadline_ms)]


def _leaders_of(work: PendingWork, creation: WaitingCreation) -> set[BrokerId]:
    topics = (work.image.topics.get(result.name) for result in creation.results)
    return {
        state.leader for topic in topics if topic is not None for state in topic.states if state is not None
    }


def _finish_deletion(work: PendingWork, step: FinishDeletion) -> list[Action]:
    deletion = work.waiting.deletions[step.command]
    deletion.deadline_ms = step.deadline_ms
    work.waiting.written[step.command] = deletion
    return [WakeAt(step.deadline_ms)]
