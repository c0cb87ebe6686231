"""A simulated broker: the shipped rooms of ``sparklog.broker``, composed over simulated ports.

The machine (its disk and its boot) outlives its processes. ``SimulatedBroker.launch`` is one process: it
opens and recovers the logs, listens, registers, and serves until it dies. The order is ``BrokerServer``'s.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from sparklog.broker.context import BrokerContext
from sparklog.broker.controller_link import ControllerLink
from sparklog.broker.dispatch import Dispatcher
from sparklog.broker.fetcher import Fetcher
from sparklog.broker.isr_proposals import ProposalQueue
from sparklog.broker.log_dirs import LogDirs
from sparklog.broker.metadata_cache import MetadataCache
from sparklog.broker.ports import Peers, Ports
from sparklog.broker.producer_ids import ProducerIds
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.model.cluster import Broker
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.storage.log_directory import LogDirectory
from sparklog.testing.simulation.disk import SimulatedDisk
from sparklog.testing.simulation.network import Network
from sparklog.testing.simulation.schedule import (
    InlineExecutor,
    Process,
    ProcessTimer,
    Schedule,
    Tripwire,
    dice,
)
from sparklog.testing.simulation.tasks import ChoreTasks, FetcherTasks, LinkTask, ProposalTask
from sparklog.testing.simulation.zookeeper import Ensemble, SimulatedZooKeeper
from sparklog.zookeeper.registration import read_or_create_cluster_id, register_broker

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


@dataclass(slots=True)
class Machine:
    """A broker's host: what stays when the broker's process dies."""

    broker_id: BrokerId
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    boots: int = 0

    @property
    def host(self) -> str:
        return f"broker-{self.broker_id}"

    @property
    def boot_id(self) -> str:
        return f"{self.host} boot {self.boots}"


class SimulatedBroker:
    """One process of a broker."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        number: int,
        on_stopped: Callable[["SimulatedBroker", str], None],
    ) -> None:
        self.machine = machine
        self.process = Process(world.schedule, f"{machine.host}#{number}")
        self.replicas: ReplicaManager | None = None
        self.epoch = BrokerEpoch(-1)
        self.metadata = MetadataCache(Tripwire())
        self._world = world
        self._number = number
        self._on_stopped = on_stopped
        self._zookeeper: SimulatedZooKeeper | None = None

    @property
    def is_registered(self) -> bool:
        return self.process.is_alive and self.epoch >= 0

    def launch(self) -> None:
        self.process.soon(self._start)

    def die(self) -> None:
        """As by SIGKILL: nothing is flushed, nobody is told."""
        if self.process.is_alive:
            self.process.kill()
            self._world.network.died(self.process)

    def _start(self) -> None:
        try:
            self._open()
        except (SparklogError, OSError) as error:
            # The launcher tries again, as the runtime does with a broker that cannot start.
            self._stop(f"{type(error).__name__}: {error}")

    def _stop(self, why: str) -> None:
        self.die()
        self._on_stopped(self, why)

    def _open(self) -> None:
        world, machine, process = self._world, self.machine, self.process
        zookeeper = self._zookeeper = world.ensemble.client(process, machine.host)
        zookeeper.on_session(self._on_session)
        cluster_id = read_or_create_cluster_id(zookeeper)
        directory = LogDirectory.open(
            f"/{machine.host}/data",
            machine.broker_id,
            cluster_id,
            machine.disk.mount(process),
            process,
            boot_id=machine.boot_id,
            new_uuid=lambda: uuid.UUID(int=dice(world.seed, f"directory {process.name}").getrandbits(128)),
        )
        log_dirs = LogDirs([directory], world.config)
        identities = log_dirs.identities()
        log_dirs.load(InlineExecutor())
        context = self._compose(zookeeper, log_dirs, cluster_id)
        world.network.listen(machine.host, process, Dispatcher(context))
        endpoint = Broker(machine.broker_id, machine.host, PORT)
        self.epoch = register_broker(
            zookeeper, endpoint, identities, boot_id=machine.boot_id, host_id=machine.host
        )
        context.replicas.broker_epoch = self.epoch
        ChoreTasks(process, context.replicas, world.config).start()

    def _compose(self, zookeeper: SimulatedZooKeeper, log_dirs: LogDirs, cluster_id: str) -> BrokerContext:
        world, machine, process = self._world, self.machine, self.process
        config = world.config

        def new_fetcher(leader: BrokerId) -> Fetcher:
            return Fetcher(
                broker_id=machine.broker_id,
                broker_epoch=lambda: self.epoch,
                leader=leader,
                find_broker=self.metadata.broker,
                peers=cast(Peers, None),  # the fetch loop asks the fetcher's questions
                config=config,
                clock=process,
                guard=Tripwire(),
            )

        link = LinkTask(process, machine.host, world.network, zookeeper)
        queue = ProposalQueue(machine.broker_id, lambda: self.epoch, lambda tp: replicas.get(tp))  # noqa: PLW0108
        replicas = ReplicaManager(
            machine.broker_id,
            config,
            log_dirs,
            Ports(clock=process, timer=ProcessTimer(process), executor=InlineExecutor(), new_guard=Tripwire),
            fetchers=FetcherTasks(process, machine.host, world.network, new_fetcher),
            proposals=ProposalTask(process, link, queue),
        )
        replicas.load()
        link.start()
        self.replicas = replicas
        controller = cast(ControllerLink, cast(Any, link))
        return BrokerContext(
            broker_id=machine.broker_id,
            cluster_id=cluster_id,
            config=config,
            metadata=self.metadata,
            replicas=replicas,
            controller=controller,
            producer_ids=ProducerIds(machine.broker_id, controller),
            waiting_room=InlineExecutor(),
        )

    def _on_session(self, event: str) -> None:
        if event == "expired":
            self._stop("its ZooKeeper session has expired")
