"""From a command to the steps that it needs, or to its answer if it needs none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

from sparklog.core.client_quotas.quota_keys import CONTROLLER_MUTATION_RATE
from sparklog.core.controller.acls.acl_filters import describe_acls
from sparklog.core.controller.actions import Action, Answer, ReadEntities, ReadRegistered
from sparklog.core.controller.commands.acl_commands import CreateAcls, DeleteAcls, DescribeAcls
from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    ControlledShutdown,
    LoseLogs,
)
from sparklog.core.controller.commands.config_commands import ChangeConfigs
from sparklog.core.controller.commands.controller_command import Command, CommandId, Result
from sparklog.core.controller.commands.operation_commands import (
    CancelOperation,
    OperateBrokers,
    OperationResult,
    RefusedOperation,
)
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
)
from sparklog.core.controller.commands.quota_commands import AlterQuotas, DescribeQuotas
from sparklog.core.controller.commands.topic_commands import (
    AlteredSchema,
    AlterSchema,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribeSchemas,
    Increase,
    TopicResult,
    TopicToCreate,
)
from sparklog.core.controller.commands.user_commands import AlterUsers, DescribeUsers
from sparklog.core.controller.leaders.leader_moves import find_imbalanced
from sparklog.core.controller.leaders.reassignment import list_moves
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.pipeline.broker_answers import lose_logs
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.pipeline.waiting_commands import (
    WaitingCreation,
    WaitingDeletion,
    WaitingSchemaChange,
)
from sparklog.core.controller.quotas.mutations import Bill, Payer
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.steps import (
    AddPartitions,
    AllocateIds,
    ApplyAcls,
    ApplyConfigs,
    ApplyQuotas,
    ApplyUsers,
    BeginOperation,
    CancelOperationStep,
    ChangeIsrs,
    CreateTopic,
    DescribeEntities,
    FinishCreation,
    FinishDeletion,
    FinishSchemaChange,
    FinishShutdown,
    MoveLeaders,
    Reassign,
    StartDeletion,
    Step,
)
from sparklog.core.controller.topics.config_changes import strangers
from sparklog.core.controller.topics.partition_increase import plan_increase
from sparklog.core.controller.topics.schema_changes import plan_schema
from sparklog.core.controller.topics.topic_creation import created, plan_topic
from sparklog.core.controller.topics.topic_deletion import find_doomed
from sparklog.core.controller.topics.typed_topics import describe_schemas
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.model.time import MonotonicMs


def take_command(work: PendingWork, command: CommandId, given: Command, now_ms: int) -> list[Action]:
    """Add the steps of a command. The actions are its answer, or a question that must be asked first."""
    request, table = given.request, work.image.quota_book.of_clients[CONTROLLER_MUTATION_RATE]
    payer = Payer(given.requester.principal.partition(":")[2], given.client_id, given.is_strict)
    bill = Bill(work.mutations, table, payer, MonotonicMs(now_ms))
    match request:
        case AlterPartition() | AllocateProducerIds() | CreateAcls() | DeleteAcls() | AlterReassignments():
            work.add(_only_step(command, given, request))
        case LoseLogs():
            return [Answer(command, lose_logs(work, request))]
        case ControlledShutdown():
            _begin_shutdown(work, command, request)
        case ChangeConfigs():
            work.add(ApplyConfigs(command, request))
            if unknown := strangers(work.image, request):
                return [ReadRegistered(f"settings are given to {', '.join(unknown[:3])}")]
        case AlterQuotas() | AlterUsers() | DescribeQuotas() | DescribeUsers():
            work.add(_about_entities(command, request))
            return [ReadEntities("a command is about users or quotas, which other tools change as well")]
        case DescribeSchemas() | ListReassignments() | DescribeAcls():
            return [Answer(command, _described(work.image, request))]
        case AlterSchema():
            return _alter_schema(work, command, request)
        case ElectLeaders():
            _elect_leaders(work, command, request)
        case CreateTopics() | DeleteTopics() | CreatePartitions():
            _make_or_delete(work, command, request, bill)
        case OperateBrokers() | CancelOperation() | RefusedOperation():
            return _operate(work, command, given, request)
        case _:
            assert_never(request)
    return []


def _only_step(
    command: CommandId,
    given: Command,
    request: AlterPartition | AllocateProducerIds | CreateAcls | DeleteAcls | AlterReassignments,
) -> Step:
    match request:
        case AlterPartition():
            return ChangeIsrs(command, request)
        case AllocateProducerIds():
            return AllocateIds(command, request)
        case CreateAcls() | DeleteAcls():
            return ApplyAcls(command, request)
        case AlterReassignments():
            return Reassign(
                command,
                request.moves,
                throttle=request.throttle,
                requested_by=str(given.requester),
                asked_ms=given.asked_ms,
            )


def _operate(
    work: PendingWork,
    command: CommandId,
    given: Command,
    request: OperateBrokers | CancelOperation | RefusedOperation,
) -> list[Action]:
    match request:
        case RefusedOperation(words):
            return [Answer(command, OperationResult(ErrorCode.invalid_request, words))]
        case CancelOperation(operation):
            work.add(CancelOperationStep(command, operation))
        case OperateBrokers(kind):
            work.add(BeginOperation(command, request, str(given.requester), given.asked_ms))
            if kind is OperationKind.remove:
                return [ReadRegistered("a removed broker's proofs are deleted, if it has any")]
    return []


def _about_entities(
    command: CommandId, request: AlterQuotas | AlterUsers | DescribeQuotas | DescribeUsers
) -> Step:
    match request:
        case AlterQuotas():
            return ApplyQuotas(command, request)
        case AlterUsers():
            return ApplyUsers(command, request)
        case DescribeQuotas() | DescribeUsers():
            return DescribeEntities(command, request)


def _described(image: ClusterImage, question: DescribeSchemas | ListReassignments | DescribeAcls) -> Result:
    match question:
        case DescribeSchemas():
            return describe_schemas(image, question)
        case ListReassignments():
            return list_moves(image, question)
        case DescribeAcls():
            return describe_acls(image, question)


def _alter_schema(work: PendingWork, command: CommandId, request: AlterSchema) -> list[Action]:
    planned = plan_schema(work.image, command, request)
    if isinstance(planned, AlteredSchema):
        return [Answer(command, planned)]
    work.waiting.schema_changes[command] = WaitingSchemaChange()
    work.add(planned)
    work.add(FinishSchemaChange(command))
    return []


def rebalance(work: PendingWork) -> None:
    """Move leaders back to the replicas that are preferred, where too many are elsewhere."""
    partitions = find_imbalanced(work.image)
    if partitions:
        work.add(MoveLeaders(None, False, partitions))


def _begin_shutdown(work: PendingWork, command: CommandId, request: ControlledShutdown) -> None:
    if work.image.is_current(request.broker, request.broker_epoch):
        work.image.begin_shutdown(request.broker)
        work.check(work.image.hosted_by(request.broker))
    work.add(FinishShutdown(command, request))


def _elect_leaders(work: PendingWork, command: CommandId, request: ElectLeaders) -> None:
    asked, everything = request.partitions, tuple(partition for partition, _ in work.image.partitions())
    partitions = everything if asked is None else tuple(dict.fromkeys(asked))
    is_all = asked is None
    step = MoveLeaders(
        command, request.unclean, partitions, keeps_quiet=is_all, without_store=request.without_store
    )
    work.add(step)


def _make_or_delete(
    work: PendingWork, command: CommandId, request: CreateTopics | DeleteTopics | CreatePartitions, bill: Bill
) -> None:
    match request:
        case CreateTopics():
            _create_topics(work, command, request, bill)
        case DeleteTopics():
            _delete_topics(work, command, request, bill)
        case CreatePartitions():
            _create_partitions(work, command, request, bill)


Plan = Callable[[], tuple[Step, TopicResult]]
"""Returns the step of one topic, and its result if it is only validated. Raises KafkaError to refuse it."""


def _create_topics(work: PendingWork, command: CommandId, request: CreateTopics, bill: Bill) -> None:
    def plan(topic: TopicToCreate) -> tuple[Step, TopicResult]:
        node, schema = plan_topic(work.image, topic)
        return CreateTopic(command, topic, node, schema), replace(created(topic, node), id=NO_TOPIC_ID)

    plans = [(topic.name, partial(plan, topic)) for topic in request.topics]
    named_twice = "Create topics request names topic '{}' more than once."
    _plan_each(work, command, request, plans, named_twice, bill)
    work.add(FinishCreation(command, bill.now_ms + request.timeout_ms))


def _create_partitions(work: PendingWork, command: CommandId, request: CreatePartitions, bill: Bill) -> None:
    """Answered as the creation of a topic is: when the brokers have acknowledged the new partitions."""

    def plan(increase: Increase) -> tuple[Step, TopicResult]:
        node = plan_increase(work.image, increase)
        result = TopicResult(increase.topic, id=node.id, partitions=len(node.assignments))
        return AddPartitions(command, increase.topic, node), result

    plans = [(increase.topic, partial(plan, increase)) for increase in request.topics]
    _plan_each(work, command, request, plans, "Duplicate topic '{}' in request.", bill)
    work.add(FinishCreation(command, bill.now_ms + request.timeout_ms))


def _plan_each(
    work: PendingWork,
    command: CommandId,
    request: CreateTopics | CreatePartitions,
    plans: Sequence[tuple[str, Plan]],
    named_twice: str,
    bill: Bill,
) -> None:
    """Add the step of each topic; or its result, if it is refused or only validated."""
    creation = work.waiting.creations[command] = WaitingCreation()
    names = [name for name, _ in plans]
    for name, plan in plans:
        if names.count(name) > 1:
            message = named_twice.format(name)
            creation.results.append(TopicResult(name, ErrorCode.invalid_request, message))
            continue
        try:
            step, if_valid = plan()
            if not request.validate_only:
                bill.charge(name, _partitions_added(work.image, name, if_valid))
        except KafkaError as error:
            creation.results.append(TopicResult(name, error.code, error.message))
            continue
        if request.validate_only:
            creation.results.append(if_valid)
        else:
            work.add(step)
    creation.throttled_until_ms = bill.now_ms + bill.delay_ms


def _partitions_added(image: ClusterImage, topic: str, after: TopicResult) -> int:
    existing = image.topics.get(topic)
    return after.partitions - (0 if existing is None else len(existing.states))


def _delete_topics(work: PendingWork, command: CommandId, request: DeleteTopics, bill: Bill) -> None:
    deletion = work.waiting.deletions[command] = WaitingDeletion()
    for doomed in request.topics:
        result = find_doomed(work.image, doomed)
        if result.error == ErrorCode.none:
            try:
                bill.charge(result.name, len(work.image.topics[result.name].states))
            except KafkaError as refused:
                result = replace(result, error=refused.code, message=refused.message)
        deletion.results.append(result)
        if result.error == ErrorCode.none:
            work.add(StartDeletion(command, result.name))
    deletion.throttled_until_ms = bill.now_ms + bill.delay_ms
    work.add(FinishDeletion(command, bill.now_ms + request.timeout_ms))
