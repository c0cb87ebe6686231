"""The options of a broker's start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ZooKeeper


class ZooKeeperSession(ZooKeeper, Protocol):
    """A client of ZooKeeper whose session begins with ``start``."""

    def start(self, timeout_ms: int) -> object:
        """Connect; ConnectionLost with the address if ZooKeeper does not answer in time."""

    @property
    def session_timeout_ms(self) -> int:
        """As the server has granted it; 0 before the first session."""


NewZooKeeper = Callable[[str, int], ZooKeeperSession]
"""Makes a client from a connect string and a session timeout in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """``zookeeper`` is a connect string, with a chroot if it has one."""

    broker_id: BrokerId
    host: str
    """The broker's own address: listeners without a host listen there."""
    advertised_host: str | None = None
    """Where clients and other brokers reach listeners without a host; these then listen on all addresses.
    None for ``host``."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """By listener, the ports that ``listeners`` leaves to the start; 0 or no entry is any free one."""
    log_dirs: tuple[str, ...]
    zookeeper: str
    config: BrokerConfig
    rack: str | None = None
    on_recovery: Callable[[str], None] | None = None
    """Hears now and then how far the recovery of the logs is after an unclean stop; the log does anyway."""
    new_zookeeper: NewZooKeeper | None = None
    """Who makes the client for ``zookeeper``: kazoo, unless the cluster's ZooKeeper is in this process."""
