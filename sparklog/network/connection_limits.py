"""How many connections are accepted, in all and from each address."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.time import Clock, MonotonicMs

_logger: Final = logging.getLogger(__name__)

UNLIMITED: Final = 0x7FFFFFFF

_REFUSAL_LOG_MS: Final = 10_000
"""A storm of refused connections is logged once in this time."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """``of_address`` holds the addresses whose limit differs from ``per_address``."""

    total: int = UNLIMITED
    per_address: int = UNLIMITED
    of_address: Mapping[str, int] = field(default_factory=dict)


class ConnectionCount:
    """Counts the open connections of a server, and refuses those above the limits.

    ``limits`` is called for every new connection, so limits can change while the server runs. Open
    connections stay open when a limit is lowered.
    """

    def __init__(self, limits: Callable[[], ConnectionLimits], clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._guard = threading.Lock()  # over the numbers below
        self._by_address: Counter[str] = Counter()
        self._total = 0
        self.refused = 0
        self._refusal_logged_ms: MonotonicMs | None = None

    @property
    def total(self) -> int:
        return self._total

    def enter(self, address: str) -> bool:
        """Count a connection from ``address``; False, and a line in the log, if it is above a limit."""
        limits = self._limits()
        address_max = limits.of_address.get(address, limits.per_address)
        with self._guard:
            is_above_total = self._total >= limits.total
            if not is_above_total and self._by_address[address] < address_max:
                self._by_address[address] += 1
                self._total += 1
                return True
            self.refused += 1
        if is_above_total:
            self._log_refusal(address, f"all {limits.total} are in use; raise max.connections")
        else:
            self._log_refusal(address, f"it has {address_max} open; raise max.connections.per.ip")
        return False

    def leave(self, address: str) -> None:
        """Count no more a connection that had entered."""
        with self._guard:
            self._total -= 1
            self._by_address[address] -= 1
            if self._by_address[address] == 0:
                del self._by_address[address]

    def _log_refusal(self, address: str, why: str) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._guard:
            logged_ms = self._refusal_logged_ms
            if logged_ms is not None and now_ms - logged_ms < _REFUSAL_LOG_MS:
                return
            self._refusal_logged_ms = now_ms
        _logger.warning("connection from %s refused: %s or close idle clients", address, why)
