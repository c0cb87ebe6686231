"""When the certificates of a server's listeners expire: figures for metrics, and a warning in the log on each
day of the last thirty.
"""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from sparklog.model.metric import Metric, gauge
from sparklog.model.ports import Timer
from sparklog.model.time import Clock, WallMs
from sparklog.network.tls.certificate_check import expiry_warning

logger: Final = logging.getLogger(__name__)

LOOK_INTERVAL_MS: Final = 24 * 3_600_000


class Expiring(Protocol):
    """The accepting side of a listener."""

    def expires_at_ms(self) -> WallMs | None:
        """The last moment of the certificate that is in use."""
        ...


class ExpiryWatch:
    """Over the accepting sides of a server's listeners, by name. ``server``: ``broker`` or ``controller``."""

    def __init__(self, server: str, sides: Mapping[str, Expiring], clock: Clock) -> None:
        self._server = server
        self._sides = sides
        self._clock = clock

    def start(self, timer: Timer) -> None:
        """Look now and each day, until the timer is stopped."""
        for name, side in self._sides.items():
            expires_at_ms = side.expires_at_ms()
            warning = None if expires_at_ms is None else expiry_warning(expires_at_ms, self._clock.wall_ms())
            if warning is not None:
                logger.warning("listener %s: %s", name, warning)
        timer.after(LOOK_INTERVAL_MS, lambda: self.start(timer))

    def metrics(self) -> list[Metric]:
        return [
            gauge(
                f"sparklog_{self._server}_certificate_expiry_milliseconds",
                "When the certificate of a listener expires, by the wall clock since 1970.",
                expires_at_ms,
                listener=name,
            )
            for name, side in self._sides.items()
            if (expires_at_ms := side.expires_at_ms()) is not None
        ]
