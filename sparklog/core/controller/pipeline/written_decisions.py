"""What follows once a decision is written: the image changes, messages are due, commands are answered."""

from sparklog.core.controller.actions import Action, Answer
from sparklog.core.controller.commands.controller_command import CommandId, Result
from sparklog.core.controller.commands.topic_commands import AlteredSchema
from sparklog.core.controller.pipeline.decision_events import events_of
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.state.image import (
    BrokerConfigsChanged,
    Change,
    DeletionStarted,
    PartitionChanged,
    SchemaChanged,
    TopicConfigsChanged,
)
from sparklog.core.controller.state.operations import Operation, OperationWritten
from sparklog.core.controller.state.partition_rules import follows
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
    FailBrokers,
    MoveLeaders,
    PurgeTopic,
    Reassign,
    RemoveRegistration,
)
from sparklog.core.controller.topics.partition_increase import increased
from sparklog.core.controller.topics.topic_creation import created


def commit(work: PendingWork, decision: Decision, now_ms: int) -> list[Action]:
    """``decision`` is in ZooKeeper: replay its changes, and return what follows beside messages to
    brokers.
    """
    events = events_of(work.image, decision, work.cause, now_ms)
    for change in decision.changes:
        _replay(work, change)
    return [*events, *_follow(work, decision)]


def _follow(work: PendingWork, decision: Decision) -> list[Action]:
    if decision.rest is not None:
        work.add_first(decision.rest)
    match decision.step:
        case MoveLeaders(command) | Reassign(command):
            _check_changed(work, decision)
            is_done = command is not None and decision.rest is None
            return [_answer(command, decision.result)] if is_done else []
        case ChangeIsrs(command):
            # A broker that is shutting down may now have company that can lead instead.
            _check_changed(work, decision)
            return [_answer(command, decision.result)]
        case AllocateIds(command) | ApplyConfigs(command) | ApplyAcls(command):
            return [_answer(command, decision.result)]
        case ApplyQuotas(command) | ApplyUsers(command):
            return [_answer(command, decision.result)]
        case ChangeSchema(command):
            assert isinstance(decision.result, AlteredSchema), decision.result
            work.waiting.schema_changes[command].result = decision.result
        case BeginOperation(command) | CancelOperationStep(command):
            _check_changed(work, decision)
            # A removed broker may have been the last one that a deletion waited for.
            for name, deletion in work.image.deletions.items():
                if deletion.is_confirmed:
                    work.add(PurgeTopic(name))
            return [_answer(command, decision.result)]
        case AdvanceOperation():
            _check_changed(work, decision)
        case CreateTopic(command, topic, node):
            work.waiting.creations[command].results.append(created(topic, node))
            work.check(work.image.topics[topic.name].topic_partitions())
        case AddPartitions(command, name):
            work.waiting.creations[command].results.append(increased(work.image, name))
            work.check(work.image.topics[name].topic_partitions())
        case RemoveRegistration(broker):
            work.add_first(FailBrokers((broker,), ended=frozenset({broker})))
        case PurgeTopic(topic) if topic in work.image.topics:
            work.add(decision.step)
    return []


def _answer(command: CommandId | None, result: Result | None) -> Answer:
    assert result is not None, command
    assert command is not None, result
    return Answer(command, result)


def _check_changed(work: PendingWork, decision: Decision) -> None:
    work.check(change.partition for change in decision.changes if isinstance(change, PartitionChanged))


def _replay(work: PendingWork, change: Change) -> None:
    match change:
        case PartitionChanged():
            _note_partition(work, change)
        case TopicConfigsChanged(topic):
            _note_settings(work, topic)
        case SchemaChanged(topic):
            for partition in work.image.topics[topic].topic_partitions():
                work.pushes.partition_changed(partition, roles=True, is_new=False)
        case BrokerConfigsChanged():
            work.pushes.brokers_changed = True
        case OperationWritten(operation):
            _note_operation(work, operation)
        case DeletionStarted(topic):
            work.pushes.deletion_started(work.image, topic)
    work.image.replay(change)
    if isinstance(change, BrokerConfigsChanged):
        work.check(partition for partition, _ in work.image.partitions())


def _note_operation(work: PendingWork, operation: Operation) -> None:
    before = work.image.operations.get(operation.id)
    if not operation.is_running and (before is None or before.is_running):
        work.ended_operations[operation.kind, operation.state] += 1
    if not operation.throttle:
        return
    work.pushes.brokers_changed = True  # its rate comes or goes
    for partition in operation.partitions:
        if work.image.state(partition) is not None:  # its topic names it as throttled, or no more
            work.pushes.partition_changed(partition, roles=False, is_new=False)


def _note_partition(work: PendingWork, change: PartitionChanged) -> None:
    partition, state = change.partition, change.state
    before = work.image.state(partition)
    if not follows(before, state):
        raise work.events.illegal(f"{partition} cannot go from {before} to {state}")
    work.pushes.partition_changed(partition, roles=change.roles_changed, is_new=before is None)
    if before is not None:
        gone = set(before.replicas) - set(state.replicas)
        work.pushes.replicas_moved_away(partition, gone, state.leader_epoch)
    if state.adding or state.removing:
        work.check([partition])  # this write may be what the partition's move waited for


def _note_settings(work: PendingWork, topic: str) -> None:
    """Brokers must be sent a topic's new settings, and its partitions may need elections."""
    partitions = work.image.topics[topic].topic_partitions()
    work.check(partitions)
    for partition in partitions:
        work.pushes.partition_changed(partition, roles=False, is_new=False)
