"""The run for office: which candidate is the controller, and what follows when that changes.

    waiting for an office --/controller is free, multi succeeds--> active (a Term)
    active --session expired, epoch moved, /controller not ours--> waiting again
    active --own failure: a bug, or a node in ZooKeeper that cannot be decoded--> pausing --> waiting

A failure would most likely occur again at once, and each election costs every broker a round of messages. So
the pauses grow, up to a minute. Meanwhile the office is free for a standby.

The election is one multi-op: create ``/controller`` (ephemeral), and raise ``/controller_epoch`` at the
version that was read. If its answer is lost, the candidate reads the node: it is elected if its session owns
the node.

Everything here runs on the event loop's thread.
"""

import logging
from collections.abc import Callable, Collection
from typing import Final

from sparklog import __version__
from sparklog.controller.application_entry import ApplicationEntry
from sparklog.controller.ports import AnswerCommand, Channels
from sparklog.controller.term import Term, TermEnded
from sparklog.core.controller.actions import PushAnswer
from sparklog.core.controller.cluster_view import ClusterView
from sparklog.core.controller.commands.controller_command import Command, refusal
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.state.applications import APPLICATIONS, Application, HostedBroker
from sparklog.core.controller.state.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    PERSISTENT_PATHS,
    ControllerNode,
    broker_path,
    decode_controller_epoch,
    decode_incarnation,
    encode_controller,
    encode_controller_epoch,
    incarnation_path,
)
from sparklog.core.security.rule_nodes import RULE_PATHS
from sparklog.core.security.rules import Pattern
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.ports import Timer
from sparklog.model.settings.access_settings import AUTHORIZER
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.model.zookeeper import (
    Check,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Operation,
    SessionEvent,
    SessionExpired,
    SetData,
    ZooKeeper,
    ZooKeeperError,
)

logger: Final = logging.getLogger(__name__)

FIRST_EPOCH: Final = ControllerEpoch(1)
RETRY_MS: Final = 500
"""Between tries while ZooKeeper does not answer, or after a failure of our own."""

FAILURE_PAUSE_MS: Final = 1_000
FAILURE_PAUSE_MAX_MS: Final = 60_000
"""How long not to run after a failure of our own; doubles until a term outlasts the longest pause."""

Submit = Callable[[Callable[[], None]], None]


