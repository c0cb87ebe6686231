"""From a command to the steps that it needs, or to its answer if it needs none."""

from dataclasses import replace
from typing import assert_never

from sparklog.core.controller.actions import Action, Answer, ReadRegistered
from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    ControlledShutdown,
    LoseLogs,
)
from sparklog.core.controller.commands.config_commands import ChangeConfigs
from sparklog.core.controller.commands.controller_command import CommandId, Request
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
)
from sparklog.core.controller.commands.quota_commands import AlterQuotas, DescribeQuotas
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Increase,
    TopicResult,
    TopicToCreate,
)
from sparklog.core.controller.leaders.leader_moves import find_imbalanced
from sparklog.core.controller.leaders.reassignment import list_moves
from sparklog.core.controller.pipeline.broker_answers import lose_logs
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.pipeline.waiting_commands import WaitingCreation, WaitingDeletion
from sparklog.core.controller.quotas.quota_questions import describe_quotas
from sparklog.core.controller.steps import (
    AddPartitions,
    AllocateIds,
    ApplyConfigs,
    ApplyQuotas,
    ChangeIsrs,
    CreateTopic,
    FinishCreation,
    FinishDeletion,
    FinishShutdown,
    MoveLeaders,
    Reassign,
    StartDeletion,
)
from sparklog.core.controller.topics.config_changes import strangers
from sparklog.core.controller.topics.partition_increase import plan_increase
from sparklog.core.controller.topics.topic_creation import created, plan_topic
from sparklog.core.controller.topics.topic_deletion import find_doomed
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import NO_TOPIC_ID


def take_command(work: PendingWork, command: CommandId, request: Request, now_ms: int) -> list[Action]:
    """Add the steps of a command. The actions are its answer, or a question that must be asked first."""
    match request:
        case AlterPartition():
            work.add(ChangeIsrs(command, request))
        case AllocateProducerIds():
            work.add(AllocateIds(command, request))
        case LoseLogs():
            return [Answer(command, lose_logs(work, request))]
        case ControlledShutdown():
            _begin_shutdown(work, command, request)
        case CreatePartitions():
            _create_partitions(work, command, request, now_ms)
        case ChangeConfigs():
            work.add(ApplyConfigs(command, request))
            if unknown := strangers(work.image, request):
                return [ReadRegistered(f"settings are given to {', '.join(unknown[:3])}")]
        case AlterQuotas():
            work.add(ApplyQuotas(command, request))
        case DescribeQuotas():
            return [Answer(command, describe_quotas(work.image, request))]
        case ElectLeaders():
            _elect_leaders(work, command, request)
        case AlterReassignments():
            work.add(Reassign(command, request.moves))
        case ListReassignments():
            return [Answer(command, list_moves(work.image, request))]
        case CreateTopics():
            _create_topics(work, command, request, now_ms)
        case DeleteTopics():
            _delete_topics(work, command, request, now_ms)
        case _:
            assert_never(request)
    return []


def rebalance(work: PendingWork) -> None:
    """Move leaders back to the replicas that are preferred, where too many are elsewhere."""
    partitions = find_imbalanced(work.image)
    if partitions:
        work.add(MoveLeaders(None, False, partitions))


def _begin_shutdown(work: PendingWork, command: CommandId, request: ControlledShutdown) -> None:
    if work.image.is_current(request.broker, request.broker_epoch):
        work.image.shutting_down.add(request.broker)
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


def _create_topics(work: PendingWork, command: CommandId, request: CreateTopics, now_ms: int) -> None:
    creation = work.waiting.creations[command] = WaitingCreation()
    names = [topic.name for topic in request.topics]
    for topic in request.topics:
        if names.count(topic.name) > 1:
            message = f"Create topics request names topic '{topic.name}' more than once."
            creation.results.append(TopicResult(topic.name, ErrorCode.invalid_request, message))
        else:
            _plan_topic(work, command, topic, request, creation)
    work.add(FinishCreation(command, now_ms + request.timeout_ms))


def _plan_topic(
    work: PendingWork,
    command: CommandId,
    topic: TopicToCreate,
    request: CreateTopics,
    creation: WaitingCreation,
) -> None:
    try:
        node = plan_topic(work.image, topic)
    except KafkaError as error:
        creation.results.append(TopicResult(topic.name, error.code, error.message))
        return
    if request.validate_only:
        creation.results.append(replace(created(topic, node), id=NO_TOPIC_ID))
    else:
        work.add(CreateTopic(command, topic, node))


def _create_partitions(work: PendingWork, command: CommandId, request: CreatePartitions, now_ms: int) -> None:
    """Answered as the creation of a topic is: when the brokers have acknowledged the new partitions."""
    creation = work.waiting.creations[command] = WaitingCreation()
    names = [increase.topic for increase in request.topics]
    for increase in request.topics:
        if names.count(increase.topic) > 1:
            message = f"Duplicate topic '{increase.topic}' in request."
            creation.results.append(TopicResult(increase.topic, ErrorCode.invalid_request, message))
        else:
            _plan_increase(work, command, increase, request, creation)
    work.add(FinishCreation(command, now_ms + request.timeout_ms))


def _plan_increase(
    work: PendingWork,
    command: CommandId,
    increase: Increase,
    request: CreatePartitions,
    creation: WaitingCreation,
) -> None:
    try:
        node = plan_increase(work.image, increase)
    except KafkaError as error:
        creation.results.append(TopicResult(increase.topic, error.code, error.message))
        return
    if request.validate_only:
        creation.results.append(TopicResult(increase.topic, id=node.id, partitions=len(node.assignments)))
    else:
        work.add(AddPartitions(command, increase.topic, node))


def _delete_topics(work: PendingWork, command: CommandId, request: DeleteTopics, now_ms: int) -> None:
    deletion = work.waiting.deletions[command] = WaitingDeletion()
    for doomed in request.topics:
        result = find_doomed(work.image, doomed)
        deletion.results.append(result)
        if result.error == ErrorCode.none:
            work.add(StartDeletion(command, result.name))
    work.add(FinishDeletion(command, now_ms + request.timeout_ms))
