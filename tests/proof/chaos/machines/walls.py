"""Places with walls between: every broker on a machine of its own, and a network that can be cut anywhere.

hub           the run itself with its clients
zookeeper     ZooKeeper
store         the remote store
driver        the application (controller candidate, supervisor), and Spark's master
candidate-N   a controller candidate each
broker-N      a machine with a disk, a clock and a boot of its own, and Spark's worker on it
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from chaos.machines import machine, shim, store
from chaos.machines.bench import DRIVER
from chaos.machines.machine import Machine
from chaos.machines.namespaces import HUB, Network
from chaos.machines.shim import Controls, compile_shim
from chaos.nemesis import CLOCKS, CRASH_POINTS, DISKS, INJECTION, NAMESPACES
from sparklog.zookeeper.embedded import EmbeddedZooKeeper

CANDIDATES_MAX: Final = 4
ZOOKEEPER: Final = "zookeeper"
BROKER_PORT: Final = 9092
ZOOKEEPER_PORT: Final = 2181
MASTER_PORT: Final = 7077


def probe() -> str | None:
    """Why there can be no such places on this machine; None if there can."""
    return machine.probe() or shim.probe()


def broker_node(broker_id: int) -> str:
    return f"broker-{broker_id}"


class WalledPlaces:
    """See the module's text. ``set_up`` and ``tear_down`` are for the run's main thread, which is in the hub
    meanwhile, with all threads and processes that it starts."""

    features: frozenset[str] = frozenset({NAMESPACES, DISKS, CLOCKS, INJECTION, CRASH_POINTS})
    broker_port: int = BROKER_PORT

    def __init__(self, disk_mebibytes: int = 1024) -> None:
        self._disk_mebibytes = disk_mebibytes
        self._network: Network | None = None
        self._machines: dict[int, Machine] = {}
        self._stack = contextlib.ExitStack()

    @property
    def network(self) -> Network:
        assert self._network is not None, "not set up"
        return self._network

    def machine(self, broker_id: int) -> Machine:
        return self._machines[broker_id]

    def controls(self, broker_id: int) -> Controls:
        return self._machines[broker_id].controls

    def machines(self) -> Mapping[int, Machine]:
        return self._machines

    def set_up(self, folder: Path, broker_ids: Sequence[int]) -> None:
        folder = folder.absolute()
        candidates = [f"candidate-{number}" for number in range(1, CANDIDATES_MAX + 1)]
        nodes = [ZOOKEEPER, DRIVER, store.NODE, *candidates, *map(broker_node, broker_ids)]
        self._network = Network(nodes)
        self._stack.callback(self._network.tear_down)
        self._network.set_up()
        library = compile_shim(folder)
        for broker_id in broker_ids:
            self._set_up_machine(broker_id, library, folder)
        self._stack.enter_context(self._network.inside(HUB))

    def _set_up_machine(self, broker_id: int, library: Path, folder: Path) -> None:
        node = broker_node(broker_id)
        made = Machine(
            node,
            self.network,
            folder / "machines" / node,
            folder / "cluster" / node / "0",
            Controls(library, folder / f"{node}.controls"),
            self._disk_mebibytes,
        )
        self._stack.callback(made.tear_down)
        made.set_up()
        self._machines[broker_id] = made

    def tear_down(self) -> None:
        self._stack.close()
        self._machines = {}

    def zookeeper(self, folder: Path) -> EmbeddedZooKeeper:
        return _PlacedZooKeeper(folder, self.network)

    def service_address(self, service: str) -> str:
        return self.network.address(service)

    def service_command(self, service: str, command: Sequence[str]) -> list[str]:
        return self.network.command(service, command)

    def master_port(self) -> int:
        return MASTER_PORT

    def store_port(self) -> int:
        return store.PORT

    def address(self, broker_id: int) -> str:
        return self._machines[broker_id].address

    def command(self, broker_id: int, command: Sequence[str]) -> list[str]:
        return self._machines[broker_id].command(command)

    def environment(self, broker_id: int) -> Mapping[str, str]:
        found = self._machines[broker_id]
        # No name is to be looked up: there is no name server in here.
        return {**found.controls.environment, "SPARK_LOCAL_IP": found.address}

    def log_dir(self, folder: Path, broker_id: int) -> Path:
        return self._machines[broker_id].disk.seen


class _PlacedZooKeeper(EmbeddedZooKeeper):
    """A server in its node, whichever thread starts it."""

    def __init__(self, folder: Path, network: Network) -> None:
        super().__init__(folder, ZOOKEEPER_PORT, host=network.address(ZOOKEEPER))
        self._network = network

    def start(self, *args: Any, **named: Any) -> EmbeddedZooKeeper:
        with self._network.inside(ZOOKEEPER):
            return super().start(*args, **named)
