"""What the life of a broker reaches in a process of its own: sockets, threads, kazoo, local disks, metrics.

``BrokerLife`` decides what happens when; nothing here has an order of its own. Each method that ends
something does nothing where the start did not get so far.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from sparklog.broker.coordination.metrics import coordinator_metrics
from sparklog.broker.dispatch import begins_beside, works_in_place
from sparklog.broker.life.body import CONTROLLER_CALLS_MAX, BodyPorts, BrokerBody, Lanes
from sparklog.broker.life.cleaner_threads import CleanerThreads
from sparklog.broker.life.connection_limits import ConfiguredLimits
from sparklog.broker.life.housekeeping import Housekeeping
from sparklog.broker.life.metrics import (
    broker_metrics,
    conversion_metrics,
    disk_metrics,
    topic_metrics,
    zookeeper_metrics,
)
from sparklog.broker.life.open_directories import Host
from sparklog.broker.life.options import BrokerOptions, ZooKeeperSession
from sparklog.broker.life.quota_metrics import quota_metrics
from sparklog.broker.life.remote_metrics import remote_metrics
from sparklog.broker.life.reporting.own_report import OwnReport
from sparklog.broker.life.reporting.sampler import Sampler
from sparklog.broker.life.reporting.zookeeper_probe import ZooKeeperProbe
from sparklog.broker.life.request_metrics import connection_metrics, request_metrics
from sparklog.broker.life.store_threads import StoreThreads
from sparklog.broker.ports import Ports
from sparklog.broker.to_controller.controller_link import ControllerLink
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from sparklog.model.loops import Call, CallBroker
from sparklog.model.metric import Metric
from sparklog.model.settings.access_settings import AUTHORIZER
from sparklog.model.zookeeper import SessionEvent
from sparklog.network.acceptor import Listener
from sparklog.network.access.audit_file import open_audit
from sparklog.network.clock import SystemClock
from sparklog.network.dialing.peer_connections import PeerConnections
from sparklog.network.executor import ThreadExecutor
from sparklog.network.listener_tls import (
    advertised_hosts,
    check_certificates,
    cluster_logins,
    inter_broker_connector,
    own_principal,
    refused_for_safety,
    tls_of_listeners,
    tls_of_metrics,
    watch_expiry,
)
from sparklog.network.loop_threads import LoopThreads, no_calls
from sparklog.network.reactor import Reactor
from sparklog.network.request_statistics import RequestStatistics
from sparklog.network.timer import ThreadTimer
from sparklog.storage.disk import LocalDisk
from sparklog.zookeeper.boot import read_boot_id, read_host_id
from sparklog.zookeeper.configured_session import new_session
from sparklog.zookeeper.user_nodes import UsersReader, login_secret

logger: Final = logging.getLogger(__name__)

ALL_ADDRESSES: Final = "0.0.0.0"
"""Where listeners without a host listen if the operator gives the host an address for others."""

JOIN_SECONDS: Final = 1.0
"""Longest wait for loops that may wait for an absent ZooKeeper: the end of the session ends their wait."""


class ProcessPorts:
    """``LifePorts`` of one broker."""

    def __init__(self, options: BrokerOptions) -> None:
        """UnsafeStartError if a certificate is one that clients or other brokers would refuse, or a secret is
        missing.
        """
        config, name = options.config, f"broker-{options.broker_id}"
        self._clock = SystemClock()
        hosts = advertised_hosts(config, options.advertised_host or options.host)
        with refused_for_safety():
            check_certificates(config, hosts, self._clock.wall_ms())
            self._tls = tls_of_listeners(config)
            self._metrics_tls = tls_of_metrics(config)
            self.logins = cluster_logins(config, config.listeners.bound)
            connector = inter_broker_connector(config)
        self.zookeeper = self._new_zookeeper(options)
        self.zookeeper_loops = LoopThreads(no_calls)
        self.host_id = read_host_id()
        self.listener_ports = dict(options.ports)
        """The port of each listener: those assigned, and all of them once the broker listens."""
        self.metrics_port: int | None = None
        """The port of the metrics endpoint, if it is enabled."""
        self._options = options
        self._config = config
        self._name = name
        self._timer = ThreadTimer(name=f"{name}-timer")
        self._executor = ThreadExecutor(
            name=f"{name}-recovery", threads=config.get_int("num.recovery.threads.per.data.dir")
        )
        self._waiting_room = ThreadExecutor(name=f"{name}-asks-controller", threads=CONTROLLER_CALLS_MAX)
        self.host = Host(LocalDisk(), self._clock, self._executor, read_boot_id(), threading.Lock)
        self._listeners = config.listeners
        self._identity: dict[str, str] = {}
        self._loops = LoopThreads(self.ask)
        self._lanes = Lanes(config.get_int("num.replica.fetchers"))
        self._connections = [
            PeerConnections(client_id=name, connector=connector) for _ in range(self._lanes.count)
        ]
        """To other brokers, one for each lane."""
        self._link = ControllerLink(client_id=name, connector=connector)
        self._statistics = RequestStatistics()
        self._own_report = OwnReport(options.broker_id, self._clock)
        self._audit = open_audit(config, name, self._clock)
        self._store: StoreThreads | None = None
        self._reactor: Reactor | None = None
        self._certificate_metrics: Callable[[], list[Metric]] = list
        self._zookeeper_probe = ZooKeeperProbe(self.zookeeper, self._clock)
        self._away_since_ms: int | None = None
        """Since when ZooKeeper has not been reached; None while it is."""
        self._chores: list[Callable[[], None]] = []
        """What ends each chore that has begun; the last one ends first."""

    @staticmethod
    def _new_zookeeper(options: BrokerOptions) -> ZooKeeperSession:
        timeout_ms = options.config.get_int("zookeeper.session.timeout.ms")
        if options.new_zookeeper is not None:
            return options.new_zookeeper(options.zookeeper, timeout_ms)
        return new_session(options.zookeeper, options.config.zookeeper, timeout_ms)

    def ask(self, call: Call) -> Any:
        """Make a call of a loop."""
        if isinstance(call, CallBroker):
            return self._connections[call.lane].call(call.node, call.message, timeout_ms=call.timeout_ms)
        return self._link.call(call.message, timeout_ms=call.timeout_ms, lane=call.lane)

    def broker(self, epoch: BrokerEpoch = NO_BROKER_EPOCH) -> Broker:
        """The registration of this broker, once it listens."""
        options = self._options
        rack = options.rack or self._config.get_str("broker.rack") or None
        advertised = options.advertised_host or options.host
        endpoints = self._listeners.to_advertise(advertised, self.listener_ports)
        return Broker(options.broker_id, endpoints, epoch, rack)

    # Start

    def connect(self) -> None:
        self._own_report.warnings.begin()
        self.zookeeper.on_session(self._note_session)
        self.zookeeper.start(self._config.get_int("zookeeper.connection.timeout.ms"))

    def _note_session(self, event: SessionEvent) -> None:
        if event == "connected":
            self._away_since_ms = None
        elif self._away_since_ms is None:
            self._away_since_ms = self._clock.monotonic_ms()

    def _away_ms(self) -> int:
        since_ms = self._away_since_ms
        return 0 if since_ms is None else self._clock.monotonic_ms() - since_ms

    def body_ports(self, cluster_id: str) -> BodyPorts:
        link, broker_id = self._link, self._options.broker_id
        if self._config.get_str("remote.log.storage.url"):
            self._store = StoreThreads(broker_id, cluster_id, self._config, self._clock)
        return BodyPorts(
            inside=Ports(self._clock, self._timer, self._executor, new_guard=threading.Lock),
            loops=self._loops,
            zookeeper_loops=self.zookeeper_loops,
            zookeeper=self.zookeeper,
            link=link,
            controller=link,
            waiting_room=self._waiting_room,
            hang_up=lambda leader, lane: self._connections[lane].forget(leader),
            lanes=self._lanes,
            producer_ids=ProducerIds(
                broker_id, link, self._waiting_room, guard=threading.Lock(), asking=threading.Lock()
            ),
            new_seed=lambda: secrets.randbits(64),
            store=None if self._store is None else self._store.ports(),
            config_readers=self._users_reader(),
            own_principal=own_principal(self._config) if self._config.get_str(AUTHORIZER) else ANONYMOUS,
            identity=self._identity,
            audit=self._audit.audit,
            own_report=self._own_report.answer,
        )

    def listen(self, body: BrokerBody) -> Broker:
        reactor = self._new_reactor(body)
        body.parts.chores.attentive_until = reactor.attentive_until
        reactor.start()
        self._reactor = reactor
        self.listener_ports = dict(zip(self._listeners.bound, reactor.ports, strict=True))
        self._identity.update(self._found_at_start())
        return self.broker()

    def start_loops(self, body: BrokerBody) -> None:
        self.zookeeper_loops.start("zookeeper-probe", self._zookeeper_probe.loop)
        for name, loop in ({} if self.logins is None else self.logins.removals()).items():
            self.zookeeper_loops.start(f"removed-users-{name}", loop)
        body.replication.start()
        body.coordinators.start(self._loops, self.zookeeper_loops)

    def start_chores(self, body: BrokerBody) -> None:
        """Retention, compaction, copies to the store, figures and metrics."""
        settings = body.context.settings
        housekeeping = Housekeeping(body.parts.chores, self._config)
        housekeeping.start()
        self._chores.append(housekeeping.close)
        cleaners = CleanerThreads(body.cleaner, settings)
        cleaners.start()
        self._chores.append(cleaners.close)
        if self._store is not None:
            self._store.start(body, settings)
        else:
            for name, loop in body.question_loops():
                self.zookeeper_loops.start(name, loop)
        self._certificate_metrics = watch_expiry("broker", self._tls, self._clock, self._timer)
        reactor = self._reactor
        assert reactor is not None
        sampler = Sampler(body.parts, reactor, self._statistics, self._clock)
        read_metrics = partial(self._metrics, body, reactor)
        self._own_report.begin(body.replicas, sampler, read_metrics)
        self._chores.append(self._own_report.end)
        self._start_metrics(read_metrics)

    def _users_reader(self) -> tuple[UsersReader, ...]:
        """What follows the users of logins; nothing without them."""
        logins = self.logins
        if logins is None:
            return ()
        logins.users.secret = login_secret(self.zookeeper)
        return (UsersReader(logins.users, logins.on_gone),)

    def _new_reactor(self, body: BrokerBody) -> Reactor:
        config = self._config
        frames_bytes_max = config.get_int("queued.max.request.bytes")
        return Reactor(
            [
                Listener(
                    endpoint.host,
                    endpoint.port,
                    name,
                    self._tls.get(name),
                    None if self.logins is None else self.logins.of(name),
                )
                for name, endpoint in self._listeners.to_bind(
                    self._own_address(), self.listener_ports
                ).items()
            ],
            body.dispatcher,
            processors=config.get_int("num.network.threads"),
            handlers=config.get_int("num.io.threads"),
            queue_max=config.get_int("queued.max.requests"),
            frame_bytes_max=config.get_int("socket.request.max.bytes"),
            frames_bytes_max=frames_bytes_max if frames_bytes_max > 0 else None,
            connection_limits=ConfiguredLimits(body.context.settings, self._waiting_room),
            address_rate=body.context.quotas.address_rate,
            rate_windows=body.context.quotas.windows,
            idle_ms=config.get_int("connections.max.idle.ms"),
            login_ms=config.get_int("connections.login.timeout.ms"),
            begins_beside=begins_beside,
            works_in_place=works_in_place,
            statistics=self._statistics,
            clock=self._clock,
            name=self._name,
        )

    def _own_address(self) -> str:
        """Where listeners without a host listen: an address for others may lead to any interface."""
        return self._options.host if self._options.advertised_host is None else ALL_ADDRESSES

    def _found_at_start(self) -> dict[str, str]:
        """Settings whose values this broker has found at its start."""
        options, broker = self._options, self.broker()
        listeners = self._listeners.to_bind(self._own_address(), self.listener_ports)
        identity = {
            "broker.id": str(options.broker_id),
            "node.id": str(options.broker_id),
            "log.dirs": ",".join(options.log_dirs),
            "zookeeper.connect": options.zookeeper,
            "listeners": ",".join(f"{name}://{endpoint}" for name, endpoint in listeners.items()),
            "advertised.listeners": ",".join(
                f"{name}://{endpoint}" for name, endpoint in broker.endpoints.items()
            ),
        }
        return identity if broker.rack is None else {**identity, "broker.rack": broker.rack}

    def _metrics(self, body: BrokerBody, reactor: Reactor) -> Iterable[Metric]:
        """As of now."""
        return (
            *broker_metrics(body.replicas, body.context.log_dirs, body.replication.proposals),
            *zookeeper_metrics(
                self._away_ms(), self._zookeeper_probe.slowest_ms, self.zookeeper.session_timeout_ms
            ),
            *disk_metrics(body.context.log_dirs, body.parts.free_spaces),
            *topic_metrics(body.parts.traffic, body.replicas),
            *coordinator_metrics(body.coordinators),
            *connection_metrics(reactor),
            *conversion_metrics(body.context.conversions),
            *request_metrics(self._statistics),
            *quota_metrics(body.context.quotas),
            *remote_metrics(body.copies),
            *self._certificate_metrics(),
        )

    def _start_metrics(self, read_metrics: Callable[[], Iterable[Metric]]) -> None:
        port = self._config.get_int("metrics.port")
        if port < 0:
            return
        # Here, so that only those pay for its library who want metrics.
        from sparklog.network.metrics_server import serve_metrics

        host = self._config.get_str("metrics.host") or self._options.host
        server = serve_metrics(read_metrics, host, port, name=self._name, tls=self._metrics_tls)
        if server is not None:
            self.metrics_port = server.port
            self._chores.append(server.close)

    # End

    def on_released(self) -> None:
        logger.info("%s leads nothing any more that another replica could lead", self._name)

    def stop_chores(self) -> None:
        with ExitStack() as chores:  # a chore that cannot be ended keeps no other from ending
            if self._store is not None:
                chores.callback(self._store.close)
            for end in self._chores:
                chores.callback(end)

    def stop_loops(self) -> None:
        with ExitStack() as ends:
            ends.callback(self._loops.close)
            for connections in self._connections:
                ends.callback(connections.close)
            ends.callback(self.zookeeper_loops.close, JOIN_SECONDS)
            ends.callback(self._link.close)

    def stop_listening(self) -> None:
        if self._reactor is not None:
            self._reactor.stop()

    def end_session(self) -> None:
        self.zookeeper.close()

    def close(self) -> None:
        """End the threads that nothing above waits for any more."""
        self._own_report.warnings.end()
        self._audit.close()
        self._timer.stop()
        self._executor.stop()
        self._waiting_room.stop()
