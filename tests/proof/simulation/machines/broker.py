"""A simulated broker: the shipped rooms of ``sparklog.broker``, composed over simulated ports.

The machine (its disk and its boot) outlives its processes. ``SimulatedBroker.launch`` is one process: it
drives the shipped ``BrokerLife`` over simulated ports, until that ends by itself or the process dies. From
the refusal of requests on, an end is one event, in which no loop and no request of the process has a turn.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

from simulation.disks.disk import SimulatedDisk
from simulation.invariants.access.rule_stores import RuleStores
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
from sparklog.broker.life.broker_life import BrokerLife
from sparklog.broker.life.open_directories import Host
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.controller.state.znodes import CONTROLLER, CONTROLLER_EPOCH, decode_controller
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.loops import Loop
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest

STOPPED_CLEANLY: Final = "it was told to"

RELAUNCH_MS: Final = 300
"""What a supervisor waits before it launches a broker again that could not start."""

PORT: Final = 9092


@dataclass(frozen=True, slots=True)
class Access:
    """What machines need to know of principals. ``principal`` is their own."""

    principal: str
    stores: RuleStores


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
    access: Access | None = None
    """None without access rules."""


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
        self.ports = SimulatedPorts(world, machine, self.process, partial(on_cleaned, self), self._released)
        self.released_by = -1
        """Which version of the controller's epoch said that this broker may stop; -1: none."""
        self.has_told = False
        """Whether it ended by itself, and told ZooKeeper whatever it knew of its disks."""
        self._world = world
        self._on_stopped = on_stopped
        self._asked = -1
        """Which version of the controller's epoch was asked last whether this broker may stop."""
        paths = [f"/{machine.host}/{name}" for name in world.directories]
        self.life = BrokerLife(machine.broker_id, paths, world.config, self.ports, Tripwire())
        self.ports.loops.link.on_send = self._note_question

    @property
    def body(self) -> BrokerBody | None:
        """Its parts, once its log directories are open."""
        return self.life.body

    @property
    def replicas(self) -> PartitionTable | None:
        return None if self.body is None else self.body.replicas

    @property
    def coordinators(self) -> CoordinatorShards | None:
        return None if self.body is None else self.body.coordinators

    @property
    def epoch(self) -> BrokerEpoch:
        """Of its registration; -1 before that."""
        return self.life.broker_epoch

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
        return self.body is None or self.body.dispatcher.is_closed

    def launch(self) -> None:
        self.ports.loops.start("life", self._live)

    def die(self) -> None:
        """As by SIGKILL: nothing is flushed, nobody is told."""
        if self.process.is_alive:
            self.process.kill()
            self._world.network.died(self.process)
            self.abandon()

    def abandon(self) -> None:
        """Leave no round of the cleaner behind that garbage collection would end, and no thread."""
        self.ports.stop_chores()

    def shut_down(self) -> None:
        """As ``BrokerServer.stop``."""
        if self.is_registered:
            self.life.stop(clean=True)

    def _live(self) -> Loop:
        life = self.life
        yield from life.run()
        error = life.error
        if error is not None and not isinstance(error, SparklogError | OSError):
            raise error
        # Where ZooKeeper was there all the time, it must know of each disk that failed. A start that failed
        # reports its disks itself, unless ZooKeeper is away.
        was_away = isinstance(error, ZooKeeperError) or self.ports.has_lost_zookeeper
        self.has_told = not (was_away and (life.unreported or error is not None))
        self.die()
        self._on_stopped(self, self._why())

    def _why(self) -> str:
        life = self.life
        if life.failure is not None:
            return life.failure.why
        if life.error is not None:
            return f"{type(life.error).__name__}: {life.error}"
        return STOPPED_CLEANLY if life.has_stopped_cleanly else "it was told to, but its disks failed"

    def _note_question(self, message: Any) -> None:
        if isinstance(message, ControlledShutdownRequest):
            self._asked = self._controller_epoch()

    def _released(self) -> None:
        self.released_by = self._asked

    def _controller_epoch(self) -> int:
        """The number of the controller that is asked now; -1 if whoever is asked is none."""
        tree = self._world.ensemble.tree
        node, epoch = tree.get(CONTROLLER), tree.get(CONTROLLER_EPOCH)
        address = self.ports.loops.link.address
        if node is None or epoch is None or decode_controller(node.data).host != address:
            return -1
        return epoch.stat.version


