"""Which listeners speak TLS, and how brokers and the controller dial each other.

The brokers' listener decides for all that a cluster says to itself: requests between brokers and with the
controller, the start's questions, and the control channel of broker processes. Where it speaks TLS, its
settings serve both sides, as in Kafka: its certificate is shown when this process dials, too, and its trust
store says which certificates this process accepts.

The code of TLS is imported where a listener speaks it, and nowhere else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.errors import ConfigError, UnsafeStartError
from sparklog.model.metric import Metric
from sparklog.model.ports import Timer
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock, WallMs

if TYPE_CHECKING:
    from sparklog.network.dialing.connector import Connector
    from sparklog.network.login.client_login import ClientLogin
    from sparklog.network.login.listener_login import ClusterLogins
    from sparklog.network.tls.from_settings import DialledTls, ListenerTls

ReadMetrics = Callable[[], list[Metric]]


@contextmanager
def refused_for_safety() -> Iterator[None]:
    """What is wrong with certificates and secrets is raised as UnsafeStartError."""
    try:
        yield
    except ConfigError as error:
        raise UnsafeStartError(str(error)) from error


def tls_of_listener(config: BrokerConfig, listener: str) -> "ListenerTls | None":
    """The accepting side of a listener, None if it is in the clear; ConfigError if its stores do not work."""
    if listener not in config.listeners.with_tls():
        return None
    from sparklog.network.tls.from_settings import server_side

    return server_side(config.tls(listener))


def tls_of_metrics(config: BrokerConfig) -> "ListenerTls | None":
    """The accepting side of what serves metrics, None if it is in the clear; raises as above."""
    settings = None if config.get_int("metrics.port") < 0 else config.tls_of_metrics()
    if settings is None:
        return None
    from sparklog.network.tls.from_settings import server_side

    return server_side(settings)


def tls_of_listeners(config: BrokerConfig) -> "dict[str, ListenerTls]":
    """The accepting sides of those listeners that speak TLS; raises as above."""
    sides = ((name, tls_of_listener(config, name)) for name in config.listeners.bound)
    return {name: side for name, side in sides if side is not None}


def inter_broker_server(config: BrokerConfig) -> "ListenerTls | None":
    """The accepting side of what brokers, controller and driver say to each other."""
    return tls_of_listener(config, config.listeners.inter_broker)


def inter_broker_client(config: BrokerConfig) -> "DialledTls | None":
    """The dialling side of the same."""
    return _client_of(config, config.listeners.inter_broker)


def inter_broker_connector(config: BrokerConfig) -> "Connector":
    """What brokers and the controller dial each other with."""
    return connector_to(config, config.listeners.inter_broker)


def connector_to(config: BrokerConfig, listener: str) -> "Connector":
    """What dials a listener of brokers with this configuration by the listener's own settings."""
    # start time: the wire's messages come with it, which a driver imports while Spark starts
    from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector

    tls, login = _client_of(config, listener), _login_of(config, listener)
    return IN_THE_CLEAR if tls is None and login is None else Connector(tls, login)


def _client_of(config: BrokerConfig, listener: str) -> "DialledTls | None":
    if listener not in config.listeners.with_tls():
        return None
    from sparklog.network.tls.from_settings import client_side

    return client_side(config.tls(listener))


def cluster_logins(config: BrokerConfig, listeners: Iterable[str]) -> "ClusterLogins | None":
    """The logins at those of ``listeners`` that have some; None if none has."""
    with_login = [name for name in listeners if name in config.listeners.with_login()]
    if not with_login:
        return None
    from sparklog.network.login.listener_login import ClusterLogins

    return ClusterLogins(config, with_login)


def _login_of(config: BrokerConfig, listener: str) -> "ClientLogin | None":
    if listener not in config.listeners.with_login():
        return None
    from sparklog.network.login.client_login import ClientLogin

    return ClientLogin(config.brokers_login(listener))


def own_principal(config: BrokerConfig) -> str:
    """By which principal brokers and the controller with this configuration know each other."""
    listener = config.listeners.inter_broker
    if listener in config.listeners.with_login():
        from sparklog.credentials.jaas_users import user_and_password

        return f"User:{user_and_password(config.brokers_login(listener).jaas).user}"
    if listener not in config.listeners.with_tls():
        return ANONYMOUS
    from sparklog.network.tls.own_principal import principal_among_brokers

    return principal_among_brokers(config.tls(listener))


def watch_expiry(server: str, sides: "Mapping[str, ListenerTls]", clock: Clock, timer: Timer) -> ReadMetrics:
    """Warn of certificates that soon expire, until the timer is stopped; their metrics, to be called for."""
    if not sides:
        return lambda: []
    from sparklog.network.tls.expiry_watch import ExpiryWatch

    watch = ExpiryWatch(server, sides, clock)
    watch.start(timer)
    return watch.metrics


def check_certificates(
    config: BrokerConfig, hosts: Mapping[str, tuple[str, ...]], now_ms: WallMs
) -> list[str]:
    """Warnings of certificates that soon expire, and of keys in open files. ``hosts``: by listener, those
    that clients and brokers dial. ConfigError with the reasons for which clients would refuse a certificate.
    """
    listeners = [name for name in config.listeners.with_tls() if name in hosts]
    if not listeners:
        return []
    from sparklog.network.tls.certificate_check import check_certificate, expiry_warning

    problems: list[str] = []
    warnings: list[str] = []
    for name in listeners:
        is_for_brokers = name == config.listeners.inter_broker
        found = check_certificate(config.tls(name), hosts[name], now_ms, is_for_brokers=is_for_brokers)
        problems += (f"listener {name}: {problem}" for problem in found.problems)
        for warning in (expiry_warning(found.expires_at_ms, now_ms), found.exposure):
            warnings += [] if warning is None else [f"listener {name}: {warning}"]
    if problems:
        raise ConfigError("; ".join(problems))
    return warnings


def advertised_hosts(config: BrokerConfig, own_host: str) -> dict[str, tuple[str, ...]]:
    """By listener, the host at which a broker with this own host is dialled."""
    listeners = config.listeners
    return {
        name: (listeners.advertised[name].host or own_host,) if name in listeners.advertised else ()
        for name in listeners.bound
    }
