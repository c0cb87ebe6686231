"""A whole cluster in the process of a test: ZooKeeper, a controller, brokers that listen on free ports.

All of it is the shipped code, except ZooKeeper, which is in memory unless ``zookeeper="real"`` is given.
Unlike in production, the brokers share a process. ``kill`` therefore stops a broker without a flush or a
clean marker and cuts its connections, but the page cache and the process survive. Other processes, such as
Spark's Python workers, reach the brokers by TCP.

    with InProcessCluster() as cluster:
        cluster.create_topic("events", partitions=3)
        cluster.produce("events", ["a", ("key", "b")])
        assert [record.value for record in cluster.consume("events", at_least=2)] == [b"a", b"b"]
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, get_args

from sparklog.broker.life.options import ZooKeeperSession
from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.client.admin import PartitionDescription
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.security.connecting import connector_of
from sparklog.controller.controller_server import ControllerServer
from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.coordinator_settings import of_a_start
from sparklog.network.clock import SystemClock
from sparklog.network.listener_tls import connector_to
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer
from sparklog.testing.topics_and_records import TopicsAndRecords, wait_until
from sparklog.testing.users import ClusterUser, Security, allow, pattern_of
from sparklog.zookeeper.configured_session import new_session, node_access
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.embedded_tls import EmbeddedTls

ZooKeeperKind = Literal["memory", "real"]

HOST: Final = "127.0.0.1"
SESSION_TIMEOUT_MS: Final = 6_000
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.initial.rebalance.delay.ms": "0",
    # All brokers share this process. With Kafka's 50 partitions their files would take so many descriptors
    # that select(2), which PySpark's gateway uses, takes no further ones.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    # The records of a test are few: a machine whose disk is nearly full is no reason to refuse them.
    "log.dirs.free.min.bytes": "0",
}
"""Where a test's brokers differ from the defaults, unless the test says otherwise."""


