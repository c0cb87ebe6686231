"""A simulated broker: the shipped rooms of ``sparklog.broker``, composed over simulated ports.

The machine (its disk and its boot) outlives its processes. ``SimulatedBroker.launch`` is one process: it
opens and recovers the logs, listens, registers, and serves until it dies. The order is ``BrokerServer``'s.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.disks.disk import SimulatedDisk
from simulation.invariants.leadership import Announcements, LeadershipIsAnnounced
from simulation.machines.blocking_work import ControllerCalls, WorkThreads
from simulation.machines.loops import TURN_US
from simulation.machines.network import Network
from simulation.machines.object_store import ObjectStore
from simulation.machines.producer_id_blocks import ProducerIdsAreUnique, WatchedIds
from simulation.machines.tasks import BrokerLoops, ChoreTasks, CleanerTask, Stage
from simulation.machines.tiering import StoreTasks
from simulation.machines.zookeeper import Ensemble, SimulatedZooKeeper
from simulation.schedule import (
    InlineExecutor,
    Process,
    ProcessTimer,
    Schedule,
    Tripwire,
    dice,
)
from sparklog.broker.coordination.coordinators import CoordinatorShards
from sparklog.broker.life.body import BodyPorts, BrokerBody, Lanes
from sparklog.broker.life.controlled_shutdown import move_leaders_away
from sparklog.broker.life.open_directories import Host, open_directories
from sparklog.broker.life.registration import register
from sparklog.broker.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.ports import Ports
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.core.controller.state.znodes import CONTROLLER, CONTROLLER_EPOCH, decode_controller
from sparklog.model.cluster import Broker, plaintext
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.loops import Loop
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest
from sparklog.zookeeper.registration import read_or_create_cluster_id, report_suspect

STOPPED_CLEANLY: Final = "it was told to"

RELAUNCH_MS: Final = 300
"""What a supervisor waits before it launches a broker again that could not start."""

PORT: Final = 9092


@dataclass(frozen=True, slots=True)
class World:
    """What all machines share."""

    schedule: Schedule
    network: Network
    ensemble: Ensemble
    config: BrokerConfig
    seed: int
    identities: ProducerIdsAreUnique
    leadership: LeadershipIsAnnounced
    directories: tuple[str, ...] = ("data",)
    """The names of each broker's log directories."""
    load_turn_us: int = TURN_US
    """How long a coordinator takes at least to read the next piece of its log."""
    store: ObjectStore | None = None


@dataclass(slots=True)
class Machine:
    """A broker's host: what stays when the broker's process dies."""

    broker_id: BrokerId
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    boots: int = 0
    generation: int = 0
    """How many machines had its place before."""

    @property
    def host(self) -> str:
        """The name of the place that it takes."""
        return f"broker-{self.broker_id}"

    @property
    def address(self) -> str:
        return f"{self.host}-{self.generation}" if self.generation else self.host

    @property
    def boot_id(self) -> str:
        return f"{self.address} boot {self.boots}"


OnCleaned = Callable[["SimulatedBroker", TopicPartition, Stage], None]


