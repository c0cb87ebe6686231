"""A broker's entry in ZooKeeper: its cluster's id, its incarnation, and the session it lives by."""

import logging
from collections.abc import Callable

from sparklog.broker.life.options import BrokerOptions
from sparklog.broker.log_dirs import LogDirs
from sparklog.model.cluster import Broker
from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import BrokerEpoch
from sparklog.model.ports import Executor
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_directory import DirectoryUnusable, LogDirectory
from sparklog.zookeeper.boot import read_boot_id, read_host_id
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from sparklog.zookeeper.registration import (
    read_or_create_cluster_id,
    read_suspect,
    register_broker,
    report_missing,
    report_suspect,
    withdraw_suspect,
)

logger = logging.getLogger(__name__)


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
        self._log_dirs: LogDirs | None = None
        self._is_one_suspect = False
        """Whether a directory that could not be opened may have lost something."""

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
        """Lock the log directories, take their clean markers, and open what is in them."""
        options = self._options
        opened: list[LogDirectory] = []
        unusable: dict[str, str] = {}
        try:
            for path in options.log_dirs:
                self._open_directory(path, clock, opened, unusable)
            if self._is_one_suspect:
                report_missing(self._zookeeper, options.broker_id, {str(one.uuid) for one in opened})
            if not opened and unusable:
                raise LogDirectoryError("; ".join(unusable.values()))
            log_dirs = LogDirs(opened, options.config, unusable)
            in_zookeeper = read_suspect(self._zookeeper, options.broker_id)
            self._load(log_dirs, executor, in_zookeeper)
            self._identities = log_dirs.identities()
            self._log_dirs = log_dirs
        except BaseException:
            for directory in opened:
                directory.close()
            raise
        if not opened:
            raise LogDirectoryError(f"broker {options.broker_id} was given no log directory: set log.dirs")
        return log_dirs

    def _load(self, log_dirs: LogDirs, executor: Executor, suspect: frozenset[str]) -> None:
        """What fails meanwhile is reported to ZooKeeper before anything else, and before a lock is let go."""
        try:
            log_dirs.load(executor, suspect | log_dirs.suspects(), self._tell_recovery)
        finally:
            for directory_uuid in log_dirs.lost_at_start:
                report_suspect(self._zookeeper, self._options.broker_id, directory_uuid)

    def _tell_recovery(self, text: str) -> None:
        logger.info("%s", text)
        if self._options.on_recovery is not None:
            self._options.on_recovery(text)

    def _open_directory(
        self, path: str, clock: Clock, opened: list[LogDirectory], unusable: dict[str, str]
    ) -> None:
        """Open one directory. If its disk refuses, the others serve without it; if it is another's, none."""
        options = self._options
        try:
            opened.append(
                LogDirectory.open(
                    path, options.broker_id, self.cluster_id, LocalDisk(), clock, boot_id=self._boot_id
                )
            )
        except DirectoryUnusable as error:
            logger.error("%s; going on without it", error)
            unusable[path] = str(error)
            self._is_one_suspect |= error.is_suspect

    def register(self, broker: Broker) -> BrokerEpoch:
        """Become visible under a fresh broker epoch; refused while a foreign holder of this id lives.

        After LogDirectoryError the registration is there until ``close``: serve nobody meanwhile.
        """
        assert self._log_dirs is not None, "open the directories first"
        epoch = register_broker(
            self._zookeeper,
            broker,
            self._identities,
            boot_id=self._boot_id,
            host_id=self._host_id,
            offline_directories=len(self._log_dirs.offline),
        )
        self._log_dirs.forget_suspects()
        return epoch

    def report_suspect(self, broker_epoch: BrokerEpoch, directory_uuid: str) -> None:
        """Record that this directory's fsync failed, and go on with the others. May be repeated."""
        report_suspect(self._zookeeper, self._options.broker_id, directory_uuid, broker_epoch)

    def withdraw_suspect(self, broker_epoch: BrokerEpoch, directory_uuid: str) -> None:
        """End the registration, and record that this directory's fsync failed. May be repeated."""
        withdraw_suspect(self._zookeeper, self._options.broker_id, broker_epoch, directory_uuid)

    def close(self) -> None:
        """End the session: the registration goes with it."""
        self._zookeeper.close()
