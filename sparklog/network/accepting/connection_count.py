"""How many connections are accepted, in all and from each address."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sparklog.model.time import Clock
from sparklog.network.accepting.refused_connections import RefusedConnections

UNLIMITED: Final = 0x7FFFFFFF

Stage = Literal["TLS", "login"]
"""What a connection that is accepted goes through before it can be used."""

_MS_PER_S: Final = 1_000


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
        self._failed: Counter[tuple[str, Stage]] = Counter()
        self._refusals = RefusedConnections()

    @property
    def total(self) -> int:
        return self._total

    def enter(self, address: str) -> bool:
        """Count a connection from ``address``; False if it is above a limit, which the log then names."""
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
                why = f"all {limits.total} are in use; raise max.connections or close idle clients"
            else:
                why = f"it has {address_max} open; raise max.connections.per.ip or close idle clients"
            self._refusals.note(address, why, self._clock.monotonic_ms())
        return False

    def note_failure(self, stage: Stage, address: str, listener: str, why: str) -> None:
        """Count that the handshake or login of a connection has failed, which the log then says."""
        with self._guard:
            self._failed[listener, stage] += 1
            line = f"listener {listener}, {stage}: {why}"
            self._refusals.note(address, line, self._clock.monotonic_ms())

    def failed(self) -> Mapping[tuple[str, Stage], int]:
        """How many handshakes and logins have failed, by listener and stage; those without any are not
        there.
        """
        with self._guard:
            return dict(self._failed)

    def report_refusals(self) -> float | None:
        """Log the refusals that are due; returns the seconds until others are, None if none wait."""
        with self._guard:
            wait_ms = self._refusals.report_due(self._clock.monotonic_ms())
        return None if wait_ms is None else wait_ms / _MS_PER_S

    def close(self) -> None:
        """Log the refusals that wait; nothing enters any more."""
        with self._guard:
            self._refusals.report_all()

    def leave(self, address: str) -> None:
        """Count no more a connection that had entered."""
        with self._guard:
            self._total -= 1
            self._by_address[address] -= 1
            if self._by_address[address] == 0:
                del self._by_address[address]
