"""The active controller as a pure machine: facts in, actions out, one ZooKeeper write at a time.

Every fact becomes steps (``sparklog.core.controller.steps``); a step decides over the cluster image, the
shell writes the decision, and only a confirmed write is replayed into the image and told to brokers:

    fact -> step -> decision -> WriteZooKeeper -> on_written -> replay -> pushes, answers, next step

    settled --write--> writing --on_written--> settled
                       writing --on_write_refused: controller epoch moved--> resigned
                       writing --on_write_refused: an incarnation moved--> reading brokers --on_brokers--> ..
                       writing --on_write_refused for another reason--> reloading --on_reloaded--> ..
                       writing --on_write_lost--> reloading --on_reloaded--> ..
    settled --settings for a broker that is not alive--> reading registered --on_registered--> ..

Whatever was not confirmed is taken again, as the same step, after reading. Too many refusals in a row mean
that we and ZooKeeper do not understand each other, and the machine resigns.

Elections are level-triggered: events only say *which* partitions to look at (``dirty``), and what a partition
needs follows from the image alone. So a retry, a reload and a new controller all come to the same end.

A fact is legal only while the machine is settled, except for the outcome that it waits for. Anything else is
a bug in the shell and raises ``IllegalTransition`` with the story.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

from sparklog.core.controller.actions import (
    Action,
    Answer,
    Connect,
    PushAnswer,
    ReadBrokers,
    ReadRegistered,
    Reload,
    Report,
    Resign,
    WakeAt,
    WriteZooKeeper,
)
from sparklog.core.controller.commands.broker_commands import (
    AllocateProducerIds,
    ControlledShutdown,
    LoseLogs,
)
from sparklog.core.controller.commands.command import Command, CommandId
from sparklog.core.controller.commands.config_commands import ChangeConfigs
from sparklog.core.controller.commands.partition_commands import (
    AlterPartition,
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
)
from sparklog.core.controller.commands.topic_commands import CreatePartitions, CreateTopics, DeleteTopics
from sparklog.core.controller.leaders.partition_writes import elect_one
from sparklog.core.controller.leaders.reassignment import list_moves
from sparklog.core.controller.state.image import ClusterImage, LiveBroker, Snapshot
from sparklog.core.controller.state.znodes import BROKER_INCARNATIONS, CONTROLLER_EPOCH
from sparklog.core.controller.steps import (
    AllocateIds,
    ApplyConfigs,
    ChangeIsrs,
    Decision,
    Elect,
    FailBrokers,
    Reassign,
    RemoveRegistration,
    StartBrokers,
)
from sparklog.core.controller.story import Story
from sparklog.core.controller.topics.config_changes import strangers
from sparklog.core.controller.workbench import Workbench
from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.zookeeper import Check, Operation, Reason

REFUSALS_MAX: Final = 20
"""Refused or lost writes in a row after which the machine gives up its office."""

STORY_LINE_MAX: Final = 500

Phase = Literal["new", "settled", "writing", "reading brokers", "reading registered", "reloading", "resigned"]


@dataclass(slots=True)
class ControllerMachine:
    """One term of office of one controller."""

    config: BrokerConfig
    phase: Phase = "new"
    story: Story = field(default_factory=Story)
    bench: Workbench = field(init=False)
    decision: Decision | None = None
    refusals: int = 0
    rebalance_at_ms: int = -1

    def __post_init__(self) -> None:
        nothing = ClusterImage(self.config, ControllerEpoch(-1), -1)
        self.bench = Workbench(nothing, self.story)

    @property
    def image(self) -> ClusterImage:
        return self.bench.image

    # ------------------------------------------------------------------------- becoming active

    def on_activated(self, snapshot: Snapshot, now_ms: int) -> list[Action]:
        """We were elected, and this is what ZooKeeper holds. Every broker is told everything."""
        self._expect(now_ms, "new", f"activated in epoch {snapshot.controller_epoch}")
        self.bench.image = ClusterImage.of(snapshot, self.config)
        connects = [Connect(broker) for broker in self.image.live_brokers()]
        return [*connects, *self.bench.start_over(), *self._rebalance(now_ms), *self._continue(now_ms)]

    def on_reloaded(self, snapshot: Snapshot, now_ms: int) -> list[Action]:
        """Everything was read again after a write whose outcome we could not tell. Still our epoch."""
        self._expect(now_ms, "reloading", f"reloaded in epoch {snapshot.controller_epoch}")
        before, self.bench.image = self.image, ClusterImage.of(snapshot, self.config)
        actions = self._channels_after(before)
        self.image.registered = before.registered
        self._keep_what_brokers_said(before)
        self._forget_earlier_news()
        return [*actions, *self.bench.start_over(), *self._continue(now_ms)]

    def _forget_earlier_news(self) -> None:
        """What was read just now says all about who is there; steps that wait with older news are obsolete. A
        broker that is in both would be started twice."""
        kept = (step for step in self.bench.steps if not isinstance(step, FailBrokers | StartBrokers))
        self.bench.steps = deque(kept)

    def _channels_after(self, before: ClusterImage) -> list[Action]:
        lost = [one for one in before.live_brokers() if not self.image.is_current(one.id, one.epoch)]
        seen = [one for one in self.image.live_brokers() if not before.is_current(one.id, one.epoch)]
        closed: list[Action] = [self.bench.lose_channel(broker.id, broker.epoch) for broker in lost]
        return [*closed, *(Connect(broker) for broker in seen)]

    def _keep_what_brokers_said(self, before: ClusterImage) -> None:
        for broker in self.image.brokers:
            if before.epoch_of(broker) != self.image.epoch_of(broker):
                continue
            if broker in before.shutting_down:
                self.image.shutting_down.add(broker)
            if broker in before.offline:
                self.image.offline[broker] = {
                    one for one in before.offline[broker] if self._is_same_topic(one.topic, before)
                }

    def _is_same_topic(self, name: str, before: ClusterImage) -> bool:
        """Whether the topic of this name is the one that it was."""
        now, was = self.image.topics.get(name), before.topics.get(name)
        return now is not None and was is not None and now.id == was.id

    # ------------------------------------------------------------------------- brokers

    def on_brokers(self, seen: Mapping[BrokerId, LiveBroker], now_ms: int) -> list[Action]:
        """These brokers are registered now. One with a new epoch has failed and started (KIP-380)."""
        if self.phase == "reading brokers":
            self.phase = "settled"
        epochs = [(broker, live.broker.epoch) for broker, live in sorted(seen.items())]
        self._expect(now_ms, "settled", f"brokers {epochs}")
        known = self.image.brokers
        gone = [one for one in sorted(known) if one not in seen or not self._is_same(seen[one])]
        come = [seen[one] for one in sorted(seen) if one not in known or one in gone]
        for broker, live in seen.items():
            if broker in known and broker not in gone:
                self.image.add_broker(live)  # the same incarnation; its record may have been rewritten
        self._forget_earlier_news()
        if come:
            self.bench.steps.appendleft(StartBrokers(tuple(come)))
        if gone:
            self.bench.steps.appendleft(FailBrokers(tuple(gone)))
        return self._continue(now_ms)

    def on_registered(self, ids: frozenset[BrokerId], now_ms: int) -> list[Action]:
        """These brokers have registered at some time; most of them are alive."""
        self._expect(now_ms, "reading registered", f"registered {sorted(ids)}")
        self.phase = "settled"
        self.image.registered = ids
        return self._continue(now_ms)

    def _is_same(self, live: LiveBroker) -> bool:
        return self.image.is_current(live.broker.id, live.broker.epoch)

    def on_broker_died(self, broker: BrokerId, broker_epoch: BrokerEpoch, now_ms: int) -> list[Action]:
        """The supervisor saw the process end: fail over now, not when the session has timed out."""
        self._expect(now_ms, "settled", f"death of broker {broker} epoch {broker_epoch} reported")
        self.bench.steps.append(RemoveRegistration(broker, broker_epoch))
        return self._continue(now_ms)

    # ------------------------------------------------------------------------- commands and answers

    def on_command(self, command: CommandId, given: Command, now_ms: int) -> list[Action]:
        """A command was given; an ``Answer`` with the same id follows, now or later."""
        request = given.request
        self._expect(now_ms, "settled", f"command {command} of {given.requester}: {request}")
        match request:
            case AlterPartition():
                self.bench.steps.append(ChangeIsrs(command, request))
            case AllocateProducerIds():
                self.bench.steps.append(AllocateIds(command, request))
            case LoseLogs():
                return [Answer(command, self.bench.lose_logs(request)), *self._continue(now_ms)]
            case ControlledShutdown():
                self.bench.begin_shutdown(command, request)
            case CreatePartitions():
                self.bench.create_partitions(command, request, now_ms)
            case ChangeConfigs():
                self.bench.steps.append(ApplyConfigs(command, request))
                if unknown := strangers(self.image, request):
                    self.phase = "reading registered"
                    return [ReadRegistered(f"settings are given to {', '.join(unknown[:3])}")]
            case ElectLeaders():
                self.bench.elect_leaders(command, request)
            case AlterReassignments():
                self.bench.steps.append(Reassign(command, request.moves))
            case ListReassignments():
                return [Answer(command, list_moves(self.image, request)), *self._continue(now_ms)]
            case CreateTopics():
                self.bench.create_topics(command, request, now_ms)
            case DeleteTopics():
                self.bench.delete_topics(command, request, now_ms)
            case _:
                assert_never(request)
        return self._continue(now_ms)

    def on_push_answered(self, answer: PushAnswer, now_ms: int) -> list[Action]:
        """A broker answered a message: what went wrong, and where logs end that nobody leads."""
        self._expect(now_ms, "settled", f"{answer}")
        self.bench.push_answered(answer)
        return self._continue(now_ms)

    def on_tick(self, now_ms: int) -> list[Action]:
        """Time has passed: commands that waited too long are answered, and leadership may be rebalanced."""
        self._expect(now_ms, "settled", "tick")
        return [*self._rebalance(now_ms), *self._continue(now_ms)]

    def _rebalance(self, now_ms: int) -> list[Action]:
        """Give brokers the leaderships back that they are preferred for, every so often."""
        if not self.config.get_bool("auto.leader.rebalance.enable") or now_ms < self.rebalance_at_ms:
            return []
        interval_ms = self.config.get_int("leader.imbalance.check.interval.seconds") * 1_000
        is_first, self.rebalance_at_ms = self.rebalance_at_ms < 0, now_ms + interval_ms
        if not is_first:
            self.bench.rebalance()
        return [WakeAt(self.rebalance_at_ms)]

    # ------------------------------------------------------------------------- outcomes of writes

    def on_written(self, now_ms: int) -> list[Action]:
        decision = self._take_decision(now_ms, "written")
        self.refusals = 0
        return [*self.bench.commit(decision), *self._continue(now_ms)]

    def on_write_refused(self, index: int, reason: Reason, now_ms: int) -> list[Action]:
        """ZooKeeper refused operation ``index`` of the write, so nothing of it happened."""
        decision = self._take_decision(now_ms, f"refused at {index}: {reason}")
        if index == 0:
            return self._resign(f"another controller was elected after epoch {self.image.controller_epoch}")
        operation = decision.operations[index - 1]
        if isinstance(decision.step, RemoveRegistration) and reason == "no_node":
            self.bench.steps.appendleft(FailBrokers((decision.step.broker,)))  # it went by itself
            return self._continue(now_ms)
        return self._take_again(decision, self._how_to_read_again(operation, reason))

    def _how_to_read_again(self, operation: Operation, reason: Reason) -> ReadBrokers | Reload:
        if isinstance(operation, Check) and operation.path.startswith(BROKER_INCARNATIONS):
            return ReadBrokers(f"{operation.path} is no longer at version {operation.version}")
        return Reload(f"ZooKeeper refused {type(operation).__name__} {operation.path}: {reason}")

    def on_write_lost(self, now_ms: int) -> list[Action]:
        """Nobody knows whether the write happened, or will."""
        decision = self._take_decision(now_ms, "lost")
        # It may have happened, and then nothing will elect, and report, a second time.
        losses = decision.step.losses if isinstance(decision.step, Elect) else decision.losses
        reports = [Report(loss, is_loss=True) for loss in losses]
        return [
            *reports,
            *self._take_again(decision, Reload("the outcome of a write is unknown", fences=True)),
        ]

    def _take_again(self, decision: Decision, reading: ReadBrokers | Reload) -> list[Action]:
        self.refusals += 1
        if self.refusals > REFUSALS_MAX:
            return self._resign(f"{self.refusals} writes in a row failed; the last one: {reading.reason}")
        if isinstance(decision.step, Elect):
            self.bench.look_at(decision.step.partitions)
        else:
            self.bench.steps.appendleft(decision.step)
        self.phase = "reading brokers" if isinstance(reading, ReadBrokers) else "reloading"
        return [reading]

    # ------------------------------------------------------------------------- the loop

    def _continue(self, now_ms: int) -> list[Action]:
        """Take steps until one needs ZooKeeper or none is left; then tell the brokers."""
        actions: list[Action] = []
        while True:
            outcome: Decision | list[Action] | None = None
            if not self._has_failures():
                outcome = self.bench.next_elections()
            if outcome is None and self.bench.steps:
                outcome = self.bench.take(self.bench.steps.popleft(), now_ms)
            if outcome is None:
                finished = self.bench.lot.take_finished(self.image, now_ms)
                return [*actions, *self.bench.flush(), *finished]
            if isinstance(outcome, Decision):
                sends = [] if self.bench.must_hold_pushes(outcome) else self.bench.flush()
                return [*actions, *sends, self._write(outcome, now_ms)]
            actions += outcome

    def _has_failures(self) -> bool:
        """Brokers known to be gone must be out of the image before anybody is elected."""
        return bool(self.bench.steps) and isinstance(self.bench.steps[0], FailBrokers)

    def _write(self, decision: Decision, now_ms: int) -> WriteZooKeeper:
        self.decision, self.phase = decision, "writing"
        self._note(now_ms, f"write {len(decision.operations)} operations for {decision.step}")
        epoch_check = Check(CONTROLLER_EPOCH, self.image.controller_epoch_version)
        return WriteZooKeeper((epoch_check, *decision.operations))

    def _take_decision(self, now_ms: int, outcome: str) -> Decision:
        self._expect(now_ms, "writing", outcome)
        decision, self.decision, self.phase = self.decision, None, "settled"
        assert decision is not None, self
        return decision

    def _expect(self, now_ms: int, phase: Phase, fact: str) -> None:
        """``fact`` is legal in ``phase`` alone; what follows makes the phase anew."""
        if self.phase != phase:
            raise self.story.illegal(f"{fact[:STORY_LINE_MAX]!r} while {self.phase}, expected {phase}")
        self._note(now_ms, fact)
        if phase in ("new", "reloading"):
            self.phase = "settled"

    def _note(self, now_ms: int, line: str) -> None:
        self.story.note(now_ms, line[:STORY_LINE_MAX])

    def _resign(self, reason: str) -> list[Action]:
        self.phase = "resigned"
        return [Resign(reason)]

    def check_invariants(self) -> None:
        """What holds after every fact; more of it while nothing is being asked of ZooKeeper."""
        if self.phase in ("new", "resigned"):
            return
        self.image.check_invariants()
        assert (self.decision is not None) == (self.phase == "writing"), (self.phase, self.decision)
        if self.phase == "settled":
            bench = self.bench
            assert not bench.steps, list(bench.steps)
            assert not bench.dirty, list(bench.dirty)
            assert bench.pending.is_empty, bench.pending
            assert bench.lot.waiting.keys() == bench.lot.creations.keys() | bench.lot.deletions.keys()
            unsettled = [one for one, _ in self.image.partitions() if elect_one(self.image, one) is not None]
            assert not unsettled, unsettled
