"""A broker in a process: ``BrokerLife`` driven by a thread, over the process's own ports.

A broker whose ZooKeeper session expired, or whose last log directory failed, ends by itself. It may be
started again in the same process, as another ``BrokerServer``.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Final

from sparklog.broker.life.body import BrokerBody
from sparklog.broker.life.broker_life import BrokerLife
from sparklog.broker.life.options import BrokerOptions
from sparklog.broker.life.process_ports import ProcessPorts
from sparklog.model.cluster_facts import Broker, Node
from sparklog.model.errors import SparklogError
from sparklog.model.zookeeper import ZooKeeper
from sparklog.network.loop_threads import LoopDriver

logger: Final = logging.getLogger(__name__)

__all__ = ["BrokerOptions", "BrokerServer"]


class BrokerServer:
    """One broker process. ``start`` returns when it is registered; ``stop`` may be called at any time."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._name = f"broker-{options.broker_id}"
        self.process = ProcessPorts(options)
        self.life = BrokerLife(
            options.broker_id,
            options.log_dirs,
            options.config,
            self.process,
            threading.Lock(),
            self._report_recovery,
        )
        self._thread = threading.Thread(target=self._live, name=f"{self._name}-life", daemon=True)
        self._is_up_or_over = threading.Event()
        self._stopped = threading.Event()
        self._start_lock = threading.Lock()

    @property
    def broker(self) -> Broker:
        """This broker's registration, once it listens."""
        return self.process.broker(self.life.broker_epoch)

    @property
    def node(self) -> Node:
        """This broker as clients of its first listener see it, once it listens."""
        node = self.broker.node(self._options.config.listeners.first)
        assert node is not None, self._options.config.listeners
        return node

    @property
    def addresses(self) -> dict[str, str]:
        """``host:port`` of each listener that this broker advertises, once it listens."""
        return {name: str(endpoint) for name, endpoint in self.broker.endpoints.items()}

    @property
    def ports(self) -> Mapping[str, int]:
        """The port that each listener listens on, once the broker does."""
        return dict(self.process.listener_ports)

    @property
    def metrics_port(self) -> int | None:
        """The port of the metrics endpoint, if it is enabled."""
        return self.process.metrics_port

    @property
    def body(self) -> BrokerBody:
        """The parts of the broker, once its log directories are open."""
        assert self.life.body is not None, f"{self._name} has not opened its logs"
        return self.life.body

    @property
    def zookeeper(self) -> ZooKeeper:
        """The session that this broker lives by."""
        return self.process.zookeeper

    @property
    def failure(self) -> str | None:
        """Why the broker ended by itself."""
        failure = self.life.failure
        return None if failure is None else failure.why

    @property
    def has_lost_session(self) -> bool:
        """Whether the broker failed because its ZooKeeper session expired; it may be started again then."""
        failure = self.life.failure
        return failure is not None and failure.lost_session

    def start(self) -> None:
        """Open the logs, listen, register. Raises SparklogError or OSError with the cause."""
        with self._start_lock:
            if self.life.is_ending:
                raise SparklogError(f"{self._name} was stopped before it started")
            self._thread.start()
        try:
            self._is_up_or_over.wait()
        except BaseException:
            self.stop(clean=False)
            raise
        if (error := self.life.error) is not None:
            self._join()
            raise error

    def stop(self, clean: bool = True) -> None:
        """Stop; ``clean`` moves leaders away first and leaves nothing to recover. Twice is fine."""
        self.life.stop(clean=clean)
        with self._start_lock:
            has_begun = self._thread.ident is not None
            if not has_begun:
                self.process.close()
                self._stopped.set()
        self._join()

    def wait_stopped(self, timeout_seconds: float | None = None) -> bool:
        """Whether the broker has stopped, by itself (``failure`` has the reason) or by ``stop``."""
        return self._stopped.wait(timeout_seconds)

    def _live(self) -> None:
        try:
            LoopDriver(self.process.ask).drive(self.life.run(self._is_up_or_over.set))
        except Exception:
            logger.exception("%s ends by a bug", self._name)
        try:
            self.life.end()
            self.process.close()
        finally:
            self._stopped.set()
            self._is_up_or_over.set()

    def _join(self) -> None:
        """Wait until the broker has stopped, and its thread as well."""
        assert threading.current_thread() is not self._thread, f"{self._name} would wait for its own end"
        self._stopped.wait()
        if self._thread.ident is not None:
            self._thread.join()

    def _report_recovery(self, text: str) -> None:
        logger.info("%s", text)
        if self._options.on_recovery is not None:
            self._options.on_recovery(text)
