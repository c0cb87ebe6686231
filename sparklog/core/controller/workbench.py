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
    PushAnswer,
    PushId,
    Report,
    Send,
    SendStopReplica,
    WakeAt,
)
from sparklog.core.controller.commands.broker_commands import (
    ControlledShutdown,
    ControlledShutdownResult,
    LoseLogs,
    LoseLogsResult,
)
from sparklog.core.controller.commands.command import CommandId, Result
from sparklog.core.controller.commands.partition_commands import ElectLeaders
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Increase,
    NewTopic,
    TopicResult,
)
from sparklog.core.controller.leaders.isr_changes import decide_isrs
from sparklog.core.controller.leaders.leadership import decide_leaders, find_imbalanced
from sparklog.core.controller.leaders.partition_writes import (
    PARTITIONS_PER_WRITE_MAX,
    check_incarnations,
    decide_elections,
    elect_one,
    waiting_for_leader,
)
from sparklog.core.controller.leaders.reassignment import decide_moves
from sparklog.core.controller.parked import METADATA_PATIENCE_MS, ParkedCreation, ParkedDeletion, ParkingLot
from sparklog.core.controller.producer_id_blocks import decide_block
from sparklog.core.controller.pushes import EPOCH_DURING_DELETE, PendingPushes
from sparklog.core.controller.state.image import (
    BrokerConfigsChanged,
    Change,
    ClusterImage,
    DeletionStarted,
    LiveBroker,
    PartitionChanged,
    TopicConfigsChanged,
    follows,
)
from sparklog.core.controller.state.leader_choice import missing_ends
from sparklog.core.controller.state.znodes import broker_path
from sparklog.core.controller.steps import (
    AddPartitions,
    AllocateIds,
    ApplyConfigs,
    ChangeIsrs,
    CreateTopic,
    Decision,
    Elect,
    FailBrokers,
    FinishCreation,
    FinishDeletion,
    FinishShutdown,
    MoveLeaders,
    PurgeTopic,
    Reassign,
    RemoveRegistration,
    StartBrokers,
    StartDeletion,
    Step,
)
from sparklog.core.controller.story import Story
from sparklog.core.controller.topics.config_changes import decide_configs
from sparklog.core.controller.topics.partition_increase import decide_increase, increased, plan_increase
from sparklog.core.controller.topics.topic_creation import created, decide_topic, plan_topic
from sparklog.core.controller.topics.topic_deletion import decide_deletion, decide_purge, find_doomed
from sparklog.model.cluster import PartitionState
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

    def create_partitions(self, command: CommandId, request: CreatePartitions, now_ms: int) -> None:
        """Answered like the creation of a topic, when the brokers have heard of the new partitions."""
        parked = self.lot.creations[command] = ParkedCreation()
        names = [increase.topic for increase in request.topics]
        for increase in request.topics:
            if names.count(increase.topic) > 1:
                message = f"Duplicate topic '{increase.topic}' in request."
                parked.results.append(TopicResult(increase.topic, ErrorCode.invalid_request, message))
            else:
                self._plan_increase(command, increase, request, parked)
        self.steps.append(FinishCreation(command, now_ms + request.timeout_ms))

    def _plan_increase(
        self, command: CommandId, increase: Increase, request: CreatePartitions, parked: ParkedCreation
    ) -> None:
        try:
            node = plan_increase(self.image, increase)
        except KafkaError as error:
            parked.results.append(TopicResult(increase.topic, error.code, error.message))
            return
        if request.validate_only:
            parked.results.append(TopicResult(increase.topic, id=node.id, partitions=len(node.assignments)))
        else:
            self.steps.append(AddPartitions(command, increase.topic, node))

    def elect_leaders(self, command: CommandId, request: ElectLeaders) -> None:
        asked, everything = request.partitions, tuple(one for one, _ in self.image.partitions())
        partitions = everything if asked is None else tuple(dict.fromkeys(asked))
        self.steps.append(MoveLeaders(command, request.unclean, partitions, keeps_quiet=asked is None))

    def rebalance(self) -> None:
        partitions = find_imbalanced(self.image)
        if partitions:
            self.steps.append(MoveLeaders(None, False, partitions))

    def delete_topics(self, command: CommandId, request: DeleteTopics, now_ms: int) -> None:
        parked = self.lot.deletions[command] = ParkedDeletion()
        for doomed in request.topics:
            result = find_doomed(self.image, doomed)
            parked.results.append(result)
            if result.error == ErrorCode.none:
                self.steps.append(StartDeletion(command, result.name))
        self.steps.append(FinishDeletion(command, now_ms + request.timeout_ms))

    def push_answered(self, answer: PushAnswer) -> None:
        """A broker answered a message: a wait may be over, a log may be broken, mended, or the greatest."""
        self.lot.on_answered(answer.push)
        stop = self.stops.pop(answer.push, None)
        if stop is not None:
            self._confirm_stops(stop, answer.errors)
        elif self.image.is_current(answer.broker, answer.broker_epoch):
            self._note_logs(answer.broker, answer.errors)
            self.image.note_log_ends(answer.broker, answer.log_ends)
            self.look_at(answer.log_ends)

    def lose_logs(self, report: LoseLogs) -> LoseLogsResult:
        """A broker says, unasked, that its disk failed under some of its replicas."""
        if not self.image.is_current(report.broker, report.broker_epoch):
            return LoseLogsResult(ErrorCode.stale_broker_epoch)
        names = self.image.topic_names
        lost = [TopicPartition(names[topic], number) for topic, number in report.partitions if topic in names]
        self._note_logs(report.broker, dict.fromkeys(lost, ErrorCode.kafka_storage_error))
        for partition in lost:
            # The report may be late, and the log mended since: the broker's answer to its role settles it.
            if self.image.state(partition) is not None:
                self.pending.partition_changed(partition, roles=True, is_new=False)
        return LoseLogsResult(ErrorCode.none)

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
        """A stop from before the deletion, or of an earlier topic of that name, confirms nothing."""
        for partition, epoch in stop.partitions:
            deletion = self.image.deletions.get(partition.topic)
            is_meant = epoch == EPOCH_DURING_DELETE and self._is_of_the_same_topic(stop, partition.topic)
            if deletion is None or not is_meant or errors.get(partition, ErrorCode.none) != ErrorCode.none:
                continue
            deletion.confirm(stop.broker, partition)
            if deletion.is_confirmed:
                self.steps.append(PurgeTopic(partition.topic))

    def _is_of_the_same_topic(self, stop: SendStopReplica, name: str) -> bool:
        return name in self.image.topics and stop.topic_ids[name] == self.image.topics[name].id

    # ------------------------------------------------------------------------- taking steps

    def next_elections(self) -> Decision | None:
        """One write's worth of elections, if any partition needs one."""
        while self.dirty:
            batch = list(islice(self.dirty, PARTITIONS_PER_WRITE_MAX))
            for partition in batch:
                del self.dirty[partition]
            decision, left = decide_elections(self.image, batch)
            self.look_at(left)
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
            case CreateTopic() | AddPartitions():
                return self._create_topic(step)
            case ChangeIsrs() | AllocateIds() | ApplyConfigs() | MoveLeaders() | Reassign():
                return self._decide(step)
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

    def _decide(
        self, step: ChangeIsrs | AllocateIds | ApplyConfigs | MoveLeaders | Reassign
    ) -> list[Action] | Decision:
        """The commands that are one decision: a write, or the answer if there is nothing to write."""
        match step:
            case ChangeIsrs(command):
                return _answer_or_write(command, decide_isrs(self.image, step))
            case AllocateIds(command):
                return _answer_or_write(command, decide_block(self.image, step))
            case ApplyConfigs(command):
                return _answer_or_write(command, decide_configs(self.image, step))
            case MoveLeaders(command):
                return _answer_or_write(command, decide_leaders(self.image, step))
            case Reassign(command):
                return _answer_or_write(command, decide_moves(self.image, step))

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
            if elect_one(self.image, partition) is None and self._absent(partition, state)
        ]
        if not waiting:
            return []
        partition, state = waiting[0]
        members = sorted({*state.isr, *state.eligible})
        return [
            Report(
                f"{len(waiting)} partitions have no leader, first {partition}: none of brokers {members} is "
                "back with a log that is proven intact, and which log is the greatest cannot be told before "
                f"brokers {self._absent(partition, state)} are there too; wait for them, allow unclean "
                "election for the topic, or demand one"
            )
        ]

    def _absent(self, partition: TopicPartition, state: PartitionState) -> list[BrokerId]:
        """Those that an election waits for and that cannot even be asked."""
        candidates = self.image.candidates(partition)
        return [broker for broker in missing_ends(state, candidates) if broker not in candidates.live]

    def _remove_registration(self, step: RemoveRegistration) -> list[Action] | Decision:
        if not self.image.is_current(step.broker, step.broker_epoch):
            return []
        # The check keeps us from deleting the registration of a successor.
        checks = check_incarnations(self.image, [step.broker])
        return Decision(step, (*checks, Delete(broker_path(step.broker))), ())

    def _create_topic(self, step: CreateTopic | AddPartitions) -> list[Action] | Decision:
        if isinstance(step, CreateTopic):
            verdict = decide_topic(self.image, step)
        else:
            verdict = decide_increase(self.image, step)
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
        if decision.rest is not None:
            self.steps.appendleft(decision.rest)
        match decision.step:
            case Elect(_, losses):
                return [Report(loss, is_loss=True) for loss in losses]
            case MoveLeaders(command) | Reassign(command):
                self.look_at(one.partition for one in decision.changes if isinstance(one, PartitionChanged))
                reports: list[Action] = [Report(loss, is_loss=True) for loss in decision.losses]
                is_done = command is not None and decision.rest is None
                return [*reports, _answer(command, decision.result)] if is_done else reports
            case ChangeIsrs(command):
                # A broker that is shutting down may now have company that can lead instead.
                self.look_at(one.partition for one in decision.changes if isinstance(one, PartitionChanged))
                return [_answer(command, decision.result)]
            case AllocateIds(command):
                return [_answer(command, decision.result)]
            case CreateTopic(command, topic, node):
                self.lot.creations[command].results.append(created(topic, node))
                self.look_at(self.image.topics[topic.name].topic_partitions())
            case AddPartitions(command, name):
                self.lot.creations[command].results.append(increased(self.image, name))
                self.look_at(self.image.topics[name].topic_partitions())
            case ApplyConfigs(command):
                return [_answer(command, decision.result)]
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
                if before is not None:
                    gone = set(before.replicas) - set(state.replicas)
                    self.pending.replicas_moved_away(partition, gone, state.leader_epoch)
                if state.adding or state.removing:
                    self.look_at([partition])  # the very write may have brought what its move waited for
            case TopicConfigsChanged(topic):
                self._settings_changed(topic)
            case BrokerConfigsChanged():
                self.pending.brokers_changed = True
            case DeletionStarted(topic):
                self.pending.deletion_started(self.image, topic)
        self.image.replay(change)
        if isinstance(change, BrokerConfigsChanged):
            self.look_at(partition for partition, _ in self.image.partitions())

    def _settings_changed(self, topic: str) -> None:
        """Every broker hears of it; and elections may now be due."""
        partitions = self.image.topics[topic].topic_partitions()
        self.look_at(partitions)
        for partition in partitions:
            self.pending.partition_changed(partition, roles=False, is_new=False)

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
        is_creating = any(
            isinstance(step, CreateTopic | AddPartitions | FinishCreation) for step in self.steps
        )
        return is_creating or (bool(self.pending.starting) and isinstance(decision.step, Elect))


def _answer_or_write(command: CommandId | None, verdict: Decision | Result) -> list[Action] | Decision:
    if isinstance(verdict, Decision):
        return verdict
    return [] if command is None else [Answer(command, verdict)]


def _answer(command: CommandId | None, result: Result | None) -> Answer:
    assert result is not None, command
    assert command is not None, result
    return Answer(command, result)
