"""What brokers report about their replicas: answers to messages, and logs that they lost."""

from collections.abc import Mapping

from sparklog.core.controller.actions import PushAnswer, SendStopReplica
from sparklog.core.controller.commands.broker_commands import LoseLogs, LoseLogsResult
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.pipeline.pushes import EPOCH_DURING_DELETE
from sparklog.core.controller.steps import PurgeTopic
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition


def push_answered(work: PendingWork, answer: PushAnswer) -> None:
    """A broker answered a message: a command may be done, and logs may be broken, mended or the greatest."""
    work.waiting.on_answered(answer.push)
    stop = work.stops.pop(answer.push, None)
    if stop is not None:
        _confirm_stops(work, stop, answer.errors)
    elif work.image.is_current(answer.broker, answer.broker_epoch):
        _note_logs(work, answer.broker, answer.errors)
        work.image.note_log_ends(answer.broker, answer.log_ends)
        work.check(answer.log_ends)


def lose_logs(work: PendingWork, report: LoseLogs) -> LoseLogsResult:
    """A broker reports that a disk failed under some of its replicas."""
    if not work.image.is_current(report.broker, report.broker_epoch):
        return LoseLogsResult(ErrorCode.stale_broker_epoch)
    names = work.image.topic_names
    lost = [TopicPartition(names[topic], number) for topic, number in report.partitions if topic in names]
    _note_logs(work, report.broker, dict.fromkeys(lost, ErrorCode.kafka_storage_error))
    for partition in lost:
        # The report may be late, and the log mended since: the broker's answer to its role settles it.
        if work.image.state(partition) is not None:
            work.pushes.partition_changed(partition, roles=True, is_new=False)
    return LoseLogsResult(ErrorCode.none)


def _note_logs(work: PendingWork, broker: BrokerId, errors: Mapping[TopicPartition, ErrorCode]) -> None:
    """Mark replicas whose logs failed as offline, and those that work as online.

    A replica is online again when its broker takes up a role of it without an error: outside the ISR the
    broker has cut the corrupt log, and the replica may catch up.
    """
    offline = work.image.offline.setdefault(broker, set())
    broken = {partition for partition, error in errors.items() if error == ErrorCode.kafka_storage_error}
    mended = {partition for partition in offline if errors.get(partition) == ErrorCode.none}
    changed = sorted((broken - offline) | mended)
    offline |= broken
    offline -= mended
    work.check(changed)


def _confirm_stops(
    work: PendingWork, stop: SendStopReplica, errors: Mapping[TopicPartition, ErrorCode]
) -> None:
    """Note that a broker deleted replicas. A stop from before the deletion, or of an earlier topic of that
    name, confirms nothing.
    """
    for partition, epoch in stop.partitions:
        deletion = work.image.deletions.get(partition.topic)
        is_meant = epoch == EPOCH_DURING_DELETE and _is_of_the_same_topic(work, stop, partition.topic)
        if deletion is None or not is_meant or errors.get(partition, ErrorCode.none) != ErrorCode.none:
            continue
        deletion.confirm(stop.broker, partition)
        if deletion.is_confirmed:
            work.add(PurgeTopic(partition.topic))


def _is_of_the_same_topic(work: PendingWork, stop: SendStopReplica, name: str) -> bool:
    return name in work.image.topics and stop.topic_ids[name] == work.image.topics[name].id
