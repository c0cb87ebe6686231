"""The limits of connections, as a broker's present settings name them."""

import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.model.config import BrokerConfig
from sparklog.network.connection_limits import ConnectionLimits

logger: Final = logging.getLogger(__name__)

OVERRIDES: Final = "max.connections.per.ip.overrides"


class ConfiguredLimits:
    """Called for every new connection. Host names are looked up once, when their setting has changed."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config
        self._looked_up: tuple[str, ...] = ()
        self._of_address: Mapping[str, int] = {}

    def __call__(self) -> ConnectionLimits:
        config = self._config()
        overrides = config.get_list(OVERRIDES)
        if overrides != self._looked_up:
            self._of_address = limits_by_address(overrides)
            self._looked_up = overrides
        return ConnectionLimits(
            config.get_int("max.connections"), config.get_int("max.connections.per.ip"), self._of_address
        )


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
