"""The limits of connections, as a broker's present settings name them.

A host in ``max.connections.per.ip.overrides`` may be a name, and its lookup may take many seconds. It is
looked up when the broker starts, and on a thread of an executor whenever the setting changes, so that no
thread that accepts connections or answers requests waits for it. Until the lookup ends, the earlier limits
hold.
"""

import logging
import socket
from collections.abc import Mapping
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.model.ports import Executor
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.accepting.connection_count import UNLIMITED, ConnectionLimits, ListenerLimits

logger: Final = logging.getLogger(__name__)

OVERRIDES: Final = "max.connections.per.ip.overrides"
CREATION_RATE: Final = "max.connection.creation.rate"


class ConfiguredLimits:
    """Called for every new connection, on the thread that accepts it."""

    def __init__(self, settings: CurrentSettings, executor: Executor) -> None:
        """Looks up the hosts of the present settings, and waits for that."""
        self._settings = settings
        self._executor = executor
        self._overrides = settings.now.get_list(OVERRIDES)
        self._of_address: Mapping[str, int] = limits_by_address(self._overrides)
        listeners = settings.at_start.listeners
        self._protected = listeners.inter_broker if len(listeners.bound) > 1 else None
        self._of_listener = limits_by_listener(settings.now)
        settings.on_change(self._on_change)

    def __call__(self) -> ConnectionLimits:
        config = self._settings.now
        return ConnectionLimits(
            config.get_int("max.connections"),
            config.get_int("max.connections.per.ip"),
            self._of_address,
            config.get_int(CREATION_RATE),
            self._of_listener,
            self._protected,
        )

    def _on_change(self, config: BrokerConfig) -> None:
        self._of_listener = limits_by_listener(config)
        overrides = config.get_list(OVERRIDES)
        if overrides != self._overrides:
            self._overrides = overrides
            self._executor.submit(lambda: self._look_up(overrides))

    def _look_up(self, overrides: tuple[str, ...]) -> None:
        of_address = limits_by_address(overrides)
        if self._overrides is overrides:  # no later change has overtaken it
            self._of_address = of_address


def limits_by_listener(config: BrokerConfig) -> dict[str, ListenerLimits]:
    """The limits of those listeners that have some of their own."""
    found = {}
    for listener in config.listeners.bound:
        limits = (config.limit_of(listener, name) for name in ("max.connections", CREATION_RATE))
        connections, rate = (UNLIMITED if limit is None else limit for limit in limits)
        if (connections, rate) != (UNLIMITED, UNLIMITED):
            found[listener] = ListenerLimits(connections, rate)
    return found


def limits_by_address(overrides: tuple[str, ...]) -> dict[str, int]:
    """The limit of each address of the hosts in ``overrides``, a tuple of ``host:limit``.

    A host that has no address is named in the log and left out.
    """
    limits: dict[str, int] = {}
    for override in overrides:
        host, _, limit = override.rpartition(":")
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            logger.error("%s: %s has no address, so its limit has no effect: %s", OVERRIDES, host, error)
            continue
        limits |= {str(address[0]): int(limit) for *_, address in found}
    return limits