def _holds(body: BrokerBody, partition: Partition) -> bool:
    return body.replicas.get(partition.topic_partition) is partition


class SimulatedPorts:
    """``LifePorts`` of one process: its disk, network, loops and chores are events."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        process: Process,
        on_cleaned: Callable[[TopicPartition, Stage], None],
        on_released: Callable[[], None],
    ) -> None:
        self.on_released = on_released
        self.loops = self.zookeeper_loops = BrokerLoops(process, machine.address, world.network)
        self.loops.turns_us["coordinator-loads"] = world.load_turn_us
        self.host_id = machine.address
        self._world = world
        self._machine = machine
        self._process = process
        self._on_cleaned = on_cleaned
        self._zookeeper: SimulatedZooKeeper | None = None
        self._cleaner: CleanerTask | None = None
        self._cleaner_draw = dice(world.seed, f"cleaner {process.name}")
        self._threads = WorkThreads(process)
        self._store: StoreTasks | None = None

    @property
    def has_lost_zookeeper(self) -> bool:
        return self._zookeeper is None or self._zookeeper.losses > 0

    @property
    def zookeeper(self) -> SimulatedZooKeeper:
        assert self._zookeeper is not None, "it has not connected"
        return self._zookeeper

    @cached_property
    def host(self) -> Host:
        machine, process = self._machine, self._process
        draw = dice(self._world.seed, f"directory {process.name}")
        return Host(
            machine.disk.mount(process),
            process,
            InlineExecutor(),
            machine.boot_id,
            Tripwire,
            new_uuid=lambda: uuid.UUID(int=draw.getrandbits(128)),
        )

    def connect(self) -> None:
        self._zookeeper = self._world.ensemble.client(self._process, self._machine.address)

    def body_ports(self, cluster_id: str) -> BodyPorts:
        world, process, loops, threads = self._world, self._process, self.loops, self._threads
        if world.store is not None:
            self._store = StoreTasks(process, world.store, world.seed, cluster_id)
        calls = ControllerCalls(threads, loops.link)
        return BodyPorts(
            inside=Ports(process, ProcessTimer(process), InlineExecutor(), new_guard=Tripwire),
            loops=loops,
            zookeeper_loops=loops,
            zookeeper=self.zookeeper,
            link=loops.link,
            controller=calls,
            waiting_room=threads,
            hang_up=loops.hang_up,
            lanes=Lanes(fetchers=1),
            producer_ids=WatchedIds(self._machine.broker_id, calls, threads, world.identities),
            new_seed=lambda: self._cleaner_draw.getrandbits(64),
            store=None if self._store is None else self._store.ports,
            own_principal=ANONYMOUS if world.access is None else world.access.principal,
            leadership_listeners=(lambda replicas: Announcements(world.leadership, process.name, replicas),),
        )

    def listen(self, body: BrokerBody) -> Broker:
        machine, config, access = self._machine, self._world.config, self._world.access
        control = body.context.access_control
        if access is not None and control is not None:
            access.stores.enrol(self._process, control.authorizer, partial(_holds, body))
        self._world.network.listen(machine.address, self._process, body.dispatcher)
        has_racks = bool(config.get_str("replica.selector.class"))
        rack = f"rack-{machine.broker_id % 2}" if has_racks else None
        return Broker(machine.broker_id, plaintext(machine.address, PORT), rack=rack)

    def start_loops(self, body: BrokerBody) -> None:
        body.replication.start()
        body.coordinators.start(self.loops, self.loops)

    def start_chores(self, body: BrokerBody) -> None:
        config = self._world.config
        ChoreTasks(self._process, body.parts.chores, config).start()
        self._cleaner = CleanerTask(self._process, body.cleaner, config, self._cleaner_draw, self._on_cleaned)
        if config.get_bool("log.cleaner.enable"):
            self._cleaner.start()
        if self._store is not None:
            self._store.start(body)
            return
        for name, loop in body.question_loops():
            self.loops.start(name, loop)

    def stop_chores(self) -> None:
        self._threads.end()
        if self._store is not None:
            self._store.end()
        if self._cleaner is not None:
            self._cleaner.abandon()

    def stop_loops(self) -> None:
        """The end of the process ends them, in the same event."""

    def stop_listening(self) -> None:
        """The same."""

    def end_session(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.close()
