"""A whole cluster in one process: embedded ZooKeeper, a controller, brokers that listen on free ports.

Everything is the shipped code; only that brokers share a process is not as in life. ``kill`` therefore stops
a broker without any of its farewells (nothing flushed, no marker, connections cut), but its page cache and
its process survive: for the rest there is real SIGKILL.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from sparklog.broker.server import BrokerOptions, BrokerServer
from sparklog.client.admin import Admin, NewTopic, PartitionDescription
from sparklog.client.cluster import ClusterClient
from sparklog.controller.server import ControllerServer
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId
from sparklog.network.clock import SystemClock
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

SESSION_TIMEOUT_MS = 6_000
WAIT_SECONDS = 30.0
POLL_SECONDS = 0.01


class InProcessCluster:
    """``brokers`` brokers with ids from 1 up, over data in ``root``; a context manager."""

    def __init__(self, root: Path, *, brokers: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.config = BrokerConfig.parse(
            {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS), **(settings or {})}
        )
        self.brokers: dict[int, BrokerServer] = {}
        self._ids = range(1, brokers + 1)
        self._zookeeper = EmbeddedZooKeeper(root / "zookeeper")
        self._session: KazooZooKeeper | None = None
        self._client: ClusterClient | None = None
        self.controller: ControllerServer | None = None

    def __enter__(self) -> "InProcessCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def zookeeper(self) -> str:
        return self._zookeeper.connect_string

    @property
    def bootstrap_servers(self) -> str:
        endpoints = [broker.endpoint for broker in self.brokers.values()]
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)

    @property
    def client(self) -> ClusterClient:
        if self._client is None:
            self._client = ClusterClient(self.bootstrap_servers, client_id="sparklog-testing")
        return self._client

    @property
    def admin(self) -> Admin:
        return Admin(self.client)

    def start(self) -> None:
        self._zookeeper.start()
        self._session = KazooZooKeeper(self.zookeeper, SESSION_TIMEOUT_MS).start(SESSION_TIMEOUT_MS)
        self.controller = ControllerServer(
            zookeeper=self._session,
            host="127.0.0.1",
            port=0,
            cluster_config=self.config,
            clock=SystemClock(),
            pid=os.getpid(),
            application="sparklog-testing",
        )
        self.controller.start()
        for broker_id in self._ids:
            self.revive(broker_id)

    def stop(self) -> None:
        """Stop everything; what was started stops even if the start did not get through."""
        if self._client is not None:
            self._client.close()
        for broker in self.brokers.values():
            broker.stop()
        if self.controller is not None:
            self.controller.stop()
        if self._session is not None:
            self._session.close()
        self._zookeeper.stop()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; by default every broker has a replica of it."""
        factor = len(self._ids) if replication_factor < 0 else replication_factor
        self.admin.create_topics(
            [NewTopic(name=name, partitions=partitions, replication_factor=factor, configs=configs or {})]
        )

    def kill(self, broker_id: int) -> None:
        """End a broker without farewells, and tell the controller as a supervisor would."""
        broker = self.brokers[broker_id]
        epoch = broker.endpoint.epoch
        broker.stop(clean=False)
        assert self.controller is not None
        self.controller.report_broker_death(BrokerId(broker_id), epoch)

    def revive(self, broker_id: int) -> None:
        """Start a broker on its data, at the port that it had."""
        before = self.brokers.get(broker_id)
        options = BrokerOptions(
            broker_id=BrokerId(broker_id),
            host="127.0.0.1",
            port=before.endpoint.port if before is not None else 0,
            log_dirs=(str(self.root / f"broker-{broker_id}" / "0"),),
            zookeeper=self.zookeeper,
            config=self.config,
        )
        broker = BrokerServer(options)
        broker.start()
        self.brokers[broker_id] = broker

    def partitions(self, topic: str) -> tuple[PartitionDescription, ...]:
        return self.admin.describe_topics([topic])[0].partitions

    def wait_for_isr(self, topic: str, size: int) -> None:
        """Wait until every partition of ``topic`` has a leader and ``size`` members in its ISR."""
        deadline = time.monotonic() + WAIT_SECONDS
        while any(part.leader < 0 or len(part.isr) != size for part in self.partitions(topic)):
            if time.monotonic() > deadline:
                raise SparklogError(f"no ISR of {size} within {WAIT_SECONDS:.0f} s: {self.partitions(topic)}")
            time.sleep(POLL_SECONDS)
