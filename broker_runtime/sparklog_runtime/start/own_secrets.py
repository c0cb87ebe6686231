"""Certificates and passwords of a start's own machine, looked at before anything is launched."""

import time
from collections.abc import Callable

from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import WallMs
from sparklog.network.listener_tls import advertised_hosts, check_certificates, cluster_logins, own_principal


def check_own_secrets(
    config: BrokerConfig,
    driver_host: Callable[[], str],
    *,
    has_brokers: bool,
    warn: Callable[[str], None],
) -> None:
    """ConfigError if a password cannot be had here, or others may open its file; if brokers would refuse the
    driver at its address, or clients the brokers on this machine. On other machines each broker looks at its
    own. ``warn`` gets a line for what soon expires, and for a key in a file that others may open.
    """
    listeners = config.listeners
    cluster_logins(config, listeners.bound if has_brokers else [listeners.inter_broker])
    own_principal(config)
    if not listeners.with_tls():
        return
    host, own = driver_host(), listeners.inter_broker
    hosts = advertised_hosts(config, host) if has_brokers else {}
    hosts[own] = tuple(dict.fromkeys((*hosts.get(own, ()), host)))
    for warning in check_certificates(config, hosts, WallMs(time.time_ns() // 1_000_000)):
        warn(f"warning: {warning}")
