"""The life of a broker, as a loop (``model.loops``): its start, its end, and the order of each.

A start, in this order, because each step relies on the one before: begin a session with ZooKeeper; lock the
log directories and open their logs, recovering what a crash left; read the quotas; listen; register under a
fresh broker epoch. From then on the controller sends this broker its roles. Last, the chores begin.

An end has one order, too, and begins where the start stood: refuse requests, end chores and loops, close the
listeners, close the logs, report a suspect directory, end the session. Three kinds differ in what comes
first, and in what the logs are worth afterwards:

- *A clean stop* asks the controller for other leaders, flushes, and marks the directories as clean. A broker
  that failed meanwhile marks nothing.
- *A stop* that is not clean does neither.
- *A failure* refuses requests at once, in the thread that met it: others may have taken over, or the disk is
  not to be trusted. If the last log directory is suspect (its fsync failed), ZooKeeper knows that before the
  session ends, because the next start would otherwise trust it.

A stop or a failure in the middle of a start lets the step end that is under way. ``BrokerServer`` drives this
loop by a thread and the simulation by events, so that both have the same order.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sparklog.broker.disks.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.life.body import BodyPorts, BrokerBody
from sparklog.broker.life.controlled_shutdown import move_leaders_away
from sparklog.broker.life.open_directories import Host, open_directories
from sparklog.broker.life.registration import register
from sparklog.model.cluster_facts import Broker
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId
from sparklog.model.loops import Await, Loop, Loops, Signal
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ZooKeeper
from sparklog.zookeeper.broker_registration import read_or_create_cluster_id, report_suspect

logger: Final = logging.getLogger(__name__)


class LifePorts(Protocol):
    """What a life needs of its process, by the order in which it asks for it. A call that ends something does
    nothing where the start did not get so far.
    """

    @property
    def zookeeper(self) -> ZooKeeper: ...

    @property
    def host(self) -> Host: ...

    @property
    def host_id(self) -> str: ...

    @property
    def zookeeper_loops(self) -> Loops:
        """Runs the report of a failed disk, which may have to wait for ZooKeeper."""

    def connect(self) -> None:
        """Begin the session with ZooKeeper."""

    def body_ports(self, cluster_id: str) -> BodyPorts:
        """What the body reaches."""

    def listen(self, body: BrokerBody) -> Broker:
        """Accept connections; the registration says where."""

    def start_loops(self, body: BrokerBody) -> None:
        """Begin what the broker needs before the controller notifies it of roles."""

    def start_chores(self, body: BrokerBody) -> None:
        """Begin what works on logs beside requests, and what reports figures."""

    def on_released(self) -> None:
        """The controller answered that this broker may stop."""

    def stop_chores(self) -> None:
        """Returns when no chore touches a log any more."""

    def stop_loops(self) -> None:
        """Returns when no loop runs any more, fetchers included; ends their calls."""

    def stop_listening(self) -> None:
        """Returns when no request is served any more."""

    def end_session(self) -> None:
        """The registration goes with it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a broker ends by itself."""

    why: str
    suspect: str | None = None
    """The id of the last log directory, if that is suspect."""
    lost_session: bool = False
    """Whether the ZooKeeper session expired, which another start mends."""


class BrokerLife:
    """One life of a broker. ``run`` is its loop; ``stop`` and ``fail`` may be called by any thread, at any
    time, and return at once.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        log_dirs: Sequence[str],
        config: BrokerConfig,
        ports: LifePorts,
        guard: Guard,
        on_recovery: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``on_recovery`` receives the progress of the recovery of logs."""
        self.body: BrokerBody | None = None
        """The parts that serve, once the log directories are open."""
        self.failure: Failure | None = None
        """The first failure; it stays. Guarded by ``guard``."""
        self.error: Exception | None = None
        """Why the start did not succeed."""
        self.unreported: set[str] = set()
        """Ids of suspect directories of which ZooKeeper does not know. Guarded by ``guard``."""
        self.has_stopped_cleanly = False
        """Whether the next start may trust the log directories as they are."""
        self.has_ended = False
        self._broker_id = broker_id
        self._paths = log_dirs
        self._config = config
        self._ports = ports
        self._guard = guard
        self._on_recovery = on_recovery
        self._cluster_id = ""
        self._log_dirs: LogDirs | None = None
        self._broker: Broker | None = None
        """The registration, without its epoch, once the broker listens."""
        self._stop: bool | None = None
        """Whether the stop that was asked for is to be clean; None: none was."""
        self._news = Signal()
        """Given when there is a reason to end, and when a failed disk has been reported."""

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """The epoch of the registration; -1 before it."""
        return NO_BROKER_EPOCH if self.body is None else self.body.replication.broker_epoch

    @property
    def is_ending(self) -> bool:
        return self.failure is not None or self._stop is not None

    def stop(self, *, clean: bool) -> None:
        """End in order. The first stop decides whether that is a clean one."""
        with self._guard:
            if self._stop is None:
                self._stop = clean
        self._news.give()

    def fail(self, why: str, suspect: str | None = None) -> None:
        """End because this broker must not serve any more; ``suspect``: the id of its last log directory, if
        an fsync of it failed.
        """
        self._fail(Failure(why, suspect))

    def lose_session(self, why: str) -> None:
        """End because the ZooKeeper session expired: others have taken over."""
        self._fail(Failure(why, lost_session=True))

    def lose_registration(self, why: str) -> None:
        """End because the registration was deleted: the controller notifies this broker of nothing more."""
        self._fail(Failure(why))

    def run(self, on_started: Callable[[], None] = lambda: None) -> Loop:
        """From the session's begin to its end. ``on_started`` is called when the broker is up."""
        try:
            self._start()
        except Exception as error:  # noqa: BLE001 (kept for the owner, whatever it is; the end follows)
            self.error = error
        else:
            logger.info("broker %s is up in epoch %d", self._broker, self.broker_epoch)
            on_started()
            while not self.is_ending:
                yield Await(self._news)
            try:
                yield from self._take_leave()
            except Exception:
                logger.exception("broker %d ends without leave", self._broker_id)
        self.end()

    # Start

    def _start(self) -> None:
        for step in (self._open, self._compose, self._listen, self._register, self._begin_chores):
            self._refuse_if_ending()
            step()
        self._refuse_if_ending()

    def _refuse_if_ending(self) -> None:
        if self.is_ending:
            why = "a stop was asked for" if self.failure is None else self.failure.why
            raise SparklogError(f"broker {self._broker_id} was stopped while it started: {why}")

    def _open(self) -> None:
        ports = self._ports
        ports.connect()
        ports.zookeeper.on_session(self._on_session)
        self._cluster_id = read_or_create_cluster_id(ports.zookeeper)
        self._log_dirs = open_directories(
            self._paths,
            self._broker_id,
            self._cluster_id,
            ports.host,
            ports.zookeeper,
            self._config,
            self._on_recovery,
        )

    def _compose(self) -> None:
        assert self._log_dirs is not None
        self.body = BrokerBody.compose(
            self._broker_id,
            self._cluster_id,
            self._config,
            self._log_dirs,
            self._ports.body_ports(self._cluster_id),
            self.fail,
        )

    def _listen(self) -> None:
        body = self.body
        assert body is not None
        body.read_rules()
        body.entity_configs.read_all()  # before the first client comes
        self._broker = self._ports.listen(body)
        self._ports.start_loops(body)
        if body.rule_watch is not None:
            self._ports.zookeeper_loops.start("access-rules", body.rule_watch.loop)
        self._ports.zookeeper_loops.start("entity-configs", body.entity_configs.loop)

    def _register(self) -> None:
        assert self._log_dirs is not None
        assert self._broker is not None
        assert self.body is not None
        ports = self._ports
        epoch = register(
            ports.zookeeper,
            self._broker,
            self._log_dirs,
            boot_id=ports.host.boot_id,
            host_id=ports.host_id,
        )
        self.body.replication.registered(epoch, self.lose_registration)

    def _begin_chores(self) -> None:
        assert self.body is not None
        self._ports.start_chores(self.body)
        self.body.context.producer_ids.look_ahead(self.broker_epoch)

    # Reasons to end

    def _on_session(self, event: str) -> None:
        if event == "expired":
            self.lose_session("ZooKeeper expired its session: others may have taken over")

    def _fail(self, failure: Failure) -> None:
        with self._guard:
            if self.has_ended:
                return
            if failure.suspect is not None:
                self.unreported.add(failure.suspect)
            if self.failure is not None:
                return
            self.failure = failure
        logger.error("broker %d stops: %s", self._broker_id, failure.why)
        if self.body is not None:
            self.body.dispatcher.close()
        self._news.give()

    # End

    def _take_leave(self) -> Loop:
        """What a broker that is up does before its end."""
        if self.failure is not None:
            yield from self._give_up(self.failure)
        elif self._stop and self._config.get_bool("controlled.shutdown.enable"):
            attempts_max = self._config.get_int("controlled.shutdown.max.retries")
            yield from move_leaders_away(
                self._broker_id,
                self.broker_epoch,
                attempts_max=attempts_max,
                on_released=self._ports.on_released,
            )

    def _give_up(self, failure: Failure) -> Loop:
        """Refuse what waits, and report a suspect directory to ZooKeeper; a stop ends the wait for that."""
        assert self.body is not None
        self.body.context.roles.stop_serving(failure.why)
        suspect = failure.suspect
        if suspect is None:
            return
        withdrawal = self.body.replication.reports.withdrawal

        def reported() -> None:
            self._note_reported(suspect)
            self._news.give()

        self._ports.zookeeper_loops.start("suspect-directory", lambda: withdrawal(suspect, reported))
        while suspect in self.unreported and self._stop is None:
            yield Await(self._news)

    def end(self) -> None:
        """All that ends, in order; ``run`` does this. For an owner whose driver gave the loop up."""
        if self.has_ended:
            return
        if self.body is not None:
            self.body.dispatcher.close()
        ports = self._ports
        for step in (
            ports.stop_chores,
            ports.stop_loops,
            ports.stop_listening,
            self._report_suspects,  # while the directories are locked
            self._close_logs,
            ports.end_session,
        ):
            self._guarded(step)
        with self._guard:
            self.has_ended = True

    def _close_logs(self) -> None:
        if self._log_dirs is None:
            return
        is_clean = self._stop is True and self.failure is None and self.error is None
        known = frozenset(self.unreported)
        try:
            if self.body is None:
                self._log_dirs.close()
            else:
                self.has_stopped_cleanly = self.body.parts.chores.close(
                    self.broker_epoch if is_clean else None
                )
        except DirectoryFailed as failed:
            logger.error("the logs are not closed as they should be: %s", failed)
            if failed.is_suspect:
                with self._guard:
                    self.unreported.add(str(failed.directory.uuid))
        finally:
            if self.unreported - known:  # a disk that failed only now
                self._report_suspects()

    def _report_suspects(self) -> None:
        epoch = self.broker_epoch if self.broker_epoch >= 0 else None
        with self._guard:
            suspects = sorted(self.unreported)
        for suspect in suspects:
            report_suspect(self._ports.zookeeper, self._broker_id, suspect, epoch)
            self._note_reported(suspect)

    def _note_reported(self, suspect: str) -> None:
        with self._guard:
            self.unreported.discard(suspect)

    @staticmethod
    def _guarded(step: Callable[[], None]) -> None:
        """One step's failure must not keep the others from running."""
        try:
            step()
        except (OSError, SparklogError) as error:
            logger.error("a step of stopping failed; going on with the next: %s", error)
        except Exception:
            logger.exception("a step of stopping failed; going on with the next")
