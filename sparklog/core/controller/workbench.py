"""How each of the controller's steps is taken, and what follows once its decision is written.

The bench holds the image and the work in progress; ``sparklog.core.controller.machine`` decides *when* a step
is taken, and feeds the outcome of its write back. Nothing here knows about refused or lost writes: a step
that has to be taken again is simply taken again, over the image as it is then.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from sparklog.core.controller.actions import (
    Action,
    Answer,
    Connect,
    Disconnect,
    PushId,
    Report,
    Send,
    SendStopReplica,
    WakeAt,
)
from sparklog.core.controller.commands import (
    CommandId,
    ControlledShutdown,
    ControlledShutdownResult,
    CreateTopics,
    DeleteTopics,
    NewTopic,
    Result,
    TopicResult,
)
from sparklog.core.controller.elections import (
    PARTITIONS_PER_WRITE_MAX,
    check_incarnations,
    decide_elections,
    elect_one,
    waiting_for_leader,
)
from sparklog.core.controller.image import (
    Change,
    ClusterImage,
    DeletionStarted,
    LiveBroker,
    PartitionChanged,
    follows,
)
from sparklog.core.controller.isr_proposals import decide_isrs
from sparklog.core.controller.parked import METADATA_PATIENCE_MS, ParkedCreation, ParkedDeletion, ParkingLot
from sparklog.core.controller.producer_ids import decide_block
from sparklog.core.controller.pushes import PendingPushes
from sparklog.core.controller.steps import (
    AllocateIds,
    ChangeIsrs,
    CreateTopic,
    Decision,
    Elect,
    FailBrokers,
    FinishCreation,
    FinishDeletion,
    FinishShutdown,
    PurgeTopic,
    RemoveRegistration,
    StartBrokers,
    StartDeletion,
    Step,
)
from sparklog.core.controller.story import Story
from sparklog.core.controller.topic_creation import created, decide_topic, plan_topic
from sparklog.core.controller.topic_deletion import decide_deletion, decide_purge, find_doomed
from sparklog.core.controller.znodes import broker_path
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.zookeeper import Delete


@dataclass(slots=True)
class Workbench:
    """``dirty`` are partitions that an election may be due for; ``steps`` are taken in order after those."""

    image: ClusterImage
    story: Story
    dirty: dict[TopicPartition, None] = field(default_factory=dict)
    steps: deque[Step] = field(default_factory=deque)
    pending: PendingPushes = field(default_factory=PendingPushes)
    stops: dict[PushId, SendStopReplica] = field(default_factory=dict)
    lot: ParkingLot = field(default_factory=ParkingLot)

    # ------------------------------------------------------------------------- what is to be done

    def look_at(self, partitions: Iterable[TopicPartition]) -> None:
        self.dirty.update(dict.fromkeys(partitions))

    def start_over(self) -> list[Action]:
        """The image is new: tell every broker everything, and look at every partition."""
        self.pending.starting.update(self.image.brokers)
        self.pending.brokers_changed = True
        self.dirty = dict.fromkeys(partition for partition, _ in self.image.partitions())
        return self._report_waiting()

    def begin_shutdown(self, command: CommandId, request: ControlledShutdown) -> None:
        if self.image.is_current(request.broker, request.broker_epoch):
            self.image.shutting_down.add(request.broker)
            self.look_at(self.image.hosted_by(request.broker))
        self.steps.append(FinishShutdown(command, request))

    def create_topics(self, command: CommandId, request: CreateTopics, now_ms: int) -> None:
        parked = self.lot.creations[command] = ParkedCreation()
        names = [topic.name for topic in request.topics]
        for topic in request.topics:
            if names.count(topic.name) > 1:
                message = f"Create topics request names topic '{topic.name}' more than once."
                parked.results.append(TopicResult(topic.name, ErrorCode.invalid_request, message))
            else:
                self._plan_topic(command, topic, request, parked)
        self.steps.append(FinishCreation(command, now_ms + request.timeout_ms))

    def _plan_topic(
        self, command: CommandId, topic: NewTopic, request: CreateTopics, parked: ParkedCreation
    ) -> None:
        try:
            node = plan_topic(self.image, topic)
        except KafkaError as error:
            parked.results.append(TopicResult(topic.name, error.code, error.message))
            return
        if request.validate_only:
            parked.results.append(created(topic, node))
        else:
            self.steps.append(CreateTopic(command, topic, node))

    def delete_topics(self, command: CommandId, request: DeleteTopics, now_ms: int) -> None:
        parked = self.lot.deletions[command] = ParkedDeletion()
        for doomed in request.topics:
            result = find_doomed(self.image, doomed)
            parked.results.append(result)
            if result.error == ErrorCode.none:
                self.steps.append(StartDeletion(command, result.name))
        self.steps.append(FinishDeletion(command, now_ms + request.timeout_ms))

    def push_answered(
        self, push: PushId, broker: BrokerId, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        """A broker answered a message: a wait may be over, a log may be broken, or mended."""
        self.lot.on_answered(push)
        stop = self.stops.pop(push, None)
        if stop is not None:
            self._confirm_stops(stop, errors)
        elif broker in self.image.brokers:
            self._note_logs(broker, errors)

    def _note_logs(self, broker: BrokerId, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        """A replica whose log failed is offline until its broker takes up a role of it without an error: it
        has cut a corrupt log then, outside the ISR, and may come back by catching up.
        """
        offline = self.image.offline.setdefault(broker, set())
        broken = {one for one, error in errors.items() if error == ErrorCode.kafka_storage_error}
        mended = {one for one in offline if errors.get(one) == ErrorCode.none}
        changed = sorted((broken - offline) | mended)
        offline |= broken
        offline -= mended
        self.look_at(changed)

    def _confirm_stops(self, stop: SendStopReplica, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        for partition, _ in stop.partitions:
            deletion = self.image.deletions.get(partition.topic)
            if deletion is None or errors.get(partition, ErrorCode.none) != ErrorCode.none:
                continue
            deletion.confirm(stop.broker, partition)
            if deletion.is_confirmed:
                self.steps.append(PurgeTopic(partition.topic))

    # ------------------------------------------------------------------------- taking steps

    def next_elections(self) -> Decision | None:
        """One write's worth of elections, if any partition needs one."""
        while self.dirty:
            batch = list(islice(self.dirty, PARTITIONS_PER_WRITE_MAX))
            for partition in batch:
                del self.dirty[partition]
            decision = decide_elections(self.image, batch)
            if decision is not None:
                return decision
        return None

    def take(self, step: Step, now_ms: int) -> list[Action] | Decision:
        """What to write for this step, or what to do if there is nothing to write."""
        match step:
            case FailBrokers(brokers):
                return self._fail(brokers)
            case StartBrokers(started):
                return self._start(started)
            case RemoveRegistration():
                return self._remove_registration(step)
            case ChangeIsrs(command):
                return _answer_or_write(command, decide_isrs(self.image, step))
            case AllocateIds(command):
                return _answer_or_write(command, decide_block(self.image, step))
            case CreateTopic():
                return self._create_topic(step)
            case FinishCreation():
                return self._finish_creation(step, now_ms)
            case StartDeletion():
                return decide_deletion(self.image, step) or []
            case FinishDeletion():
                return self._finish_deletion(step)
            case PurgeTopic():
                return decide_purge(self.image, step) or []
            case FinishShutdown(command, request):
                return self._finish_shutdown(command, request)
            case Elect():
                raise self.story.illegal("an election is never queued as a step")
            case _:
                assert_never(step)

    def _fail(self, brokers: Iterable[BrokerId]) -> list[Action]:
        actions: list[Action] = []
        for broker in brokers:
            epoch = self.image.epoch_of(broker)
            if epoch is not None:
                self.look_at(self.image.hosted_by(broker))
                self.image.remove_broker(broker)
                self.pending.starting.discard(broker)
                self.pending.brokers_changed = True
                actions.append(self.lose_channel(broker, epoch))
        return actions

    def lose_channel(self, broker: BrokerId, epoch: BrokerEpoch) -> Disconnect:
        """Nothing that was sent to this incarnation will be answered any more."""
        self.lot.on_broker_gone(broker)
        self.stops = {push: stop for push, stop in self.stops.items() if stop.broker != broker}
        return Disconnect(broker, epoch)

    def _start(self, brokers: Iterable[LiveBroker]) -> list[Action]:
        actions: list[Action] = []
        for live in brokers:
            broker = live.broker.id
            self.image.add_broker(live)
            self.look_at(self.image.hosted_by(broker))
            self.pending.starting.add(broker)
            self.pending.brokers_changed = True
            actions.append(Connect(live.broker))
        return actions + self._report_waiting()

    def _report_waiting(self) -> list[Action]:
        waiting = [
            (partition, state)
            for partition, state in waiting_for_leader(self.image).items()
            if elect_one(self.image, partition) is None
        ]
        if not waiting:
            return []
        partition, state = waiting[0]
        members = sorted({*state.isr, *state.eligible})
        return [
            Report(
                f"{len(waiting)} partitions have no leader, first {partition}: none of brokers {members} is "
                "back with a log that is proven intact; wait for them or allow unclean election for the topic"
            )
        ]

    def _remove_registration(self, step: RemoveRegistration) -> list[Action] | Decision:
        if not self.image.is_current(step.broker, step.broker_epoch):
            return []
        # The check keeps us from deleting the registration of a successor.
        checks = check_incarnations(self.image, [step.broker])
        return Decision(step, (*checks, Delete(broker_path(step.broker))), ())

    def _create_topic(self, step: CreateTopic) -> list[Action] | Decision:
        verdict = decide_topic(self.image, step)
        if isinstance(verdict, Decision):
            return verdict
        self.lot.creations[step.command].results.append(verdict)
        return []

    def _finish_creation(self, step: FinishCreation, now_ms: int) -> list[Action]:
        parked = self.lot.creations[step.command]
        parked.deadline_ms = step.deadline_ms
        parked.patience_ms = min(now_ms + METADATA_PATIENCE_MS, step.deadline_ms)
        self.lot.waiting[step.command] = parked
        sends = self.flush()
        parked.await_answers(sends, self._leaders_of(parked))
        return [*sends, WakeAt(parked.patience_ms), WakeAt(step.deadline_ms)]

    def _leaders_of(self, parked: ParkedCreation) -> set[BrokerId]:
        topics = (self.image.topics.get(result.name) for result in parked.results)
        return {
            state.leader
            for topic in topics
            if topic is not None
            for state in topic.states
            if state is not None
        }

    def _finish_deletion(self, step: FinishDeletion) -> list[Action]:
        parked = self.lot.deletions[step.command]
        parked.deadline_ms = step.deadline_ms
        self.lot.waiting[step.command] = parked
        return [WakeAt(step.deadline_ms)]

    def _finish_shutdown(self, command: CommandId, request: ControlledShutdown) -> list[Action]:
        broker = request.broker
        if not self.image.is_current(broker, request.broker_epoch):
            return [Answer(command, ControlledShutdownResult(ErrorCode.stale_broker_epoch))]
        followed, remaining = [], []
        for partition in self.image.hosted_by(broker):
            state = self.image.state(partition)
            if state is None:
                continue
            if broker not in state.isr:
                followed.append((partition, state.leader_epoch))
            elif self._may_find_a_leader(broker, state.replicas):
                remaining.append(partition)
        sends = self.flush()
        if followed:
            sends.append(self.pending.stop_replicas(self.image, broker, followed))
        return [*sends, Answer(command, ControlledShutdownResult(ErrorCode.none, tuple(remaining)))]

    def _may_find_a_leader(self, broker: BrokerId, replicas: Iterable[BrokerId]) -> bool:
        """Whether waiting can help: some other replica lives on a broker that is going to stay."""
        staying = self.image.brokers.keys() - self.image.shutting_down - {broker}
        return any(replica in staying for replica in replicas)

    # ------------------------------------------------------------------------- after the write

    def commit(self, decision: Decision) -> list[Action]:
        """The decision is in ZooKeeper: replay it, and do what follows beside the pushes."""
        for change in decision.changes:
            self._replay(change)
        match decision.step:
            case Elect(_, losses):
                return [Report(loss, is_loss=True) for loss in losses]
            case ChangeIsrs(command):
                # A broker that is shutting down may now have company that can lead instead.
                self.look_at(one.partition for one in decision.changes if isinstance(one, PartitionChanged))
                return [_answer(command, decision.result)]
            case AllocateIds(command):
                return [_answer(command, decision.result)]
            case CreateTopic(command, topic, node):
                self.lot.creations[command].results.append(created(topic, node))
                self.look_at(self.image.topics[topic.name].topic_partitions())
            case RemoveRegistration(broker):
                self.steps.appendleft(FailBrokers((broker,)))
            case PurgeTopic(topic) if topic in self.image.topics:
                self.steps.append(decision.step)
        return []

    def _replay(self, change: Change) -> None:
        match change:
            case PartitionChanged(partition, state, roles):
                before = self.image.state(partition)
                if not follows(before, state):
                    raise self.story.illegal(f"{partition} cannot go from {before} to {state}")
                self.pending.partition_changed(partition, roles=roles, is_new=before is None)
            case DeletionStarted(topic):
                self.pending.deletion_started(self.image, topic)
        self.image.replay(change)

    def flush(self) -> list[Send]:
        """What brokers must be told about everything that was committed."""
        sends = self.pending.flush(self.image)
        self.stops.update({send.push: send for send in sends if isinstance(send, SendStopReplica)})
        return sends

    def must_hold_pushes(self, decision: Decision) -> bool:
        """Whether brokers must hear nothing before ``decision`` is written.

        A creation tells brokers about all its topics at once, and waits for those very messages. And a broker
        that is told everything must not be told what an election is about to change: it may have restarted
        without what it had as leader, would lead its old epoch again, and make its followers cut their logs.
        """
        is_creating = any(isinstance(step, CreateTopic | FinishCreation) for step in self.steps)
        return is_creating or (bool(self.pending.starting) and isinstance(decision.step, Elect))


def _answer_or_write(command: CommandId, verdict: Decision | Result) -> list[Action] | Decision:
    return verdict if isinstance(verdict, Decision) else [Answer(command, verdict)]


def _answer(command: CommandId, result: Result | None) -> Answer:
    assert result is not None, command
    return Answer(command, result)
