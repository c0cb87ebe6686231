"""What the supervisor sends along with a Spark task so that it can become a broker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sparklog_runtime.settings.hosts_file import NOTHING_SPECIAL, Hosts, own_names, properties_of

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient


class ServedBroker(Protocol):
    """A broker as clients of its first listener see it (``sparklog.model.cluster_facts.Node``)."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def epoch(self) -> int: ...


class RunningBroker(Protocol):
    """The part of ``sparklog.broker.life.server.BrokerServer`` that a broker process drives."""

    @property
    def node(self) -> ServedBroker: ...
    @property
    def addresses(self) -> Mapping[str, str]:
        """``host:port`` of each of its listeners, by name."""
        ...

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each of its listeners, by name."""
        ...

    @property
    def failure(self) -> str | None:
        """Why it stopped by itself."""
        ...

    @property
    def has_lost_session(self) -> bool:
        """Whether that was the end of its ZooKeeper session, after which it may start anew."""
        ...

    @property
    def metrics_port(self) -> int | None:
        """Where it serves metrics, if it does."""
        ...

    def start(self) -> None: ...
    def stop(self, clean: bool = True) -> None: ...
    def wait_stopped(self, timeout_seconds: float | None = None) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """Who a broker process is, once it knows."""

    broker_id: int
    host: str
    ports: Mapping[str, int]
    """By listener, the ports that its start was given."""
    log_dirs: tuple[str, ...]
    rack: str | None = None
    advertised_host: str | None = None
    """Where others reach this host, if not at ``host``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    """One slot's task. Travels to the executor inside the Spark job.

    ``log_dir_patterns`` and ``log_file_pattern`` have ``{id}`` where the broker's id goes. ``host`` None
    stands for the address from which the executor reaches the driver.
    """

    slot: int
    supervisor_host: str
    supervisor_port: int
    token: str
    has_control_tls: bool = False
    """Whether the supervisor's port speaks TLS, as the brokers' own listener does."""
    zookeeper: str
    host: str | None
    log_dir_patterns: tuple[str, ...]
    log_file_pattern: str
    settings: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    """The rack of a host of which ``hosts`` says none."""
    hosts: Hosts = field(default_factory=dict)
    """What is different about the brokers of some hosts."""
    make_broker: "Callable[[BrokerPlan, BrokerIdentity], RunningBroker] | None" = None
    """Builds the broker; None stands for the real one. Tests put a small one in."""

    def identity(self, broker_id: int, ports: Mapping[str, int], local_host: str) -> BrokerIdentity:
        """Who a broker on this host is; ConfigError if ``hosts`` leaves this host out."""
        special = properties_of(self.hosts, own_names(local_host)) if self.hosts else NOTHING_SPECIAL
        return BrokerIdentity(
            broker_id=broker_id,
            rack=special.rack or self.rack,
            host=self.host or local_host,
            advertised_host=special.address,
            ports=ports,
            log_dirs=tuple(pattern.format(id=broker_id) for pattern in self.log_dir_patterns),
        )


def control_tls(plan: BrokerPlan) -> "TlsClient | None":
    """How to dial the supervisor; UnsafeStartError if this host lacks what TLS needs."""
    if not plan.has_control_tls:
        return None
    # Heavy, and the driver has no use for it.
    from sparklog.model.settings.config import BrokerConfig
    from sparklog.network.listener_tls import inter_broker_client, refused_for_safety

    with refused_for_safety():
        return inter_broker_client(BrokerConfig.parse(plan.settings))


def make_real_broker(
    plan: BrokerPlan, identity: BrokerIdentity, on_recovery: Callable[[str], None]
) -> RunningBroker:
    """The broker of the sparklog package; imported here, as it is heavy and the driver has no use for it.

    ``on_recovery`` gets the progress of log recovery, in words.
    """
    from sparklog.broker.life.server import BrokerOptions, BrokerServer
    from sparklog.model.ids import BrokerId
    from sparklog.model.settings.config import BrokerConfig

    options = BrokerOptions(
        broker_id=BrokerId(identity.broker_id),
        host=identity.host,
        advertised_host=identity.advertised_host,
        ports=identity.ports,
        log_dirs=identity.log_dirs,
        zookeeper=plan.zookeeper,
        config=BrokerConfig.parse(plan.settings),
        rack=identity.rack,
        on_recovery=on_recovery,
    )
    return BrokerServer(options)
