"""Where a broker's Spark worker runs: as a plain process, or in surroundings that faults reach (walls.py).

The bench starts a Spark worker for each broker and asks its place how: which command to put before it, at
which address it listens, where its data is. A place offers features to nemeses (``nemesis.NAMESPACES``, ...).
What is there once, a *service*, has a place too: ``zookeeper``, ``driver``, ``candidate-1`` and so on.
"""

import contextlib
import random
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from chaos.machines.shim import Controls, compile_shim
from chaos.nemesis import CRASH_POINTS, INJECTION
from sparklog.zookeeper.embedded import EmbeddedZooKeeper

LISTENERS_MAX = 2
"""Of a broker: the clients', and on a secured cluster the brokers'."""
PORTS = range(20_000, 30_000)


class Places(Protocol):
    """Surroundings of every process of one run."""

    @property
    def features(self) -> frozenset[str]: ...

    broker_port: int
    """The first broker's port, the others follow; 0 takes free ones, which brokers of one host can."""

    def set_up(self, folder: Path, broker_ids: Sequence[int]) -> None:
        """Make them; what a run before has left behind under our names goes first."""

    def tear_down(self) -> None:
        """Take everything away again; also after a ``set_up`` that failed half-way."""

    def zookeeper(self, folder: Path) -> EmbeddedZooKeeper:
        """The server, not started yet."""

    def service_address(self, service: str) -> str:
        """Where it is; Spark's master is where the driver is."""

    def service_command(self, service: str, command: Sequence[str]) -> list[str]:
        """A service's command as it is to be run."""

    def master_port(self) -> int:
        """A port that is free for Spark's master."""

    def store_port(self) -> int:
        """A port that is free for the remote store."""

    def address(self, broker_id: int) -> str:
        """The address of the broker's worker."""

    def command(self, broker_id: int, command: Sequence[str]) -> list[str]:
        """The worker's command as it is to be run: ``ip netns exec NAME`` before it, or the like."""

    def environment(self, broker_id: int) -> Mapping[str, str]:
        """What the worker's environment has beside the usual: LD_PRELOAD, say."""

    def log_dir(self, folder: Path, broker_id: int) -> Path:
        """Where the broker's data is, as seen from outside, for a wipe and for dumps at the end."""


def free_ports(count: int) -> int:
    """The first of so many free ports in a row, below those that the kernel gives to outgoing connections."""
    for first in random.sample(PORTS, len(PORTS)):
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise RuntimeError(f"no {count} ports in a row are free from {PORTS[0]} to {PORTS[-1]}")


class PlainPlaces:
    """All on this machine's loopback, with data in the run's folder."""

    broker_port: int = 0

    def __init__(self, *, with_shim: bool = False) -> None:
        """``with_shim``: brokers' calls can be counted, fail, and be their last."""
        self._with_shim = with_shim
        self._controls: dict[int, Controls] = {}

    @property
    def features(self) -> frozenset[str]:
        return frozenset({CRASH_POINTS, INJECTION} if self._with_shim else ())

    def controls(self, broker_id: int) -> Controls:
        return self._controls[broker_id]

    def set_up(self, folder: Path, broker_ids: Sequence[int]) -> None:
        """Ports that brokers keep, also when the application that they are of is started again."""
        self.broker_port = free_ports(LISTENERS_MAX * len(broker_ids))
        if not self._with_shim:
            return
        library = compile_shim(folder)
        for broker_id in broker_ids:
            controls = Controls(library, folder / f"broker-{broker_id}.controls")
            log_dirs = self.log_dir(folder, broker_id).parent
            log_dirs.mkdir(parents=True, exist_ok=True)
            controls.watch_folder(log_dirs)
            self._controls[broker_id] = controls

    def tear_down(self) -> None:
        while self._controls:
            self._controls.popitem()[1].close()

    def zookeeper(self, folder: Path) -> EmbeddedZooKeeper:
        return EmbeddedZooKeeper(folder)

    def service_address(self, service: str) -> str:
        return "127.0.0.1"

    def service_command(self, service: str, command: Sequence[str]) -> list[str]:
        return list(command)

    def master_port(self) -> int:
        return free_ports(1)

    def store_port(self) -> int:
        return free_ports(1)

    def address(self, broker_id: int) -> str:
        return "127.0.0.1"

    def command(self, broker_id: int, command: Sequence[str]) -> list[str]:
        return list(command)

    def environment(self, broker_id: int) -> Mapping[str, str]:
        return self._controls[broker_id].environment if self._with_shim else {}

    def log_dir(self, folder: Path, broker_id: int) -> Path:
        return folder / "cluster" / f"broker-{broker_id}" / "0"