class SimulatedBroker:
    """One process of a broker."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        number: int,
        on_stopped: Callable[["SimulatedBroker", str], None],
        on_cleaned: OnCleaned,
    ) -> None:
        self.machine = machine
        self.process = Process(world.schedule, f"{machine.address}#{number}")
        self._body: BrokerBody | None = None
        self._world = world
        self._number = number
        self._on_stopped = on_stopped
        self._on_cleaned = on_cleaned
        self._loops = BrokerLoops(self.process, machine.address, world.network)
        self._loops.turns_us["coordinator-loads"] = world.load_turn_us
        self._cleaner: CleanerTask | None = None
        self._cleaner_draw = dice(world.seed, f"cleaner {self.process.name}")
        self._threads = WorkThreads(self.process)
        self._store: StoreTasks | None = None
        self.released_by = -1
        """Which version of the controller's epoch said that this broker may stop; -1: none."""
        self._is_leaving = False
        self._is_failing = False
        self._suspect: str | None = None
        self.has_told = False
        """Whether it ended by itself, and told ZooKeeper whatever it knew of its disks."""
        self._zookeeper: SimulatedZooKeeper | None = None

    @property
    def body(self) -> BrokerBody | None:
        """Its parts, once its log directories are open."""
        return self._body

    @property
    def replicas(self) -> ReplicaManager | None:
        return None if self._body is None else self._body.replicas

    @property
    def coordinators(self) -> CoordinatorShards | None:
        return None if self._body is None else self._body.coordinators

    @property
    def epoch(self) -> BrokerEpoch:
        """Of its registration; -1 before that."""
        return NO_BROKER_EPOCH if self._body is None else self._body.replication.broker_epoch

    @property
    def is_registered(self) -> bool:
        return self.process.is_alive and self.epoch >= 0

    @property
    def has_registered(self) -> bool:
        """Whether its start came to an end. (It may be dead.)"""
        return self.epoch >= 0

    @property
    def has_failed(self) -> bool:
        """Whether it serves nobody any more, as its disk failed or it closes."""
        return self._is_failing

    def launch(self) -> None:
        self.process.soon(self._start)

    def die(self) -> None:
        """As by SIGKILL: nothing is flushed, nobody is told."""
        if self.process.is_alive:
            self.process.kill()
            self._world.network.died(self.process)
            self.abandon()

    def abandon(self) -> None:
        """Leave no round of the cleaner behind that garbage collection would end, and no thread."""
        self._threads.end()
        if self._store is not None:
            self._store.end()
        if self._cleaner is not None:
            self._cleaner.abandon()

    def shut_down(self) -> None:
        """As ``BrokerServer.stop``: move leaderships away, put everything on disk, and say so."""
        if self.is_registered and not self._is_leaving:
            self._is_leaving = True
            self._loops.start("controlled-shutdown", self._shut_down_controlled)

    def _shut_down_controlled(self) -> Loop:
        def released() -> None:
            self.released_by = asked[-1]

        def note(message: Any) -> None:
            if isinstance(message, ControlledShutdownRequest):
                asked.append(self._controller_epoch())

        asked: list[int] = []
        self._loops.link.on_send = note
        attempts_max = self._world.config.get_int("controlled.shutdown.max.retries")
        yield from move_leaders_away(
            self.machine.broker_id, self.epoch, attempts_max=attempts_max, on_released=released
        )
        self._close_cleanly()

    def _controller_epoch(self) -> int:
        """The number of the controller that is asked now; -1 if whoever is asked is none."""
        tree = self._world.ensemble.tree
        node, epoch = tree.get(CONTROLLER), tree.get(CONTROLLER_EPOCH)
        if node is None or epoch is None or decode_controller(node.data).host != self._loops.link.address:
            return -1
        return epoch.stat.version

    def _close_cleanly(self) -> None:
        if self._is_failing or self._body is None:
            return  # it stops in another way already
        self._is_failing = True
        self._body.dispatcher.close()
        self.abandon()
        try:
            self._body.replicas.close(self.epoch)
            why = STOPPED_CLEANLY
        except (SparklogError, OSError) as error:
            why = f"it was told to, but {error}"
            if isinstance(error, DirectoryFailed) and error.is_suspect:
                self._suspect = str(error.directory.uuid)
        self.has_told = self._suspect is None
        if self._suspect is not None and self._zookeeper is not None:
            try:
                report_suspect(self._zookeeper, self.machine.broker_id, self._suspect, self.epoch)
                self.has_told = True
            except SparklogError as error:
                why = f"{why}; and ZooKeeper does not know that its disk failed: {error}"
        self._leave(why)

    def _start(self) -> None:
        try:
            self._open()
        except (SparklogError, OSError) as error:
            # The launcher tries again, as the runtime does with a broker that cannot start.
            self.has_told = not isinstance(error, ZooKeeperError)
            self._leave(f"{type(error).__name__}: {error}")

    def _stop(self, why: str) -> None:
        self.die()
        self._on_stopped(self, why)

    def _fail(self, why: str, suspect: str | None = None) -> None:
        """As ``BrokerServer``: serve nobody from now on, leave word of a failed fsync, and stop."""
        self._suspect = suspect or self._suspect
        if self._is_failing:
            return
        self._is_failing = True
        if self._body is not None:
            self._body.dispatcher.close()
        self._loops.start("broker-failure", lambda: self._stop_failed(why, suspect))

    def _stop_failed(self, why: str, suspect: str | None) -> Loop:
        if self._body is not None:
            self._body.replicas.stop_serving(why)
            if suspect is not None and self.epoch >= 0:
                yield from self._body.replication.reports.withdrawal(suspect)
        self.has_told = self._suspect in (None, suspect)
        self._leave(why)

    def _leave(self, why: str) -> None:
        """A process that ends by itself ends its session: nobody waits for that to expire."""
        if self._zookeeper is not None:
            self._zookeeper.close()
        self._stop(why)

    def _open(self) -> None:
        world, machine, process = self._world, self.machine, self.process
        zookeeper = self._zookeeper = world.ensemble.client(process, machine.address)
        zookeeper.on_session(self._on_session)
        cluster_id = read_or_create_cluster_id(zookeeper)
        log_dirs = self._open_directories(cluster_id, zookeeper)
        if world.store is not None:
            self._store = StoreTasks(process, world.store, world.seed, cluster_id)
        body = self._body = BrokerBody.compose(
            machine.broker_id, cluster_id, world.config, log_dirs, self._body_ports(zookeeper), self._fail
        )
        world.network.listen(machine.address, process, body.dispatcher)
        has_racks = bool(world.config.get_str("replica.selector.class"))
        rack = f"rack-{machine.broker_id % 2}" if has_racks else None
        broker = Broker(machine.broker_id, plaintext(machine.address, PORT), rack=rack)
        body.replication.start()
        body.coordinators.start(self._loops, self._loops)
        epoch = register(zookeeper, broker, log_dirs, boot_id=machine.boot_id, host_id=machine.address)
        body.replication.registered(epoch, self._on_registration_lost)
        self._start_chores(body)
        body.context.producer_ids.look_ahead(self.epoch)

    def _open_directories(self, cluster_id: str, zookeeper: SimulatedZooKeeper) -> LogDirs:
        machine, process, world = self.machine, self.process, self._world
        draw = dice(world.seed, f"directory {process.name}")
        host = Host(
            machine.disk.mount(process),
            process,
            InlineExecutor(),
            machine.boot_id,
            new_uuid=lambda: uuid.UUID(int=draw.getrandbits(128)),
        )
        paths = [f"/{machine.host}/{name}" for name in world.directories]
        return open_directories(paths, machine.broker_id, cluster_id, host, zookeeper, world.config)

    def _body_ports(self, zookeeper: SimulatedZooKeeper) -> BodyPorts:
        world, process, loops, threads = self._world, self.process, self._loops, self._threads
        calls = ControllerCalls(threads, loops.link)
        return BodyPorts(
            inside=Ports(process, ProcessTimer(process), InlineExecutor(), new_guard=Tripwire),
            loops=loops,
            zookeeper_loops=loops,
            zookeeper=zookeeper,
            link=loops.link,
            controller=calls,
            waiting_room=threads,
            hang_up=loops.hang_up,
            lanes=Lanes(fetchers=1),
            producer_ids=WatchedIds(self.machine.broker_id, calls, threads, world.identities),
            new_seed=lambda: self._cleaner_draw.getrandbits(64),
            store=None if self._store is None else self._store.ports,
            leadership_listeners=(lambda replicas: Announcements(world.leadership, process.name, replicas),),
        )

    def _start_chores(self, body: BrokerBody) -> None:
        config = self._world.config
        ChoreTasks(self.process, body.replicas, config).start()
        self._cleaner = CleanerTask(
            self.process,
            body.cleaner,
            config,
            self._cleaner_draw,
            lambda tp, stage: self._on_cleaned(self, tp, stage),
        )
        if config.get_bool("log.cleaner.enable"):
            self._cleaner.start()
        if self._store is not None:
            self._store.start(body)
            return
        for name, loop in body.question_loops():
            self._loops.start(name, loop)

    def _on_registration_lost(self, why: str) -> None:
        self._fail(why)

    def _on_session(self, event: str) -> None:
        if event == "expired":
            self._stop("its ZooKeeper session has expired")
