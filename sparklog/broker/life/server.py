"""The composition root of a broker: joins disk, network, ZooKeeper and the pure machines, and starts them.

Start, in this order, because each step relies on the one before: lock the log directories and open their
logs, recovering what a crash left; listen; register in ZooKeeper under a fresh broker epoch. From then on the
controller sends this broker its roles.

A clean stop, protocol first: ask the controller for other leaders, stop fetching and serving, flush, write
checkpoints, mark the directories clean, and leave ZooKeeper.

A broker whose ZooKeeper session expired stops at once, without any of that, because others have taken over.
It may be started again in the same process, as another ``BrokerServer``.

A broker whose last log directory failed stops at once, too, because otherwise the controller would not elect
other leaders for its partitions. If an fsync failed, it marks the directory suspect in ZooKeeper before it
unlocks it. A broker with another directory serves on without the one that failed, and reports it.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from sparklog.broker.coordination.metrics import coordinator_metrics
from sparklog.broker.dispatch import begins_beside, works_in_place
from sparklog.broker.life.body import CONTROLLER_CALLS_MAX, BodyPorts, BrokerBody, Lanes
from sparklog.broker.life.cleaner_threads import CleanerThreads
from sparklog.broker.life.connection_limits import ConfiguredLimits
from sparklog.broker.life.controlled_shutdown import move_leaders_away
from sparklog.broker.life.housekeeping import Housekeeping
from sparklog.broker.life.metrics import broker_metrics, conversion_metrics, disk_metrics
from sparklog.broker.life.options import BrokerOptions
from sparklog.broker.life.registration import Registration
from sparklog.broker.life.remote_copies import StorePorts
from sparklog.broker.life.remote_metrics import remote_metrics
from sparklog.broker.life.request_metrics import connection_metrics, request_metrics
from sparklog.broker.life.store_threads import StoreThreads
from sparklog.broker.log_dirs import DirectoryFailed, LogDirs
from sparklog.broker.ports import Ports
from sparklog.broker.to_controller.controller_link import ControllerLink
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.model.cluster import Broker, Node
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from sparklog.model.loops import Call, CallBroker, Loop
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.executor import ThreadExecutor
from sparklog.network.loop_threads import LoopDriver, LoopThreads, no_calls
from sparklog.network.peer_connections import PeerConnections
from sparklog.network.reactor import Reactor
from sparklog.network.request_statistics import RequestStatistics
from sparklog.network.timer import ThreadTimer
from sparklog.zookeeper.registration import report_suspect

logger = logging.getLogger(__name__)

__all__ = ["BrokerOptions", "BrokerServer"]

ALL_ADDRESSES: Final = "0.0.0.0"
"""Where listeners without a host listen if the operator gives the host an address for others."""

JOIN_SECONDS: Final = 1.0
"""Longest wait for loops that may wait for an absent ZooKeeper: the end of the session ends their wait."""


class BrokerServer:
    """One broker process. ``start`` returns when it is registered; ``stop`` may be called at any time."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._config = options.config
        self._clock = SystemClock()
        self._timer = ThreadTimer(name=f"broker-{options.broker_id}-timer")
        self._executor = ThreadExecutor(
            name=f"broker-{options.broker_id}-recovery",
            threads=self._config.get_int("num.recovery.threads.per.data.dir"),
        )
        self._waiting_room = ThreadExecutor(
            name=f"broker-{options.broker_id}-asks-controller", threads=CONTROLLER_CALLS_MAX
        )
        self._client_id = f"broker-{options.broker_id}"
        self._stopped = threading.Event()
        self._stop_lock = threading.Lock()
        self._failure_guard = threading.Lock()
        """Guards ``failure``, ``has_lost_session`` and ``_suspect``: several threads may fail at once."""
        self._undo: list[Callable[[], None]] = []
        self._listeners = options.config.listeners
        self._ports = dict(options.ports)
        """The port of each listener: those assigned, and all of them once the broker listens."""
        self._identity: dict[str, str] = {}
        self._registration = Registration(options)
        self._body: BrokerBody | None = None
        """All that serves, once the log directories are open."""
        self._zookeeper_loops = LoopThreads(no_calls)
        self._loops = LoopThreads(self._ask)
        self._lanes = Lanes(self._config.get_int("num.replica.fetchers"))
        self._connections = [PeerConnections(client_id=self._client_id) for _ in range(self._lanes.count)]
        """To other brokers, one for each lane."""
        self._link = ControllerLink(client_id=self._client_id)
        self._statistics = RequestStatistics()
        self._clean = False
        self.failure: str | None = None
        self._suspect: str | None = None
        """The id of the last directory, if it is suspect."""
        self.has_lost_session = False
        """Whether the broker failed because its ZooKeeper session expired; it may be started again then."""
        self.metrics_port: int | None = None
        """The port of the metrics endpoint, if it is enabled."""

    @property
    def broker(self) -> Broker:
        """This broker's registration, once it listens."""
        options = self._options
        rack = options.rack or self._config.get_str("broker.rack") or None
        endpoints = self._listeners.to_advertise(options.advertised_host or options.host, self._ports)
        return Broker(options.broker_id, endpoints, self._broker_epoch, rack)

    @property
    def node(self) -> Node:
        """This broker as clients of its first listener see it, once it listens."""
        node = self.broker.node(self._listeners.first)
        assert node is not None, self._listeners
        return node

    def _found_at_start(self) -> dict[str, str]:
        """Settings whose values this broker has found at its start, once it listens."""
        options, broker = self._options, self.broker
        listeners = self._listeners.to_bind(self._own_address(), self._ports)
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

    @property
    def addresses(self) -> dict[str, str]:
        """``host:port`` of each listener that this broker advertises, once it listens."""
        return {name: str(endpoint) for name, endpoint in self.broker.endpoints.items()}

    @property
    def ports(self) -> Mapping[str, int]:
        """The port that each listener listens on, once the broker does."""
        return dict(self._ports)

    def start(self) -> None:
        """Open the logs, listen, register. Raises SparklogError or OSError with the cause."""
        try:
            self._start()
            with self._stop_lock:
                if self._stopped.is_set():
                    raise SparklogError(f"{self._client_id} was stopped while it started: {self.failure}")
                self.body.context.producer_ids.look_ahead(self._broker_epoch)
        except BaseException:
            with self._stop_lock:
                self._unwind()
                self._stopped.set()
            raise

    def stop(self, clean: bool = True) -> None:
        """Stop; ``clean`` moves leaders away first and leaves nothing to recover. Twice is fine."""
        with self._stop_lock:
            if self._stopped.is_set():
                return
            self._clean = clean and self.failure is None
            if self._clean:
                self._shut_down_controlled()
            self._unwind()
            self._stopped.set()

    def wait_stopped(self, timeout_seconds: float | None = None) -> bool:
        """Whether the broker has stopped, by itself (``failure`` has the reason) or by ``stop``."""
        return self._stopped.wait(timeout_seconds)

    @property
    def body(self) -> BrokerBody:
        """The parts of the broker, once its log directories are open."""
        assert self._body is not None, f"{self._client_id} has not opened its logs"
        return self._body

    @property
    def _broker_epoch(self) -> BrokerEpoch:
        return NO_BROKER_EPOCH if self._body is None else self._body.replication.broker_epoch

    # Start

    def _start(self) -> None:
        options, registration = self._options, self._registration
        self._undo.append(registration.close)
        registration.connect()
        registration.on_expired(self._on_expired)
        log_dirs = registration.open_directories(self._executor, self._clock)
        self._undo.append(lambda: self._close_logs(log_dirs))
        store = self._store_threads()
        body = self._body = BrokerBody.compose(
            options.broker_id,
            registration.cluster_id,
            self._config,
            log_dirs,
            self._body_ports(None if store is None else store.ports()),
            self._fail,
        )
        reactor = self._reactor(body)
        body.replicas.attentive_until = reactor.attentive_until
        reactor.start()
        self._ports = dict(zip(self._listeners.bound, reactor.ports, strict=True))
        self._identity.update(self._found_at_start())
        self._undo.append(reactor.stop)
        self._undo.append(self._loops.close)
        self._undo += [connections.close for connections in self._connections]
        body.replication.start()
        body.coordinators.start(self._loops, self._zookeeper_loops)
        self._undo.append(self._link.close)
        self._undo.append(lambda: self._zookeeper_loops.close(JOIN_SECONDS))
        body.replication.registered(registration.register(self.broker, log_dirs), self._fail)
        self._start_chores(body, store)
        self._start_metrics(body, reactor)
        logger.info("broker %s is up in epoch %d", self.broker, self._broker_epoch)

    def _store_threads(self) -> StoreThreads | None:
        if not self._config.get_str("remote.log.storage.url"):
            return None
        return StoreThreads(self._options.broker_id, self._registration.cluster_id, self._config, self._clock)

    def _body_ports(self, store: StorePorts | None) -> BodyPorts:
        link = self._link
        return BodyPorts(
            inside=Ports(self._clock, self._timer, self._executor, new_guard=threading.Lock),
            loops=self._loops,
            zookeeper_loops=self._zookeeper_loops,
            zookeeper=self._registration.zookeeper,
            link=link,
            controller=link,
            waiting_room=self._waiting_room,
            hang_up=lambda leader, lane: self._connections[lane].forget(leader),
            lanes=self._lanes,
            producer_ids=ProducerIds(self._options.broker_id, link, self._waiting_room),
            new_seed=lambda: secrets.randbits(64),
            store=store,
            identity=self._identity,
        )

    def _start_chores(self, body: BrokerBody, store: StoreThreads | None) -> None:
        """What works on logs beside requests: retention, compaction, copies to the store."""
        settings = body.replicas.settings
        housekeeping = Housekeeping(body.replicas, self._config)
        housekeeping.start()
        self._undo.append(housekeeping.close)
        cleaners = CleanerThreads(body.cleaner, settings)
        cleaners.start()
        self._undo.append(cleaners.close)
        if store is not None:
            store.start(body, settings)
            self._undo.append(store.close)
            return
        for name, loop in body.question_loops():
            self._zookeeper_loops.start(name, loop)

    def _start_metrics(self, body: BrokerBody, reactor: Reactor) -> None:
        port = self._config.get_int("metrics.port")
        if port < 0:
            return
        # Here, so that only those pay for its library who want metrics.
        from sparklog.network.metrics_server import serve_metrics

        server = serve_metrics(
            lambda: (
                *broker_metrics(body.replicas, body.replication.proposals),
                *disk_metrics(body.replicas),
                *coordinator_metrics(body.coordinators),
                *connection_metrics(reactor),
                *conversion_metrics(body.context.conversions),
                *request_metrics(self._statistics),
                *remote_metrics(body.copies),
            ),
            self._options.host,
            port,
            name=self._client_id,
        )
        if server is not None:
            self.metrics_port = server.port
            self._undo.append(server.close)

    def _ask(self, call: Call) -> Any:
        """Make a call of a loop."""
        if isinstance(call, CallBroker):
            return self._connections[call.lane].call(call.node, call.message, timeout_ms=call.timeout_ms)
        return self._link.call(call.message, timeout_ms=call.timeout_ms, lane=call.lane)

    def _reactor(self, body: BrokerBody) -> Reactor:
        config = self._config
        frames_bytes_max = config.get_int("queued.max.request.bytes")
        return Reactor(
            [
                Listener(endpoint.host, endpoint.port, name)
                for name, endpoint in self._listeners.to_bind(self._own_address(), self._ports).items()
            ],
            body.dispatcher,
            processors=config.get_int("num.network.threads"),
            handlers=config.get_int("num.io.threads"),
            queue_max=config.get_int("queued.max.requests"),
            frame_bytes_max=config.get_int("socket.request.max.bytes"),
            frames_bytes_max=frames_bytes_max if frames_bytes_max > 0 else None,
            connection_limits=ConfiguredLimits(body.replicas.settings, self._waiting_room),
            idle_ms=config.get_int("connections.max.idle.ms"),
            begins_beside=begins_beside,
            works_in_place=works_in_place,
            statistics=self._statistics,
            clock=self._clock,
            name=self._client_id,
        )

    def _own_address(self) -> str:
        """Where listeners without a host listen: an address for others may lead to any interface."""
        return self._options.host if self._options.advertised_host is None else ALL_ADDRESSES

    # Stop

    def _on_expired(self, why: str) -> None:
        with self._failure_guard:
            self.has_lost_session = self.failure is None
        self._fail(why)

    def _fail(self, why: str, suspect: str | None = None) -> None:
        """Refuse all requests from now on, and stop, because other brokers have taken over, or the disk
        failed.

        The stop is a loop of its own, because it waits for threads, and those that write or read here must
        not wait for it.
        """
        with self._failure_guard:
            self._suspect = suspect or self._suspect
            if self._stopped.is_set() or self.failure is not None:
                return
            self.failure = why
        logger.error("broker %d stops: %s", self._options.broker_id, why)
        if self._body is not None:
            self._body.dispatcher.close()
        self._zookeeper_loops.start("broker-failure", lambda: self._stop_failed(why, suspect))

    def _stop_failed(self, why: str, suspect: str | None) -> Loop:
        if self._body is not None:
            self._body.replicas.stop_serving(why)
            if suspect is not None and self._broker_epoch >= 0:
                yield from self._body.replication.reports.withdrawal(suspect)
        self.stop(clean=False)

    def _shut_down_controlled(self) -> None:
        """Have others take over what this broker leads, if it is registered."""
        if self._broker_epoch >= 0 and self._config.get_bool("controlled.shutdown.enable"):
            attempts_max = self._config.get_int("controlled.shutdown.max.retries")
            LoopDriver(self._ask).drive(
                move_leaders_away(self._options.broker_id, self._broker_epoch, attempts_max=attempts_max)
            )

    def _close_logs(self, log_dirs: LogDirs) -> None:
        clean_epoch = self._broker_epoch if self._clean and self._broker_epoch >= 0 else None
        if self._body is None:
            log_dirs.close()
            return
        try:
            self._body.replicas.close(clean_epoch)
        except DirectoryFailed as failed:
            if failed.is_suspect:
                self._suspect = str(failed.directory.uuid)
            raise
        finally:
            if self._suspect is not None and self._broker_epoch >= 0:
                # Also if the last disk failed only now, because the session is about to end.
                report_suspect(
                    self._registration.zookeeper, self._options.broker_id, self._suspect, self._broker_epoch
                )

    def _unwind(self) -> None:
        """Undo what ``start`` did, last first; one step's failure must not keep the others from running."""
        while self._undo:
            self._guarded(self._undo.pop())
        self._timer.stop()
        self._executor.stop()
        self._waiting_room.stop()

    @staticmethod
    def _guarded(step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, SparklogError):
            logger.exception("a step of stopping failed; going on with the next")
