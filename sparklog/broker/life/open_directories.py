"""The start of a broker's disks: lock the log directories, remove their clean markers, open and recover the
logs.

A directory whose disk fails is left out, and the broker serves with the others. A directory of another broker
or cluster fails the start. A suspect directory is recorded in ZooKeeper before any directory is unlocked,
because the next start would otherwise trust it.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import BrokerId
from sparklog.model.ports import Executor, Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.storage.disk import Disk
from sparklog.storage.log_directory import DirectoryUnusable, LogDirectory
from sparklog.zookeeper.broker_registration import read_suspect, report_missing, report_suspect

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Host:
    """The facilities of the host that a broker's disks need."""

    disk: Disk
    clock: Clock
    executor: Executor
    """Recovers several logs at a time."""
    boot_id: str
    """Changes with every boot of the operating system, which loses unflushed writes."""
    new_guard: Callable[[], Guard]
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4


def open_directories(
    paths: Sequence[str],
    broker_id: BrokerId,
    cluster_id: str,
    host: Host,
    zookeeper: ZooKeeper,
    config: BrokerConfig,
    tell: Callable[[str], None] = logger.info,
) -> LogDirs:
    """Lock and open the log directories at ``paths``, and recover their logs. ``tell`` is given the progress.

    Raises LogDirectoryError, with the remedy, if no directory can be used, or if one belongs to another
    broker or cluster; ZooKeeperError if ZooKeeper does not answer. No directory stays locked then.
    """
    if not paths:
        raise LogDirectoryError(f"broker {broker_id} has no log directory: set log.dirs")
    opened: list[LogDirectory] = []
    try:
        unusable = _open_each(paths, broker_id, cluster_id, host, opened)
        if any(error.is_suspect for error in unusable.values()):
            report_missing(zookeeper, broker_id, {str(directory.uuid) for directory in opened})
        if not opened:
            raise LogDirectoryError("; ".join(map(str, unusable.values())))
        reasons = {path: str(error) for path, error in unusable.items()}
        log_dirs = LogDirs(opened, config, reasons, new_guard=host.new_guard)
        suspect = read_suspect(zookeeper, broker_id) | log_dirs.suspects()
        try:
            log_dirs.load(host.executor, suspect, tell)
        finally:
            for directory_uuid in log_dirs.lost_at_start:
                report_suspect(zookeeper, broker_id, directory_uuid)
    except BaseException:
        for directory in opened:
            directory.close()
        raise
    return log_dirs


def _open_each(
    paths: Sequence[str], broker_id: BrokerId, cluster_id: str, host: Host, opened: list[LogDirectory]
) -> dict[str, DirectoryUnusable]:
    """Append usable directories to ``opened``, even if a later one raises; returns the unusable ones."""
    unusable: dict[str, DirectoryUnusable] = {}
    for path in paths:
        try:
            opened.append(
                LogDirectory.open(
                    path,
                    broker_id,
                    cluster_id,
                    host.disk,
                    host.clock,
                    boot_id=host.boot_id,
                    new_uuid=host.new_uuid,
                )
            )
        except DirectoryUnusable as error:
            logger.error("%s; going on without it", error)
            unusable[path] = error
    return unusable
