"""Steps about brokers: they start, fail and shut down."""

from collections.abc import Iterable

from sparklog.core.controller.actions import Action, Answer, Connect
from sparklog.core.controller.commands.broker_commands import ControlledShutdownResult
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind, count_of
from sparklog.core.controller.leaders.partition_writes import (
    check_incarnations,
    elect_one,
    waiting_for_leader,
)
from sparklog.core.controller.pipeline.broker_events import left_event, registered_event
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.unproven_choice import missing_reports
from sparklog.core.controller.state.znodes import broker_path
from sparklog.core.controller.steps import (
    Decision,
    FailBrokers,
    FinishShutdown,
    NoteBrokers,
    RemoveRegistration,
    StartBrokers,
)
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.zookeeper import Delete


def fail_brokers(work: PendingWork, step: FailBrokers) -> list[Action]:
    actions: list[Action] = []
    for broker in step.brokers:
        epoch = work.image.epoch_of(broker)
        if epoch is not None:
            work.check(work.image.hosted_by(broker))
            if broker in step.ended:
                work.image.ended[broker] = epoch
            actions.append(
                left_event(
                    work.image.brokers[broker].broker,
                    has_ended=broker in step.ended,
                    was_stopping=broker in work.image.shutting_down,
                    cause=work.ends.pop((broker, epoch), ""),
                )
            )
            work.image.remove_broker(broker)
            work.pushes.starting.discard(broker)
            work.pushes.brokers_changed = True
            actions.append(work.lose_channel(broker, epoch))
    return actions


def start_brokers(work: PendingWork, step: StartBrokers) -> list[Action]:
    actions: list[Action] = []
    for live in step.brokers:
        broker = live.broker.id
        work.image.add_broker(live)
        work.check(work.image.hosted_by(broker))
        work.pushes.starting.add(broker)
        work.pushes.brokers_changed = True
        actions += [Connect(live.broker), registered_event(live.broker)]
    work.add(NoteBrokers(tuple(live.broker.id for live in step.brokers)))
    return actions + report_leaderless(work.image)


def remove_registration(work: PendingWork, step: RemoveRegistration) -> list[Action] | Decision:
    if not work.image.is_current(step.broker, step.broker_epoch):
        return []
    # The check keeps us from deleting the registration of a successor.
    checks = check_incarnations(work.image, [step.broker])
    return Decision(step, (*checks, Delete(broker_path(step.broker))), ())


def finish_shutdown(work: PendingWork, step: FinishShutdown) -> list[Action]:
    """Stop the replicas that the broker does not lead any more, and answer with the partitions that
    remain.
    """
    broker = step.request.broker
    if not work.image.is_current(broker, step.request.broker_epoch):
        return [Answer(step.command, ControlledShutdownResult(ErrorCode.stale_broker_epoch))]
    followed, remaining = [], []
    for partition in work.image.hosted_by(broker):
        state = work.image.state(partition)
        if state is None:
            continue
        if broker not in state.isr:
            followed.append((partition, state.leader_epoch))
        elif _may_find_a_leader(work.image, broker, state.replicas):
            remaining.append(partition)
    sends = work.flush()
    if followed:
        sends.append(work.pushes.stop_replicas(work.image, broker, followed))
    return [*sends, Answer(step.command, ControlledShutdownResult(ErrorCode.none, tuple(remaining)))]


def _may_find_a_leader(image: ClusterImage, broker: BrokerId, replicas: Iterable[BrokerId]) -> bool:
    """Whether waiting can help: some other replica is on a broker that is not about to stop."""
    staying = image.brokers.keys() - image.shutting_down - {broker}
    return any(replica in staying for replica in replicas)


def report_leaderless(image: ClusterImage) -> list[Action]:
    """For people: which partitions no broker can lead yet, and which brokers they wait for."""
    waiting = [
        (partition, state)
        for partition, state in waiting_for_leader(image).items()
        if elect_one(image, partition) is None and _absent(image, partition, state)
    ]
    if not waiting:
        return []
    partition, state = waiting[0]
    members, absent = sorted({*state.isr, *state.eligible}), _absent(image, partition, state)
    count = count_of(len(waiting), "partition")
    have = "has" if len(waiting) == 1 else "have"
    return [
        ClusterEvent(
            EventKind.election,
            count,
            f"{count} {have} no leader, first {partition}: none of brokers {members} is back with a log that "
            f"is proven intact, and which log is the greatest is unknown before brokers {absent} are there "
            "too; wait for them, allow unclean election for the topic, or demand one",
            brokers=tuple(absent),
            topics=(partition.topic,),
            is_warning=True,
        )
    ]


def _absent(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> list[BrokerId]:
    """Brokers that an election waits for and that are not alive."""
    candidates = image.candidates(partition)
    return [broker for broker in missing_reports(state, candidates) if broker not in candidates.live]