class InProcessCluster(TopicsAndRecords):
    """``brokers`` brokers with ids from 1 up; a context manager.

    Data is in ``root`` and stays there; without it, in a temporary directory that goes with the cluster.
    A ZooKeeper in memory lives as long as this object: ``stop`` and ``start`` find the topics again, another
    object over the same ``root`` does not, and its brokers refuse the data as another cluster's. With
    ``zookeeper="real"`` a server is started as a child process, which takes Java and a second, and everything
    is in ``root``. Each broker has ``log_dirs`` log directories, which stand for disks, and is in its rack of
    ``racks``. ``settings`` are brokers' settings by their names, which are Kafka's.

    A ``secure`` cluster is as `sparklog security init` makes one: it has TLS and logins, and users may do
    what rules allow.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        brokers: int = 3,
        zookeeper: ZooKeeperKind = "memory",
        settings: Mapping[str, str] | None = None,
        log_dirs: int = 1,
        racks: Mapping[int, str] | None = None,
        secure: bool = False,
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: a cluster has at least 1")
        if zookeeper not in get_args(ZooKeeperKind):
            raise ConfigError(f"zookeeper={zookeeper!r}: must be 'memory' or 'real'")
        self.config = BrokerConfig.parse(of_a_start({**SETTINGS, **(settings or {})}, brokers))
        self._settings = settings or {}
        self._is_secure = secure
        self._security: Security | None = None
        self.brokers: dict[int, BrokerServer] = {}
        self.controller: ControllerServer | None = None
        self._root = None if root is None else Path(root)
        self._temporary: Path | None = None
        self._log_dirs = log_dirs
        self._racks = racks or {}
        self._ids = range(1, brokers + 1)
        self._zookeeper_kind = zookeeper
        self._embedded: EmbeddedZooKeeper | None = None
        self._memory = MemoryZooKeeperServer()
        self._client: ClusterClient | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Where to find it

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, those that were killed included; the value of Spark's option."""
        nodes = [broker.node for broker in self.brokers.values()]
        return ",".join(host_port(node.host, node.port) for node in nodes)

    @property
    def zookeeper(self) -> str:
        """The connect string of the real ZooKeeper."""
        if self._zookeeper_kind == "memory":
            raise SparklogError(
                "this cluster's ZooKeeper is in memory and has no address: give the cluster zookeeper='real'"
            )
        return "" if self._embedded is None else self._embedded.connect_string

    @property
    def root(self) -> Path:
        """Where the data is."""
        if self._root is not None:
            return self._root
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="sparklog-testing-"))
            self._closing.callback(self._forget)
        return self._temporary

    @property
    def client(self) -> ClusterClient:
        """A client of the cluster, closed with it: of the administrator, if it is secure. Where the first
        listener speaks TLS otherwise, it has the brokers' certificate.
        """
        if self._client is None:
            security, listener = self._security, self.config.listeners.first
            self._client = ClusterClient(
                self.bootstrap_servers,
                client_id="sparklog-testing",
                connector=(
                    connector_to(self.config, listener)
                    if security is None
                    else connector_of(security.admin_properties)
                ),
            )
            self._closing.callback(self._client.close)
        return self._client

    @property
    def broker_count(self) -> int:
        return len(self._ids)

    # Users

    def as_user(self, name: str) -> ClusterUser:
        """The user ``name`` of a secure cluster, made at the first call. It may do what rules ``allow``."""
        return self._secured().as_user(
            name, self.client, self._running(), self.bootstrap_servers, self._closing
        )

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefixed: bool = False,
    ) -> None:
        """Let ``user`` do ``operations``, such as "read", to what is named; ``prefixed``: to all whose names
        begin so. Returns when every broker knows it.
        """
        pattern = pattern_of(topic, group, transactional_id, prefixed=prefixed)
        self._secured()
        allow(self.client, self._running(), f"User:{user}", operations, pattern)

    # Life

    def start(self) -> None:
        """Start everything; returns when every broker is known to the others."""
        try:
            if self._is_secure:
                self._secure()
            self._start_controller(self._start_zookeeper())
            self._closing.callback(self._stop_brokers)
            for broker_id in self._ids:
                self.revive(broker_id)
            wait_until(self._all_are_known, lambda: f"only {self._known()} of {len(self._ids)} brokers")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, also after a start that failed half way."""
        try:
            self._closing.close()
        finally:
            self._client = None
            if self._security is not None:
                self._security.forget_users()

    def kill(self, broker_id: int) -> None:
        """End a broker without a clean stop, and report its death to the controller as a supervisor does."""
        broker = self._broker(broker_id)
        epoch = broker.node.epoch
        broker.stop(clean=False)
        assert self.controller is not None
        self.controller.broker_died(BrokerId(broker_id), epoch)

    def shut_down(self, broker_id: int) -> None:
        """Stop a broker cleanly: it hands over its leaderships, and its next start recovers nothing."""
        self._broker(broker_id).stop()

    def revive(self, broker_id: int) -> None:
        """Start a broker on its data, at the port that it had."""
        before = self.brokers.get(broker_id)
        options = BrokerOptions(
            broker_id=BrokerId(broker_id),
            host=HOST,
            ports=before.ports if before is not None else {},
            log_dirs=tuple(str(self.root / f"broker-{broker_id}" / str(n)) for n in range(self._log_dirs)),
            zookeeper=self._connect_string,
            config=self.config,
            rack=self._racks.get(broker_id),
            new_zookeeper=self._new_zookeeper,
        )
        broker = BrokerServer(options)
        broker.start()
        self.brokers[broker_id] = broker

    # State

    @property
    def failures(self) -> dict[int, str]:
        """Why brokers have ended by themselves, by id; ``revive`` starts such a broker again."""
        failed = ((broker_id, broker.failure) for broker_id, broker in self.brokers.items())
        return {broker_id: why for broker_id, why in failed if why is not None}

    def partitions(self, topic: str) -> tuple[PartitionDescription, ...]:
        return self.admin.describe_topics([topic])[0].partitions

    def wait_for_isr(self, topic: str, size: int) -> None:
        """Wait until every partition of ``topic`` has a leader and ``size`` members in its ISR."""
        wait_until(
            lambda: all(part.leader >= 0 and len(part.isr) == size for part in self.partitions(topic)),
            lambda: f"no ISR of {size}: {self.partitions(topic)}",
        )

    def wait_for_leader(self, topic: str, partition: int = 0, *, other_than: int | None = None) -> int:
        """Wait until the partition has a leader, and not that one; its broker id."""
        topic_partition, leaders = TopicPartition(topic, partition), [-1]

        def is_led() -> bool:
            leader = self.client.metadata([topic], max_age_ms=0).leader(topic_partition)
            leaders.append(leader.broker_id if isinstance(leader, KnownLeader) else -1)
            return leaders[-1] not in (-1, other_than)

        wait_until(
            is_led,
            lambda: f"{topic_partition} has leader {leaders[-1]}, and waits for one other than {other_than}",
        )
        return leaders[-1]

    # Inside

    def _secure(self) -> None:
        self._security = Security(self.root)
        given = {**SETTINGS, **self._security.broker_settings, **self._settings}
        self.config = BrokerConfig.parse(of_a_start(given, len(self._ids)))

    def _secured(self) -> Security:
        if self._security is None:
            raise SparklogError("this cluster has no users: give it secure=True, and start it")
        return self._security

    def _running(self) -> list[BrokerServer]:
        return [broker for broker in self.brokers.values() if not broker.wait_stopped(0)]

    @property
    def _connect_string(self) -> str:
        return "memory" if self._embedded is None else self._embedded.connect_string

    def _new_zookeeper(self, connect_string: str, session_timeout_ms: int) -> ZooKeeperSession:
        if self._embedded is not None:
            return new_session(connect_string, self.config.zookeeper, session_timeout_ms)
        access = node_access(self.config.zookeeper)
        return MemoryZooKeeper(self._memory, operation_timeout_ms=session_timeout_ms, access=access)

    def _start_zookeeper(self) -> ZooKeeperSession:
        """The controller's session."""
        root = self.root
        if self._zookeeper_kind == "real":
            tls = self.config.zookeeper.tls
            self._embedded = EmbeddedZooKeeper(
                root / "zookeeper", tls=None if tls is None else EmbeddedTls(tls)
            )
            self._embedded.start()
            self._closing.callback(self._embedded.stop)
        session = self._new_zookeeper(self._connect_string, SESSION_TIMEOUT_MS)
        session.start(SESSION_TIMEOUT_MS)
        self._closing.callback(session.close)
        return session

    def _forget(self) -> None:
        """Delete the temporary data, and what ZooKeeper knows about it."""
        temporary, self._temporary = self._temporary, None
        self._memory = MemoryZooKeeperServer()
        self.brokers.clear()
        if temporary is not None:
            shutil.rmtree(temporary)

    def _start_controller(self, session: ZooKeeperSession) -> None:
        self.controller = ControllerServer(
            zookeeper=session,
            host=HOST,
            port=0,
            cluster_config=self.config,
            clock=SystemClock(),
            pid=os.getpid(),
            application="sparklog-testing",
        )
        self._closing.callback(self.controller.stop)
        self.controller.start()

    def _stop_brokers(self) -> None:
        with ExitStack() as stopping:  # one that fails must not keep the others from stopping
            for broker in self.brokers.values():
                stopping.callback(broker.stop)

    def _broker(self, broker_id: int) -> BrokerServer:
        if broker_id not in self.brokers:
            raise SparklogError(f"there is no broker {broker_id}: this cluster has {sorted(self.brokers)}")
        return self.brokers[broker_id]

    def _known(self) -> int:
        return len(self.client.metadata([], max_age_ms=0).brokers)

    def _all_are_known(self) -> bool:
        return self._known() == len(self._ids)
