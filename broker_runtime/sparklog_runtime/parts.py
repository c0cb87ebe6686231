"""The servers that a cluster is made of, behind the little that the runtime needs of them.

The real ones are imported when they are made: the controller pulls in much that the command line's other
commands do not need, and its import overlaps with the start of Spark's JVM. Tests put small ones in.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sparklog.model.errors import SparklogError
from sparklog_runtime.processes import is_alive

log = logging.getLogger(__name__)


class ZooKeeperServer(Protocol):
    """The embedded ZooKeeper (``sparklog.zookeeper.embedded.EmbeddedZooKeeper``)."""

    @property
    def pid(self) -> int | None: ...
    @property
    def exit_status(self) -> int | None:
        """How it ended, as ``subprocess`` has it; None while it runs."""
        ...

    @property
    def connect_string(self) -> str: ...
    def start(self) -> object:
        """Start it, on the port that it had before if it ran before; returns when it answers."""
        ...

    def stop(self) -> None: ...


class Controller(Protocol):
    """A controller candidate with its ZooKeeper session."""

    @property
    def port(self) -> int: ...
    @property
    def metrics_port(self) -> int | None:
        """Where it serves metrics, if it does."""
        ...

    @property
    def is_active(self) -> bool: ...
    @property
    def failure(self) -> str | None:
        """Why it cannot take charge, if it tried and could not."""
        ...

    @property
    def cluster_id(self) -> str: ...
    def elected(self) -> "ElectedController | None":
        """The candidate that is in charge, in whichever application, or None while there is none."""
        ...

    def registered_brokers(self) -> list[str]:
        """``host:port`` of every live broker of the cluster."""
        ...

    def report_broker_death(self, broker_id: int, broker_epoch: int) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ElectedController:
    """Who is in charge, as the ``/controller`` node names it."""

    pid: int
    host: str
    port: int
    application: str


class Parts(Protocol):
    """Makes the servers of a cluster."""

    def zookeeper_server(self, data_dir: Path, port: int) -> ZooKeeperServer:
        """An embedded ZooKeeper, not started yet; port 0 takes a free one."""
        ...

    def start_controller(
        self,
        *,
        connect_string: str,
        host: str,
        settings: Mapping[str, str],
        application: str,
        is_alone: bool,
    ) -> Controller:
        """A controller candidate that has joined the race.

        ``is_alone``: no other process on this machine can be of this application now. What a dead one left
        in office is put aside at once, instead of when its session expires.
        """
        ...

    def preload(self) -> None:
        """Import what a start needs later; called while other processes start."""
        ...


class RealParts:
    """The servers of the sparklog package."""

    def preload(self) -> None:
        import sparklog.controller.server
        import sparklog.network.connection
        import sparklog.wire.messages.discovery.metadata
        import sparklog.zookeeper.kazoo_adapter

        del sparklog

    def zookeeper_server(self, data_dir: Path, port: int) -> ZooKeeperServer:
        from sparklog.zookeeper.embedded import EmbeddedZooKeeper

        class Embedded(EmbeddedZooKeeper):
            @property
            def exit_status(self) -> int | None:
                return None if self._process is None else self._process.returncode

        return Embedded(data_dir, port=port)

    def start_controller(
        self,
        *,
        connect_string: str,
        host: str,
        settings: Mapping[str, str],
        application: str,
        is_alone: bool,
    ) -> Controller:
        return _RealController(connect_string, host, settings, application, is_alone)


class _RealController:
    """A ``ControllerServer`` and the ZooKeeper session that it uses."""

    def __init__(
        self,
        connect_string: str,
        host: str,
        settings: Mapping[str, str],
        application: str,
        is_alone: bool,
    ) -> None:
        from sparklog.controller.server import ControllerServer
        from sparklog.model.config import BrokerConfig
        from sparklog.network.clock import SystemClock
        from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

        config = BrokerConfig.parse(settings)
        self._zookeeper = KazooZooKeeper(connect_string, config.get_int("zookeeper.session.timeout.ms"))
        self._zookeeper.start(config.get_int("zookeeper.connection.timeout.ms"))
        try:
            if is_alone:
                self._put_predecessor_aside(application)
            self._server = ControllerServer(
                zookeeper=self._zookeeper,
                host=host,
                port=0,
                cluster_config=config,
                clock=SystemClock(),
                pid=os.getpid(),
                application=application,
            )
            self._server.start()
        except BaseException:
            self._zookeeper.close()
            raise

    def _put_predecessor_aside(self, application: str) -> None:
        """Free the office of a killed controller of this application.

        Safe by the epoch, as every election is: should another have been elected since we looked, nothing
        happens; and whoever held the office can write nothing once the next has raised the epoch.
        """
        from sparklog.core.controller.state.znodes import CONTROLLER, CONTROLLER_EPOCH
        from sparklog.model.zookeeper import Check, ConnectionLost, Delete, MultiFailed

        epoch = self._zookeeper.exists(CONTROLLER_EPOCH)
        elected = self.elected()
        if epoch is None or elected is None or elected.application != application or is_alive(elected.pid):
            return
        try:
            self._zookeeper.multi([Check(CONTROLLER_EPOCH, epoch.version), Delete(CONTROLLER)])
        except (MultiFailed, ConnectionLost) as refused:
            log.info("%s is left to its session's end: %s", CONTROLLER, refused)
            return
        log.info("the controller of the run before, process %d, is put aside", elected.pid)

    @property
    def port(self) -> int:
        return int(self._server.port)

    @property
    def metrics_port(self) -> int | None:
        return self._server.metrics_port

    @property
    def is_active(self) -> bool:
        return bool(self._server.is_active)

    @property
    def failure(self) -> str | None:
        return self._server.failure

    @property
    def cluster_id(self) -> str:
        from sparklog.core.controller.state.znodes import CLUSTER_ID, decode_cluster_id

        node = self._zookeeper.get(CLUSTER_ID)
        if node is None:
            raise SparklogError(f"ZooKeeper has no {CLUSTER_ID}: no controller has prepared the cluster yet")
        return decode_cluster_id(node.data)

    def elected(self) -> ElectedController | None:
        from sparklog.core.controller.state.znodes import CONTROLLER, decode_controller

        node = self._zookeeper.get(CONTROLLER)
        if node is None:
            return None
        found = decode_controller(node.data)
        return ElectedController(
            pid=found.pid, host=found.host, port=found.port, application=found.application
        )

    def registered_brokers(self) -> list[str]:
        from sparklog.core.controller.state.znodes import BROKER_IDS, broker_path, decode_broker
        from sparklog.model.ids import NO_BROKER_EPOCH, BrokerId

        found = []
        for broker_id in sorted(BrokerId(int(name)) for name in self._zookeeper.children(BROKER_IDS)):
            node = self._zookeeper.get(broker_path(broker_id))
            if node is not None:
                broker = decode_broker(broker_id, node.data, NO_BROKER_EPOCH)
                found.append(f"{broker.host}:{broker.port}")
        return found

    def report_broker_death(self, broker_id: int, broker_epoch: int) -> None:
        from sparklog.model.ids import BrokerEpoch, BrokerId

        self._server.report_broker_death(BrokerId(broker_id), BrokerEpoch(broker_epoch))

    def stop(self) -> None:
        self._server.stop()
        self._zookeeper.close()
