"""The active controller as a pure machine: facts in, actions out, one ZooKeeper write at a time.

Every fact becomes steps (``sparklog.core.controller.steps``) in the pending work
(``sparklog.core.controller.pipeline``). A step decides over the cluster image, and the shell writes the
decision.
Only a confirmed write is replayed into the image and sent to brokers:

    fact -> step -> decision -> WriteZooKeeper -> on_written -> replay -> pushes, answers, next step

What the machine waits for is its phase; ``phases`` has the table of transitions. A step whose write was not
confirmed is taken again after reading. After ``REFUSALS_MAX`` refusals in a row the machine resigns, because
its image and ZooKeeper do not converge.

Elections are level-triggered: facts only say *which* partitions to check (``unchecked``), and what a
partition needs follows from the image alone. So a retry, a reload and a new controller all come to the same
end.

A fact is legal only while the machine is settled, except for the outcome that it waits for. Anything else is
a bug in the shell and raises ``IllegalTransition`` with the recent events.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.controller.actions import (
    Action,
    Connect,
    PushAnswer,
    ReadBrokers,
    ReadEntities,
    ReadRegistered,
    Reload,
    Resign,
    WakeAt,
    WriteZooKeeper,
)
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.controller_command import Command, CommandId
from sparklog.core.controller.leaders.partition_writes import elect_one
from sparklog.core.controller.phases import PHASES_BEFORE, Phase
from sparklog.core.controller.pipeline import broker_answers, command_intake
from sparklog.core.controller.pipeline.broker_events import left_event, registered_event
from sparklog.core.controller.pipeline.broker_steps import report_leaderless
from sparklog.core.controller.pipeline.decision_events import Cause, loss_events
from sparklog.core.controller.pipeline.known_brokers import application_events
from sparklog.core.controller.pipeline.pending_work import PendingWork
from sparklog.core.controller.pipeline.step_decisions import next_outcome
from sparklog.core.controller.pipeline.written_decisions import commit
from sparklog.core.controller.quotas.mutations import Mutations
from sparklog.core.controller.state.acl_nodes import AclNode
from sparklog.core.controller.state.applications import Application
from sparklog.core.controller.state.image import (
    AclsChanged,
    ClusterImage,
    ClusterSnapshot,
    EntityNode,
    LiveBroker,
)
from sparklog.core.controller.state.quota_nodes import ENTITY_DIRECTORIES
from sparklog.core.controller.state.znodes import BROKER_INCARNATIONS, CONTROLLER_EPOCH
from sparklog.core.controller.steps import (
    Decision,
    Elect,
    FailBrokers,
    NoteBrokers,
    RemoveRegistration,
    StartBrokers,
)
from sparklog.core.recent_events import EVENT_CHARACTERS_MAX, RecentEvents
from sparklog.core.security.rules import Pattern
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Check, Operation, Reason

_PHASES_OF_READING: Final[Mapping[type, Phase]] = {
    ReadBrokers: Phase.READING_BROKERS,
    ReadRegistered: Phase.READING_REGISTERED,
    ReadEntities: Phase.READING_ENTITIES,
    Reload: Phase.RELOADING,
}

REFUSALS_MAX: Final = 20
"""Refused or lost writes in a row after which the machine gives up its office."""


@dataclass(slots=True)
class ControllerMachine:
    """One term of office of one controller."""

    config: BrokerConfig
    phase: Phase = Phase.NEW
    events: RecentEvents = field(default_factory=RecentEvents)
    work: PendingWork = field(init=False)
    decision: Decision | None = None
    refusals: int = 0
    rebalance_at_ms: int = -1

    def __post_init__(self) -> None:
        nothing = ClusterImage(self.config, ControllerEpoch(-1), -1)
        seconds = self.config.get_int("controller.quota.window.size.seconds")
        windows = Windows(self.config.get_int("controller.quota.window.num"), seconds * 1_000)
        self.work = PendingWork(nothing, self.events, mutations=Mutations(windows))

    @property
    def image(self) -> ClusterImage:
        return self.work.image

    # ------------------------------------------------------------------------- becoming active

    def on_activated(self, snapshot: ClusterSnapshot, now_ms: int) -> list[Action]:
        """This controller was elected, and ``snapshot`` is what ZooKeeper holds. Every broker is sent
        everything.
        """
        self._expect(now_ms, Phase.NEW, f"activated in epoch {snapshot.controller_epoch}")
        self._enter(Phase.SETTLED)
        self.work.image = ClusterImage.of(snapshot, self.config)
        connects = [Connect(broker) for broker in self.image.live_brokers()]
        return [*connects, *self._start_over(), *self._rebalance(now_ms), *self._continue(now_ms)]

    def on_reloaded(
        self, snapshot: ClusterSnapshot, now_ms: int, ended: Set[BrokerId] = frozenset()
    ) -> list[Action]:
        """Everything was read again, after a write that was refused or lost. The controller epoch is the
        same. ``ended``: as in ``on_brokers``.
        """
        self._expect(now_ms, Phase.RELOADING, f"reloaded in epoch {snapshot.controller_epoch}")
        self._enter(Phase.SETTLED)
        before, self.work.image = self.image, ClusterImage.of(snapshot, self.config)
        self.image.registered = before.registered
        self.image.applications = before.applications
        self.image.ended = self._ended_since(before, self._known_to_have_ended(before, ended))
        actions = self._channels_after(before)
        self._keep_what_brokers_said(before)
        self.image.changes += before.changes
        self.work.forget_news_of_brokers()
        return [*actions, *self._start_over(), *self._continue(now_ms)]

    def _start_over(self) -> list[Action]:
        self.work.start_over()
        self.work.add(NoteBrokers(tuple(sorted(self.image.brokers))))
        return report_leaderless(self.image)

    def _channels_after(self, before: ClusterImage) -> list[Action]:
        lost = [one for one in before.live_brokers() if not self.image.is_current(one.id, one.epoch)]
        seen = [one for one in self.image.live_brokers() if not before.is_current(one.id, one.epoch)]
        closed: list[Action] = [self.work.lose_channel(broker.id, broker.epoch) for broker in lost]
        news = [
            left_event(
                broker,
                has_ended=broker.id in self.image.ended,
                was_stopping=broker.id in before.shutting_down,
                cause=self.work.ends.pop((broker.id, broker.epoch), ""),
            )
            for broker in lost
        ]
        news += [registered_event(broker) for broker in seen]
        return [*closed, *news, *(Connect(broker) for broker in seen)]

    def _keep_what_brokers_said(self, before: ClusterImage) -> None:
        for broker in self.image.brokers:
            if before.epoch_of(broker) != self.image.epoch_of(broker):
                continue
            if broker in before.shutting_down:
                self.image.begin_shutdown(broker)
            if broker in before.offline:
                self.image.offline[broker] = {
                    one for one in before.offline[broker] if self._is_same_topic(one.topic, before)
                }
            if broker in before.log_ends:
                self.image.log_ends[broker] = {
                    one: end
                    for one, end in before.log_ends[broker].items()
                    if self._is_same_topic(one.topic, before)
                }

    def _ended_since(self, before: ClusterImage, ended: Set[BrokerId]) -> dict[BrokerId, BrokerEpoch]:
        """The brokers that ended, in ``before`` or by now."""
        by_now = {one: before.brokers[one].broker.epoch for one in ended if one in before.brokers}
        return {one: epoch for one, epoch in (before.ended | by_now).items() if one not in self.image.brokers}

    def _is_same_topic(self, name: str, before: ClusterImage) -> bool:
        """Whether the topic of this name is the one that it was."""
        now, was = self.image.topics.get(name), before.topics.get(name)
        return now is not None and was is not None and now.id == was.id

    # ------------------------------------------------------------------------- brokers

    def on_brokers(
        self, seen: Mapping[BrokerId, LiveBroker], now_ms: int, ended: Set[BrokerId] = frozenset()
    ) -> list[Action]:
        """These brokers are registered now. One with a new epoch has failed and started (KIP-380).

        ``ended``: of those that are not, the brokers that the shell saw end.
        """
        if self.phase is Phase.READING_BROKERS:
            self._enter(Phase.SETTLED)
        epochs = [(broker, live.broker.epoch) for broker, live in sorted(seen.items())]
        self._expect(now_ms, Phase.SETTLED, f"brokers {epochs}")
        known = self.image.brokers
        gone = [one for one in sorted(known) if one not in seen or not self._is_same(seen[one])]
        come = [seen[one] for one in sorted(seen) if one not in known or one in gone]
        for broker, live in seen.items():
            if broker in known and broker not in gone:
                self.image.add_broker(live)  # the same incarnation; its record may have been rewritten
        self.work.forget_news_of_brokers()
        if gone or come:
            left, came = f"{_names(gone)} left", f"{_names([one.broker.id for one in come])} registered"
            self._note_cause(left if gone else came, now_ms)
        if come:
            self.work.add_first(StartBrokers(tuple(come)))
        if gone:
            self.work.add_first(FailBrokers(tuple(gone), self._known_to_have_ended(self.image, ended)))
        return self._continue(now_ms)

    def _known_to_have_ended(self, image: ClusterImage, ended: Set[BrokerId]) -> frozenset[BrokerId]:
        """The brokers of ``image`` that the shell saw end, that were stopping in order, or that a supervisor
        reported dead while another step was under way."""
        reported = {
            step.broker
            for step in self.work.steps
            if isinstance(step, RemoveRegistration) and image.is_current(step.broker, step.broker_epoch)
        }
        return frozenset(ended | image.shutting_down | reported)

    def on_registered(self, ids: frozenset[BrokerId], now_ms: int) -> list[Action]:
        """These brokers have registered at some time; most of them are alive."""
        self._expect(now_ms, Phase.READING_REGISTERED, f"registered {sorted(ids)}")
        self._enter(Phase.SETTLED)
        self.image.registered = ids
        return self._continue(now_ms)

    def on_entities(self, nodes: Mapping[str, EntityNode], now_ms: int) -> list[Action]:
        """The settings of users, clients and addresses, by the path of their node."""
        self._expect(now_ms, Phase.READING_ENTITIES, f"{len(nodes)} nodes of users, clients and addresses")
        self._enter(Phase.SETTLED)
        self.image.take_entities(nodes)
        return self._continue(now_ms)

    def on_applications(self, applications: tuple[Application, ...], now_ms: int) -> list[Action]:
        """These applications run now, and say this of their brokers."""
        self._expect(now_ms, Phase.SETTLED, f"applications {[one.name for one in applications]}")
        before, self.image.applications = self.image.applications, applications
        self.image.changes += 1
        hosted = {hosted.broker_id for one in applications for hosted in one.brokers}
        self.work.add(NoteBrokers(tuple(sorted(hosted & self.image.brokers.keys()))))
        return [*application_events(before, applications), *self._continue(now_ms)]

    def _is_same(self, live: LiveBroker) -> bool:
        return self.image.is_current(live.broker.id, live.broker.epoch)

    def on_broker_died(
        self, broker: BrokerId, broker_epoch: BrokerEpoch, now_ms: int, how: str = ""
    ) -> list[Action]:
        """The supervisor saw the process end: fail over now, not when the session has timed out. ``how`` it
        ended, in words.
        """
        self._expect(now_ms, Phase.SETTLED, f"death of broker {broker} epoch {broker_epoch} reported")
        if self.image.is_current(broker, broker_epoch):
            self.work.ends[broker, broker_epoch] = how
            self._note_cause(f"{_names([broker])} died", now_ms)
        self.work.add(RemoveRegistration(broker, broker_epoch))
        return self._continue(now_ms)

    # ------------------------------------------------------------------------- commands and answers

    def on_command(self, command: CommandId, given: Command, now_ms: int) -> list[Action]:
        """A command was given; an ``Answer`` with the same id follows, now or later."""
        self._expect(now_ms, Phase.SETTLED, f"command {command} of {given.requester}: {given.request}")
        if isinstance(given.request, ControlledShutdown):
            self._note_cause(f"{_names([given.request.broker])} is stopping", now_ms)
        actions = command_intake.take_command(self.work, command, given, now_ms)
        for action in actions:
            if isinstance(action, ReadRegistered | ReadEntities):
                self._enter(_PHASES_OF_READING[type(action)])
                return actions
        return [*actions, *self._continue(now_ms)]

    def on_push_answered(self, answer: PushAnswer, now_ms: int) -> list[Action]:
        """A broker answered a message, with errors and the ends of logs without a leader."""
        self._expect(now_ms, Phase.SETTLED, f"{answer}")
        broker_answers.push_answered(self.work, answer)
        return self._continue(now_ms)

    def on_acls(self, read: Mapping[Pattern, AclNode | None], now_ms: int) -> list[Action]:
        """The access rules of these patterns as they are now: Kafka's own tools may have written them."""
        self._expect(now_ms, Phase.SETTLED, f"access rules of {len(read)} patterns")
        for pattern, node in read.items():
            self.image.replay(AclsChanged(pattern, node))
        return self._continue(now_ms)

    def on_tick(self, now_ms: int) -> list[Action]:
        """Time has passed: commands that waited too long are answered, and leadership may be rebalanced."""
        self._expect(now_ms, Phase.SETTLED, "tick")
        return [*self._rebalance(now_ms), *self._continue(now_ms)]

    def _rebalance(self, now_ms: int) -> list[Action]:
        """Give brokers the leaderships back that they are preferred for, every so often."""
        if not self.config.get_bool("auto.leader.rebalance.enable") or now_ms < self.rebalance_at_ms:
            return []
        interval_ms = self.config.get_int("leader.imbalance.check.interval.seconds") * 1_000
        is_first, self.rebalance_at_ms = self.rebalance_at_ms < 0, now_ms + interval_ms
        if not is_first:
            command_intake.rebalance(self.work)
        return [WakeAt(self.rebalance_at_ms)]

    # ------------------------------------------------------------------------- outcomes of writes

    def on_written(self, now_ms: int) -> list[Action]:
        decision = self._take_decision(now_ms, "written")
        self._enter(Phase.SETTLED)
        self.refusals = 0
        return [*commit(self.work, decision, now_ms), *self._continue(now_ms)]

    def on_write_refused(self, index: int, reason: Reason, now_ms: int) -> list[Action]:
        """ZooKeeper refused operation ``index`` of the write, so nothing of it happened."""
        decision = self._take_decision(now_ms, f"refused at {index}: {reason}")
        if index == 0:
            return self._resign(f"another controller was elected after epoch {self.image.controller_epoch}")
        operation = decision.operations[index - 1]
        if isinstance(decision.step, RemoveRegistration) and reason == "no_node":
            broker = decision.step.broker  # it went by itself
            self._enter(Phase.SETTLED)
            self.work.add_first(FailBrokers((broker,), ended=frozenset({broker})))
            return self._continue(now_ms)
        return self._take_again(decision, self._how_to_read_again(operation, reason))

    def _how_to_read_again(self, operation: Operation, reason: Reason) -> ReadBrokers | ReadEntities | Reload:
        if isinstance(operation, Check) and operation.path.startswith(BROKER_INCARNATIONS):
            return ReadBrokers(f"{operation.path} is no longer at version {operation.version}")
        if operation.path.startswith(ENTITY_DIRECTORIES):
            return ReadEntities(f"another tool has changed {operation.path}")
        return Reload(f"ZooKeeper refused {type(operation).__name__} {operation.path}: {reason}")

    def on_write_lost(self, now_ms: int) -> list[Action]:
        """Nobody knows whether the write happened, or will."""
        decision = self._take_decision(now_ms, "lost")
        # It may have happened, and then nothing will elect, and report, a second time.
        losses = decision.step.losses if isinstance(decision.step, Elect) else decision.losses
        return [
            *loss_events(losses),
            *self._take_again(decision, Reload("the outcome of a write is unknown", fences=True)),
        ]

    def _take_again(self, decision: Decision, reading: ReadBrokers | ReadEntities | Reload) -> list[Action]:
        self.refusals += 1
        if self.refusals > REFUSALS_MAX:
            return self._resign(f"{self.refusals} writes in a row failed; the last one: {reading.reason}")
        if isinstance(decision.step, Elect):
            self.work.check(decision.step.partitions)
        else:
            self.work.add_first(decision.step)
        self._enter(_PHASES_OF_READING[type(reading)])
        return [reading]

    # ------------------------------------------------------------------------- the loop

    def _continue(self, now_ms: int) -> list[Action]:
        """Take steps until one needs ZooKeeper or none is left; then send messages to brokers."""
        actions = self._wait_for_reports(now_ms)
        while True:
            outcome = next_outcome(self.work, now_ms)
            if outcome is None:
                self.work.cause = None
                answers = self.work.waiting.take_finished(self.image, now_ms)
                return [*actions, *self.work.flush(), *answers, *self.work.looks.wake()]
            if isinstance(outcome, Decision):
                sends = [] if self.work.must_hold_pushes(outcome) else self.work.flush()
                return [*actions, *sends, self._write(outcome, now_ms)]
            actions += outcome

    def _note_cause(self, words: str, now_ms: int) -> None:
        """Why the next decisions are made; the first cause counts until they are through."""
        if self.work.cause is None:
            self.work.cause = Cause(words, now_ms)

    def _wait_for_reports(self, now_ms: int) -> list[Action]:
        """Bound how long partitions without a leader wait for reports of logs."""
        waits = self.image.report_waits
        self.work.check(waits.end(now_ms))
        deadline_ms = waits.begin(now_ms)
        return [] if deadline_ms is None else [WakeAt(deadline_ms)]

    def _write(self, decision: Decision, now_ms: int) -> WriteZooKeeper:
        self._enter(Phase.WRITING)
        self.decision = decision
        self.events.note(f"{now_ms} write {len(decision.operations)} operations for {decision.step}")
        epoch_check = Check(CONTROLLER_EPOCH, self.image.controller_epoch_version)
        return WriteZooKeeper((epoch_check, *decision.operations))

    def _take_decision(self, now_ms: int, outcome: str) -> Decision:
        """The decision whose write has this outcome. The caller enters the next phase."""
        self._expect(now_ms, Phase.WRITING, outcome)
        decision, self.decision = self.decision, None
        assert decision is not None, self
        return decision

    def _expect(self, now_ms: int, phase: Phase, fact: str) -> None:
        """``fact`` is legal in ``phase`` alone."""
        if self.phase is not phase:
            raise self.events.illegal(f"{fact[:EVENT_CHARACTERS_MAX]!r} while {self.phase}, expected {phase}")
        self.events.note(f"{now_ms} {fact}")

    def _enter(self, phase: Phase) -> None:
        assert self.phase in PHASES_BEFORE[phase], f"from {self.phase} to {phase}"
        self.phase = phase

    def _resign(self, reason: str) -> list[Action]:
        self._enter(Phase.RESIGNED)
        return [Resign(reason)]

    def check_invariants(self) -> None:
        """What holds after every fact; more of it while nothing is being asked of ZooKeeper."""
        if self.phase in (Phase.NEW, Phase.RESIGNED):
            return
        self.image.check_invariants()
        assert (self.decision is not None) == (self.phase is Phase.WRITING), (self.phase, self.decision)
        if self.phase is Phase.SETTLED:
            self.work.check_nothing_left()
            unsettled = [one for one, _ in self.image.partitions() if elect_one(self.image, one) is not None]
            assert not unsettled, unsettled
            self.work.looks.check_invariants(self.image)


def _names(brokers: Sequence[BrokerId]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers))}"
