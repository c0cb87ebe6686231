"""What a broker must be told before it starts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import ZooKeeper


class ZooKeeperSession(ZooKeeper, Protocol):
    """A client of ZooKeeper whose session begins with ``start``."""

    def start(self, timeout_ms: int) -> object:
        """Connect; ConnectionLost with the address if nobody answers in time."""


NewZooKeeper = Callable[[str, int], ZooKeeperSession]
"""Makes a client from a connect string and a session timeout in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """``port`` 0 takes a free one. ``zookeeper`` is a connect string, with a chroot if it has one."""

    broker_id: BrokerId
    host: str
    port: int
    log_dirs: tuple[str, ...]
    zookeeper: str
    config: BrokerConfig
    rack: str | None = None
    on_recovery: Callable[[str], None] | None = None
    """Hears now and then how far the recovery of the logs is after an unclean stop; the log does anyway."""
    new_zookeeper: NewZooKeeper | None = None
    """Who makes the client for ``zookeeper``: kazoo, unless the cluster's ZooKeeper is in this process."""