class Candidate:
    """``submit`` runs an event on the loop; ``open_channels`` makes the channels of a term."""

    def __init__(
        self,
        *,
        zookeeper: ZooKeeper,
        node: ControllerNode,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        submit: Submit,
        open_channels: Callable[[ControllerEpoch], Channels],
        web_url: str = "",
    ) -> None:
        self._zookeeper = zookeeper
        self.node = node
        self._config = config
        self._clock = clock
        self._timer = timer
        self._submit = submit
        self._open_channels = open_channels
        self._web_url = web_url
        self._term: Term | None = None
        self._watches_office = False
        self._watches_brokers = False
        self._watched_applications: set[str] = set()
        self._entry = ApplicationEntry(zookeeper, clock, self._after)
        self._is_closed = False
        self._failures = 0
        self._began_ms = 0
        self._is_pausing = False
        self._view: ClusterView | None = None
        self._away_since_ms: int | None = None
        """Since when ZooKeeper is not reached; None while it is."""
        self.failure: str | None = None
        """Why this candidate cannot serve; None as soon as it does again."""
        self.lossy_elections = 0
        """Elections of all its terms that may have lost acknowledged records; each is in the log as well."""

    @property
    def term(self) -> Term | None:
        return self._term

    @property
    def is_active(self) -> bool:
        return self._term is not None and self.failure is None

    def wall_ms_of(self, monotonic_ms: int) -> int:
        """The wall clock at a moment of the monotonic one, both in milliseconds."""
        return int(self._clock.wall_ms() - (self._clock.monotonic_ms() - monotonic_ms))

    @property
    def view(self) -> ClusterView | None:
        """The cluster after the last event, for any thread; None without the office."""
        return self._view if self.is_active else None

    @property
    def latest_events(self) -> tuple[NumberedEvent, ...]:
        """Those that are kept of the present term, or of the last one, for any thread."""
        return () if self._view is None else self._view.events

    # ------------------------------------------------------------------------- events

    def start(self) -> None:
        self._zookeeper.on_session(lambda event: self._submit(lambda: self._on_session(event)))
        self._run()

    def close(self) -> None:
        """Give up the office, if it is ours, so that the next candidate need not wait for the end of the
        session.
        """
        self._is_closed = True
        if self._term is not None:
            self._leave("the controller is being stopped")

    def fail(self, error: Exception) -> None:
        """An event failed, by a bug or by state in ZooKeeper that cannot be decoded. Begin again."""
        if self._term is not None and not isinstance(error, SparklogError):
            logger.error("what led to the failure:\n%s", self._term.recent_events())
        self._pause(str(error) if isinstance(error, SparklogError) else repr(error))

    def _pause(self, reason: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._began_ms > FAILURE_PAUSE_MAX_MS:
            self._failures = 0
        pause_ms = min(FAILURE_PAUSE_MS << min(self._failures, 10), FAILURE_PAUSE_MAX_MS)
        self._failures += 1
        level = logging.INFO if reason == self.failure else logging.ERROR
        logger.log(
            level, "this controller cannot serve, and tries again in %g s: %s", pause_ms / 1_000, reason
        )
        self.failure = reason
        if self._term is not None:
            self._leave("it cannot serve")
        if not self._is_pausing:
            self._is_pausing = True
            self._after(pause_ms, self._resume)

    def _resume(self) -> None:
        self._is_pausing = False
        self._run()

    def command(self, command: Command, answer: AnswerCommand) -> None:
        if self._term is None:
            answer(refusal(command.request, ErrorCode.not_controller, "This is not the active controller."))
            return
        term = self._term
        self._in_term(lambda: term.command(command, answer))

    def push_answered(self, epoch: ControllerEpoch, answer: PushAnswer) -> None:
        """A broker answered a message of the controller of ``epoch``, which may be an earlier term."""
        term = self._term
        if term is not None and term.epoch == epoch:
            self._in_term(lambda: term.push_answered(answer))

    def acls_changed(self, patterns: Collection[Pattern]) -> None:
        """Access rules of these patterns were written, or all of them were read again."""
        if self._term is not None:
            term = self._term
            self._in_term(lambda: term.acls_changed(patterns))

    def publish(self, brokers: tuple[HostedBroker, ...], spark_warnings: tuple[str, ...]) -> None:
        """Let the cluster know that this application runs, how its brokers are, and what its Spark lacks."""
        node = self.node
        self._entry.publish(
            Application(
                node.application,
                node.host,
                node.port,
                node.pid,
                release=__version__,
                web_url=self._web_url,
                spark_warnings=spark_warnings,
                brokers=brokers,
            )
        )

    def broker_died(self, broker: BrokerId, broker_epoch: BrokerEpoch, how: str = "") -> None:
        """The supervisor's report, with ``how`` the process ended in words. Without the office, delete the
        node, so that the controller notices.
        """
        if self._term is not None:
            term = self._term
            self._in_term(lambda: term.broker_died(broker, broker_epoch, how))
            return
        try:
            self._remove_registration(broker, broker_epoch)
        except (ConnectionLost, SessionExpired) as error:
            logger.warning("the death of broker %d shows when its session times out: %s", broker, error)

    @property
    def zookeeper_away_ms(self) -> int:
        """How long ZooKeeper is not reached: what this controller knows is as old. For any thread."""
        since_ms = self._away_since_ms
        return 0 if since_ms is None else self._clock.monotonic_ms() - since_ms

    def _on_session(self, event: SessionEvent) -> None:
        if event == "connected":
            self._away_since_ms = None
        elif self._away_since_ms is None:
            self._away_since_ms = self._clock.monotonic_ms()
        if event == "expired":
            if self._term is not None:
                self._end_term("our ZooKeeper session has expired")
        elif event == "connected":
            self._entry.write()
            self._run()
            if self._term is not None:
                self._in_term(self._term.retry)

    def _on_controller_changed(self) -> None:
        """The office was taken or left; also called when the watch was lost with the connection."""
        self._watches_office = False
        self._run()

    def _on_brokers_changed(self) -> None:
        """The set of brokers changed. Watch first and read afterwards, so that no change is missed."""
        self._watches_brokers = False
        self._look_at_brokers()

    def _look_at_brokers(self) -> None:
        term = self._term
        if term is None:
            return
        try:
            self._watch_brokers()
        except (ConnectionLost, SessionExpired) as error:
            logger.info("the watch on the brokers comes back with ZooKeeper: %s", error)
            self._later(self._look_at_brokers)
        self._in_term(term.brokers_changed)

    def _on_applications_changed(self, path: str) -> None:
        """An application came, went, or wrote of its brokers. Watch first and read afterwards."""
        self._watched_applications.discard(path)
        self._look_at_applications()

    def _look_at_applications(self) -> None:
        term = self._term
        if term is None:
            return
        try:
            self._watch_applications()
        except (ConnectionLost, SessionExpired) as error:
            logger.info("the watches on applications come back with ZooKeeper: %s", error)
            self._later(self._look_at_applications)
        self._in_term(term.applications_changed)

    def _watch_applications(self) -> None:
        watched = self._watched_applications
        if APPLICATIONS not in watched:
            self._zookeeper.watch_children(APPLICATIONS, self._news_of(APPLICATIONS))
            watched.add(APPLICATIONS)
        for name in self._zookeeper.children(APPLICATIONS):
            path = f"{APPLICATIONS}/{name}"
            if path not in watched:
                self._zookeeper.watch_data(path, self._news_of(path))
                watched.add(path)

    def _news_of(self, path: str) -> Callable[[], None]:
        return lambda: self._submit(lambda: self._on_applications_changed(path))

    def _watch_office(self) -> None:
        if not self._watches_office:
            self._zookeeper.watch_data(CONTROLLER, lambda: self._submit(self._on_controller_changed))
            self._watches_office = True

    def _watch_brokers(self) -> None:
        if not self._watches_brokers:
            self._zookeeper.watch_children(BROKER_IDS, lambda: self._submit(self._on_brokers_changed))
            self._watches_brokers = True

    # ------------------------------------------------------------------------- the office

    def _run(self) -> None:
        """Keep the watch on the office, and take the office if it is free."""
        if self._is_closed:
            return
        try:
            self._watch_office()
            if self._term is None:
                if not self._is_pausing:
                    self._take_office()
            else:
                self._in_term(self._term.check_office)
        except (ConnectionLost, SessionExpired) as error:
            logger.info("not running for controller now: %s", error)
            self._later(self._run)

    def _take_office(self) -> None:
        rule_paths = RULE_PATHS if self._config.get_str(AUTHORIZER) else ()
        for path in (*PERSISTENT_PATHS, *rule_paths):
            self._zookeeper.ensure_path(path)
        generation, session_id = self._zookeeper.generation, self._zookeeper.session_id
        office = self._zookeeper.exists(CONTROLLER)
        if office is not None and office.ephemeral_owner != session_id:
            return  # taken; the watch tells when it is free
        epoch_node = self._zookeeper.get(CONTROLLER_EPOCH)
        epoch, version = FIRST_EPOCH, 0
        operations: list[Operation] = [self._claim(), self._first_epoch()]
        if epoch_node is not None:
            epoch = ControllerEpoch(decode_controller_epoch(epoch_node.data) + 1)
            version = epoch_node.stat.version + 1
            next_epoch = SetData(CONTROLLER_EPOCH, encode_controller_epoch(epoch), epoch_node.stat.version)
            operations = [self._claim(), next_epoch]
        if office is not None:
            # Left over from a term of this very session, or from a claim whose answer was lost.
            operations.insert(0, Delete(CONTROLLER))
        try:
            self._zookeeper.multi(operations, generation=generation)
        except MultiFailed as error:
            logger.info("not elected: %s", error)
            self._later(self._run)
            return
        self._begin_term(epoch, version, generation, session_id)

    def _claim(self) -> Operation:
        return Create(CONTROLLER, encode_controller(self.node), ephemeral=True)

    def _first_epoch(self) -> Operation:
        return Create(CONTROLLER_EPOCH, encode_controller_epoch(FIRST_EPOCH))

    def _begin_term(self, epoch: ControllerEpoch, version: int, generation: int, session_id: int) -> None:
        logger.info("elected controller in epoch %d", epoch)
        term = Term(
            zookeeper=self._zookeeper,
            generation=generation,
            session_id=session_id,
            epoch=epoch,
            epoch_version=version,
            config=self._config,
            clock=self._clock,
            channels=self._open_channels(epoch),
            wake_at=self._wake_at,
            on_loss=self._count_losses,
            holder=self.node.application or "an application without a name",
        )
        self._term = term
        self._view = None
        self._began_ms = self._clock.monotonic_ms()
        self._in_term(lambda: self._begin(term))
        self._look_at_applications()

    def _begin(self, term: Term) -> None:
        try:
            self._watch_brokers()
            term.begin()
        except (ConnectionLost, SessionExpired) as error:
            raise TermEnded(f"ZooKeeper went away while its state was read: {error}") from error
        self.failure = None

    def _in_term(self, event: Callable[[], None]) -> None:
        """Run an event of the term and publish what it changed; if it ends the term, run for office again."""
        try:
            event()
            if self._term is not None:
                self._view = self._term.view(self._view)
        except TermEnded as ended:
            self._leave(str(ended))
            self._later(self._run)
        except (ConnectionLost, SessionExpired):
            raise
        except SparklogError as error:
            self._pause(str(error))

    def _leave(self, reason: str) -> None:
        """End the term and, while the office is still ours, leave it free for the next."""
        version = -1 if self._term is None else self._term.epoch_version
        self._end_term(reason)
        try:
            office = self._zookeeper.exists(CONTROLLER)
            if office is not None and office.ephemeral_owner == self._zookeeper.session_id:
                release: list[Operation] = [Check(CONTROLLER_EPOCH, version), Delete(CONTROLLER)]
                self._zookeeper.multi(release, generation=self._zookeeper.generation)
        except ZooKeeperError as error:
            logger.info("%s is left to our session's end: %s", CONTROLLER, error)

    def _end_term(self, reason: str) -> None:
        term, self._term = self._term, None
        if term is not None:
            level = logging.INFO if self._is_closed else logging.WARNING
            logger.log(level, "no longer controller of epoch %d: %s", term.epoch, reason)
            term.close()

    # ------------------------------------------------------------------------- small things

    def _remove_registration(self, broker: BrokerId, broker_epoch: BrokerEpoch) -> None:
        """Delete the ephemeral node of this incarnation; the controller's watch does the rest."""
        node = self._zookeeper.get(incarnation_path(broker))
        if node is None:
            return
        stored = decode_incarnation(broker, node.data, node.stat.version, node.stat.mzxid)
        if stored.broker_epoch != broker_epoch:
            return
        removal: list[Operation] = [
            Check(incarnation_path(broker), stored.number),
            Delete(broker_path(broker)),
        ]
        try:
            self._zookeeper.multi(removal)
        except MultiFailed as refused:
            logger.info("broker %d is gone or registered again already: %s", broker, refused)

    def _count_losses(self, partitions: int) -> None:
        self.lossy_elections += partitions

    def _wake_at(self, deadline_ms: int) -> None:
        self._after(deadline_ms - self._clock.monotonic_ms(), self._tick)

    def _tick(self) -> None:
        if self._term is not None:
            self._in_term(self._term.tick)

    def _later(self, event: Callable[[], None]) -> None:
        self._after(RETRY_MS, event)

    def _after(self, delay_ms: int, event: Callable[[], None]) -> None:
        if not self._is_closed:
            self._timer.after(max(0, delay_ms), lambda: self._submit(event))
