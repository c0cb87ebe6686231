"""A broker's entry in ZooKeeper: its cluster's id, its incarnation, and the session it lives by."""

import logging
from collections.abc import Callable

from sparklog.broker.life.open_directories import Host, open_directories
from sparklog.broker.life.options import BrokerOptions
from sparklog.broker.log_dirs import LogDirs
from sparklog.model.cluster import Broker
from sparklog.model.ids import BrokerEpoch
from sparklog.model.ports import Executor
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.storage.disk import LocalDisk
from sparklog.zookeeper.boot import read_boot_id, read_host_id
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from sparklog.zookeeper.registration import (
    read_or_create_cluster_id,
    register_broker,
)

logger = logging.getLogger(__name__)


def register(
    zookeeper: ZooKeeper, broker: Broker, log_dirs: LogDirs, *, boot_id: str, host_id: str
) -> BrokerEpoch:
    """Make a broker visible under a fresh broker epoch; refused while a foreign holder of its id lives.

    After LogDirectoryError the registration stays until the session ends; the broker must not serve
    meanwhile.
    """
    epoch = register_broker(
        zookeeper,
        broker,
        log_dirs.identities(),
        boot_id=boot_id,
        host_id=host_id,
        offline_directories=len(log_dirs.offline),
    )
    log_dirs.forget_suspects()
    return epoch


class Registration:
    """The ZooKeeper session of one broker, and what it registers there."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        config = options.config
        self._connect_timeout_ms = config.get_int("zookeeper.connection.timeout.ms")
        new_zookeeper = options.new_zookeeper or KazooZooKeeper
        self._zookeeper = new_zookeeper(options.zookeeper, config.get_int("zookeeper.session.timeout.ms"))
        self.cluster_id = ""
        self._boot_id = read_boot_id()
        self._host_id = read_host_id()

    @property
    def zookeeper(self) -> ZooKeeper:
        return self._zookeeper

    def connect(self) -> None:
        """Connect; SparklogError with the address if ZooKeeper is not there."""
        self._zookeeper.start(self._connect_timeout_ms)
        self.cluster_id = read_or_create_cluster_id(self._zookeeper)

    def on_expired(self, stop: Callable[[str], None]) -> None:
        """Call ``stop`` with the reason when ZooKeeper says that the session is over."""

        def on_event(event: str) -> None:
            if event == "expired":
                stop("ZooKeeper expired its session: others may have taken over")

        self._zookeeper.on_session(on_event)

    def open_directories(self, executor: Executor, clock: Clock) -> LogDirs:
        """Lock the log directories and open what is in them (``open_directories``)."""
        options = self._options
        host = Host(LocalDisk(), clock, executor, self._boot_id)
        return open_directories(
            options.log_dirs,
            options.broker_id,
            self.cluster_id,
            host,
            self._zookeeper,
            options.config,
            self._tell_recovery,
        )

    def _tell_recovery(self, text: str) -> None:
        logger.info("%s", text)
        if self._options.on_recovery is not None:
            self._options.on_recovery(text)

    def register(self, broker: Broker, log_dirs: LogDirs) -> BrokerEpoch:
        """Make the broker visible (``register``)."""
        return register(self._zookeeper, broker, log_dirs, boot_id=self._boot_id, host_id=self._host_id)

    def close(self) -> None:
        """End the session: the registration goes with it."""
        self._zookeeper.close()
