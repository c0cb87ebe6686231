"""The composition root of a broker: joins disk, network, ZooKeeper and the pure machines, and starts them.

Start, in this order, because each step relies on the one before: lock the log directories and open their logs
(recovering what a crash left); listen; register in ZooKeeper under a fresh broker epoch. From then on the
controller tells this broker what it leads and follows.

Stop, by protocol first: ask the controller to move our leaderships, stop fetching and serving, flush, write
checkpoints, mark the directories clean, and leave ZooKeeper. A broker that ZooKeeper tells that its session
expired has been replaced as far as everybody else is concerned: it stops at once, without any of that. So
does one whose disk fails: nobody else would learn that the partitions it leads are served no more.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from sparklog.broker.context import BrokerContext
from sparklog.broker.controller_link import ControllerLink
from sparklog.broker.dispatch import Dispatcher
from sparklog.broker.fetcher import Fetcher
from sparklog.broker.fetcher_threads import FetcherThreads
from sparklog.broker.housekeeping import Housekeeping
from sparklog.broker.isr_proposals import IsrProposalSender
from sparklog.broker.log_dirs import LogDirs
from sparklog.broker.metadata_cache import MetadataCache
from sparklog.broker.options import BrokerOptions
from sparklog.broker.peers import PeerConnections
from sparklog.broker.ports import Ports
from sparklog.broker.producer_ids import ProducerIds
from sparklog.broker.registration import Registration
from sparklog.broker.registration_watch import RegistrationWatch
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.model.cluster import Broker
from sparklog.model.errors import ErrorCode, SparklogError, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.executor import ThreadExecutor
from sparklog.network.reactor import Reactor
from sparklog.network.timer import ThreadTimer
from sparklog.wire.messages.controlled_shutdown import ControlledShutdownRequest

logger = logging.getLogger(__name__)

__all__ = ["BrokerOptions", "BrokerServer"]

SHUTDOWN_RETRY_MS: Final = 200
"""Pause between tries of a controlled shutdown while partitions remain that nobody else can lead yet."""

SHUTDOWN_TIMEOUT_MS: Final = 3_000
"""Longest wait for the controller: where a whole cluster stops there may be none any more."""

CONTROLLER_CALLS_MAX: Final = 4
"""Requests of clients that wait for the controller at the same time; others queue behind them."""


class BrokerServer:
    """One broker process. ``start`` returns when it is registered; ``stop`` may be called at any time."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._config = options.config
        self._clock = SystemClock()
        self._timer = ThreadTimer(name=f"broker-{options.broker_id}-timer")
        self._executor = ThreadExecutor(name=f"broker-{options.broker_id}-recovery", threads=2)
        self._waiting_room = ThreadExecutor(
            name=f"broker-{options.broker_id}-asks-controller", threads=CONTROLLER_CALLS_MAX
        )
        self._client_id = f"broker-{options.broker_id}"
        self._stopped = threading.Event()
        self._stop_lock = threading.Lock()
        self._undo: list[Callable[[], None]] = []
        self._broker_epoch = BrokerEpoch(-1)
        self._port = options.port
        self._registration = Registration(options)
        self._metadata = MetadataCache(threading.Lock())
        self._dispatcher: Dispatcher | None = None
        self._link: ControllerLink | None = None
        self._replicas: ReplicaManager | None = None
        self._clean = False
        self.failure: str | None = None

    @property
    def endpoint(self) -> Broker:
        """Who and where this broker is, once it has started."""
        options = self._options
        return Broker(options.broker_id, options.host, self._port, self._broker_epoch, options.rack)

    def start(self) -> None:
        """Open, listen, register. Raises SparklogError or OSError that says what is in the way."""
        try:
            self._start()
            with self._stop_lock:
                if self._stopped.is_set():
                    raise SparklogError(f"{self._client_id} was stopped while it started: {self.failure}")
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
        """Whether the broker has stopped, by itself (then ``failure`` says why) or because it was told to."""
        return self._stopped.wait(timeout_seconds)

    # Start

    def _start(self) -> None:
        options, registration = self._options, self._registration
        self._undo.append(registration.close)
        registration.connect()
        registration.on_expired(self._fail)
        log_dirs = registration.open_directories(self._executor, self._clock)
        self._undo.append(lambda: self._close_logs(log_dirs))
        context, fetchers, proposals, peers = self._compose(log_dirs)
        self._dispatcher = Dispatcher(context)
        reactor = self._reactor(self._dispatcher)
        reactor.start()
        self._port = reactor.ports[0]
        self._undo.append(reactor.stop)
        self._undo.append(fetchers.close)
        self._undo.append(peers.close)
        assert self._link is not None
        self._link.start()
        proposals.start()
        self._undo.append(proposals.close)
        self._undo.append(self._link.close)
        self._broker_epoch = registration.register(self.endpoint)
        context.replicas.broker_epoch = self._broker_epoch
        watch = RegistrationWatch(registration.zookeeper, options.broker_id, self._broker_epoch, self._fail)
        watch.start()
        self._undo.append(watch.close)
        housekeeping = Housekeeping(context.replicas, self._config)
        housekeeping.start()
        self._undo.append(housekeeping.close)
        logger.info("broker %s is up in epoch %d", self.endpoint, self._broker_epoch)

    def _compose(
        self, log_dirs: LogDirs
    ) -> tuple[BrokerContext, FetcherThreads, IsrProposalSender, PeerConnections]:
        options, config = self._options, self._config
        ports = Ports(clock=self._clock, timer=self._timer, executor=self._executor, new_guard=threading.Lock)
        link = ControllerLink(self._registration.zookeeper, self._clock, client_id=self._client_id)
        peers = PeerConnections(client_id=self._client_id)

        def new_fetcher(leader: BrokerId) -> Fetcher:
            return Fetcher(
                broker_id=options.broker_id,
                broker_epoch=lambda: self._broker_epoch,
                leader=leader,
                find_broker=self._metadata.broker,
                peers=peers,
                config=config,
                clock=self._clock,
                guard=threading.Lock(),
            )

        fetchers = FetcherThreads(new_fetcher, peers)
        proposals = IsrProposalSender(
            options.broker_id,
            lambda: self._broker_epoch,
            link,
            lambda tp: replicas.get(tp),  # noqa: PLW0108 (made below)
        )
        replicas = ReplicaManager(
            options.broker_id,
            config,
            log_dirs,
            ports,
            fetchers=fetchers,
            proposals=proposals,
            on_log_failure=self._fail,
        )
        replicas.load()
        self._link, self._replicas = link, replicas
        context = BrokerContext(
            broker_id=options.broker_id,
            cluster_id=self._registration.cluster_id,
            config=config,
            metadata=self._metadata,
            replicas=replicas,
            controller=link,
            producer_ids=ProducerIds(options.broker_id, link),
            waiting_room=self._waiting_room,
        )
        return context, fetchers, proposals, peers

    def _reactor(self, dispatcher: Dispatcher) -> Reactor:
        config = self._config
        return Reactor(
            [Listener(self._options.host, self._options.port)],
            dispatcher,
            processors=config.get_int("num.network.threads"),
            handlers=config.get_int("num.io.threads"),
            queue_max=config.get_int("queued.max.requests"),
            frame_bytes_max=config.get_int("socket.request.max.bytes"),
            connections_max=config.get_int("max.connections"),
            idle_ms=config.get_int("connections.max.idle.ms"),
            clock=self._clock,
            name=self._client_id,
        )

    # Stop

    def _fail(self, why: str) -> None:
        """The world has gone on without us: serve nobody from this moment on, and stop.

        Stopping takes its time (threads are waited for, and they may wait for a peer), so it has a thread of
        its own, and those who write or read here must not wait for it.
        """
        if self._stopped.is_set() or self.failure is not None:
            return
        self.failure = why
        logger.error("broker %d stops: %s", self._options.broker_id, why)
        if self._dispatcher is not None:
            self._dispatcher.close()
        threading.Thread(target=self._stop_failed, args=(why,), name="broker-failure", daemon=True).start()

    def _stop_failed(self, why: str) -> None:
        if self._replicas is not None:
            self._replicas.stop_serving(why)
        self.stop(clean=False)

    def _shut_down_controlled(self) -> None:
        """Ask the controller to move our leaderships away, until none is left that another could take."""
        if self._link is None or self._broker_epoch < 0:
            return
        if not self._config.get_bool("controlled.shutdown.enable"):
            return
        request = ControlledShutdownRequest(
            broker_id=self._options.broker_id, broker_epoch=self._broker_epoch
        )
        for attempt in range(self._config.get_int("controlled.shutdown.max.retries")):
            if attempt:
                self._stopped.wait(SHUTDOWN_RETRY_MS / 1_000)
            try:
                response = self._link.call(request, timeout_ms=SHUTDOWN_TIMEOUT_MS)
            except (OSError, WireError, SparklogError) as error:
                logger.info("stopping without moving leaders, as no controller helps: %s", error)
                return
            if response.error_code is ErrorCode.none and not response.remaining_partitions:
                return
            logger.info(
                "controlled shutdown, try %d: %s, %d partitions remain",
                attempt + 1,
                response.error_code.name,
                len(response.remaining_partitions),
            )

    def _close_logs(self, log_dirs: LogDirs) -> None:
        clean_epoch = self._broker_epoch if self._clean and self._broker_epoch >= 0 else None
        if self._replicas is not None:
            self._replicas.close(clean_epoch)
        else:
            log_dirs.close()

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
