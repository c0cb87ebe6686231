"""What a broker must be told before it starts."""

from dataclasses import dataclass

from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId


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
