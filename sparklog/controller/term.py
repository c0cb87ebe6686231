"""One term of office: the machine, its ZooKeeper, its brokers, and the commands that wait for answers.

The term carries out the machine's actions in order, and reports the outcome of every question before the next
event. It runs on the event loop's thread and waits for no broker, but for a tenth of a second at most for the
host of one that left, which is asked whether its process has ended.

A question stays open while ZooKeeper does not answer it, because the connection is lost. Later facts are kept
in order, and ``retry`` reports them after the answer. A write is never repeated. The machine reads everything
again instead, and before that the term makes sure that it still holds the office.

A write whose answer was lost with the connection may still be on its way on the old connection, while this
term reads on the new one. It would then happen after its requester was answered that it did not. Every write
checks the version of /controller_epoch, so writing that node anew, with the same epoch, ends all earlier
writes.

Whatever ends the term raises ``TermEnded``; its owner then calls ``close``.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from sparklog.controller.ports import AnswerCommand, Channels
from sparklog.controller.snapshot import (
    has_withdrawn,
    read_acls,
    read_applications,
    read_brokers,
    read_entities,
    read_registered,
    read_snapshot,
)
from sparklog.core.controller.actions import (
    Action,
    Answer,
    Connect,
    Disconnect,
    PushAnswer,
    ReadApplications,
    ReadBrokers,
    ReadEntities,
    ReadRegistered,
    Reload,
    Resign,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    WakeAt,
    WriteZooKeeper,
)
from sparklog.core.controller.cluster_view import ClusterView, view_of
from sparklog.core.controller.commands.controller_command import (
    Command,
    CommandId,
    Result,
    describe_change,
    refusal,
)
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.state.image import ClusterImage, ClusterSnapshot, LiveBroker
from sparklog.core.controller.state.znodes import CONTROLLER, CONTROLLER_EPOCH, decode_controller_epoch
from sparklog.core.security.rules import Pattern
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.settings.access_settings import AUTHORIZER
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ConnectionLost, MultiFailed, SessionExpired, SetData, ZooKeeper

logger: Final = logging.getLogger(__name__)

DEFERRED_MAX: Final = 10_000
"""Facts that may wait for ZooKeeper; more of them end the term."""

RETRY_MS: Final = 500
"""Between tries of a question, if no session event reports earlier that ZooKeeper is back."""

Question = ReadBrokers | ReadRegistered | ReadEntities | ReadApplications | Reload
Fact = Callable[[], list[Action]]


class TermEnded(SparklogError):  # noqa: N818 (says what is the case)
    """This is no longer the controller; the message says why."""


class Term:
    def __init__(
        self,
        *,
        zookeeper: ZooKeeper,
        generation: int,
        session_id: int,
        epoch: ControllerEpoch,
        epoch_version: int,
        config: BrokerConfig,
        clock: Clock,
        channels: Channels,
        wake_at: Callable[[int], None],
        on_loss: Callable[[int], None],
        holder: str,
    ) -> None:
        """``on_loss`` is called with the number of partitions in which records may be lost. ``holder`` names
        this controller in the first event.
        """
        self.epoch = epoch
        self._holder = holder
        self._events = EventLog(epoch)
        self._zookeeper = zookeeper
        self._generation = generation
        self._session_id = session_id
        self.epoch_version = epoch_version
        """The version of /controller_epoch, which every write of this controller checks."""
        self._clock = clock
        self._channels = channels
        self._wake_at = wake_at
        self._on_loss = on_loss
        self._machine = ControllerMachine(config)
        self._has_authorizer = bool(config.get_str(AUTHORIZER))
        self._question: Question | None = None
        self._deferred: deque[Fact] = deque()
        self._waiting: dict[CommandId, tuple[Command, AnswerCommand]] = {}
        self._next_command = 0

    @property
    def image(self) -> ClusterImage:
        """The cluster as this term knows it; it changes on the event loop's thread only."""
        return self._machine.image

    def view(self, last: ClusterView | None) -> ClusterView:
        """What other threads may see of this term; ``last`` itself if nothing has changed since."""
        if last is not None and last.is_of(self.image, self._events):
            return last
        work = self._machine.work
        return view_of(self.image, self._events, work.looks, work.ended_operations)

    # ------------------------------------------------------------------------- facts

    def begin(self) -> None:
        """Read everything and begin to decide. If ZooKeeper is away this raises, and the term has not
        begun.
        """
        snapshot = self._read_snapshot()
        elected = f"the controller of {self._holder} took office in epoch {self.epoch}"
        event = ClusterEvent(EventKind.controller, self._holder, elected)
        self._carry_out([event, *self._machine.on_activated(snapshot, self._now())])

    def brokers_changed(self) -> None:
        self._tell(lambda: [ReadBrokers("the registered brokers have changed")])

    def applications_changed(self) -> None:
        self._tell(lambda: [ReadApplications()])

    def broker_died(self, broker: BrokerId, broker_epoch: BrokerEpoch, how: str = "") -> None:
        """The supervisor's report, with the words on how the process ended. The registration may be so new
        that it was not read yet.
        """
        if not self._machine.image.is_current(broker, broker_epoch):
            self.brokers_changed()
        self._tell(lambda: self._machine.on_broker_died(broker, broker_epoch, self._now(), how))

    def command(self, command: Command, answer: AnswerCommand) -> None:
        change = describe_change(command.request)
        if change is not None:
            logger.info("%s asks to %s", command.requester, change)
        command = replace(command, asked_ms=self._clock.wall_ms())
        self._next_command += 1
        command_id = CommandId(self._next_command)
        self._waiting[command_id] = (command, answer)
        self._tell(lambda: self._machine.on_command(command_id, command, self._now()))

    def push_answered(self, answer: PushAnswer) -> None:
        self._tell(lambda: self._machine.on_push_answered(answer, self._now()))

    def acls_changed(self, patterns: Collection[Pattern]) -> None:
        """Somebody wrote access rules of these patterns; it may have been this controller."""
        self._tell(lambda: self._read_acls(patterns))

    def tick(self) -> None:
        self.retry()
        self._tell(lambda: self._machine.on_tick(self._now()))

    def check_office(self) -> None:
        """``/controller`` has changed: end the term if another candidate holds it."""
        try:
            self._require_office()
        except ConnectionLost:
            logger.info("ZooKeeper is away; whether we still are the controller shows when it is back")

    def retry(self) -> None:
        """ZooKeeper may answer again: ask the open question once more, then report the facts that were
        kept.
        """
        if self._question is not None:
            question, self._question = self._question, None
            self._carry_out([question])
        while self._question is None and self._deferred:
            self._carry_out(self._deferred.popleft()())

    def close(self) -> None:
        """Drop everything. Waiting commands are answered with NOT_CONTROLLER."""
        self._channels.close()
        self._deferred.clear()
        waiting, self._waiting = self._waiting, {}
        for command, answer in waiting.values():
            answer(refusal(command.request, ErrorCode.not_controller))

    def recent_events(self) -> str:
        """The latest facts and decisions of this term, for people."""
        return "\n".join(self._machine.events.lines)

    # ------------------------------------------------------------------------- actions

    def _tell(self, fact: Fact) -> None:
        if self._question is None:
            self._carry_out(fact())
        elif len(self._deferred) < DEFERRED_MAX:
            self._deferred.append(fact)
        else:
            raise TermEnded(f"more than {DEFERRED_MAX} events wait for ZooKeeper")

    def _carry_out(self, actions: list[Action]) -> None:
        while actions:
            answered: list[Action] = []
            for action in actions:
                match action:
                    case (
                        WriteZooKeeper()
                        | ReadBrokers()
                        | ReadRegistered()
                        | ReadEntities()
                        | ReadApplications()
                        | Reload()
                    ):
                        answered = self._ask(action)
                    case _:
                        self._do(action)
            actions = answered

    def _do(self, action: Action) -> None:
        match action:
            case SendUpdateMetadata() | SendLeaderAndIsr() | SendStopReplica():
                self._channels.send(action)
            case Connect(broker):
                self._channels.connect(broker)
            case Disconnect(broker_id, epoch):
                self._channels.disconnect(broker_id, epoch)
            case Answer(command, result):
                self._answer(command, result)
            case WakeAt(deadline_ms):
                self._wake_at(deadline_ms)
            case ClusterEvent():
                self._note(action)
            case Resign(reason):
                raise TermEnded(reason)

    def _note(self, event: ClusterEvent) -> None:
        """Log, keep and count one event."""
        level = logging.ERROR if event.losses else logging.WARNING if event.is_warning else logging.INFO
        logger.log(level, "%s", event)
        self._events.add(event, self._clock.wall_ms())
        if event.losses:
            self._on_loss(event.losses)

    def _answer(self, command: CommandId, result: Result) -> None:
        _, answer = self._waiting.pop(command)
        answer(result)

    def _ask(self, question: WriteZooKeeper | Question) -> list[Action]:
        """The actions that follow from the outcome; none if ZooKeeper is away, then the question stays."""
        try:
            match question:
                case WriteZooKeeper():
                    return self._write(question)
                case ReadBrokers():
                    seen = read_brokers(self._zookeeper)
                    return self._machine.on_brokers(seen, self._now(), self._ended(seen))
                case ReadRegistered():
                    return self._machine.on_registered(read_registered(self._zookeeper), self._now())
                case ReadEntities():
                    return self._machine.on_entities(read_entities(self._zookeeper), self._now())
                case ReadApplications():
                    return self._machine.on_applications(read_applications(self._zookeeper), self._now())
                case Reload(reason, fences):
                    logger.warning("reading everything again: %s", reason)
                    self._require_office()
                    if fences and not self._has_fenced():
                        return self._ask(question)
                    snapshot = self._read_snapshot()
                    ended = self._ended(snapshot.brokers)
                    return self._machine.on_reloaded(snapshot, self._now(), ended)
        except SessionExpired as error:
            raise TermEnded(str(error)) from error
        except ConnectionLost as error:
            assert not isinstance(question, WriteZooKeeper)
            logger.warning("%s; going on when ZooKeeper is back", error)
            self._question = question
            self._wake_at(self._now() + RETRY_MS)
            return []

    def _read_snapshot(self) -> ClusterSnapshot:
        return read_snapshot(self._zookeeper, self.epoch, self.epoch_version, with_acls=self._has_authorizer)

    def _read_acls(self, patterns: Collection[Pattern]) -> list[Action]:
        """Read here, where nothing writes meanwhile. A reconnect brings all patterns again."""
        try:
            found = read_acls(self._zookeeper, patterns)
        except ConnectionLost as error:
            logger.info("access rules are read when ZooKeeper is back: %s", error)
            return []
        return self._machine.on_acls({one: found.get(one) for one in patterns}, self._now())

    def _ended(self, seen: Mapping[BrokerId, LiveBroker]) -> frozenset[BrokerId]:
        """The brokers that are registered no more, and of which somebody can tell that they ended."""
        gone = [live for broker, live in self.image.brokers.items() if broker not in seen]
        return frozenset(
            live.broker.id
            for live in gone
            if self._channels.has_ended(live.broker.id, live.broker.epoch)
            or has_withdrawn(self._zookeeper, live)
        )

    def _write(self, question: WriteZooKeeper) -> list[Action]:
        try:
            self._zookeeper.multi(question.operations, generation=self._generation)
        except MultiFailed as refused:
            return self._machine.on_write_refused(refused.index, refused.reason, self._now())
        except ConnectionLost as error:
            logger.warning("a write has an unknown outcome: %s", error)
            return self._machine.on_write_lost(self._now())
        return self._machine.on_written(self._now())

    def _require_office(self) -> None:
        node = self._zookeeper.get(CONTROLLER_EPOCH)
        office = self._zookeeper.exists(CONTROLLER)
        if node is None or decode_controller_epoch(node.data) != self.epoch:
            raise TermEnded(f"another controller was elected after epoch {self.epoch}")
        if self._zookeeper.generation != self._generation:
            raise TermEnded("our ZooKeeper session has expired")
        if office is None or office.ephemeral_owner != self._session_id:
            raise TermEnded(f"{CONTROLLER} is no longer ours")

    def _has_fenced(self) -> bool:
        """End all writes that check the known version of the epoch's node, by writing that node anew.

        False if the version has changed already: by an earlier try whose answer was lost, or by an election.
        """
        node = self._zookeeper.get(CONTROLLER_EPOCH)
        if node is None or decode_controller_epoch(node.data) != self.epoch:
            return False
        version = node.stat.version
        if version == self.epoch_version:
            write = SetData(CONTROLLER_EPOCH, node.data, version)
            try:
                (stat,) = self._zookeeper.multi([write], generation=self._generation)
            except MultiFailed:
                return False
            assert stat is not None, write
            version = stat.version
        self.epoch_version = version
        return True

    def _now(self) -> int:
        return self._clock.monotonic_ms()
