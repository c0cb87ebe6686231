"""How many connections are accepted and how fast, in all, at each listener and from each address."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sparklog.core.client_quotas.connection_rates import UNLIMITED_RATE, ConnectionRates
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.model.time import Clock
from sparklog.network.accepting.refused_connections import RefusedConnections

UNLIMITED: Final = 0x7FFFFFFF

Stage = Literal["TLS", "login"]
"""What a connection that is accepted goes through before it can be used."""

_MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """``rate``: connections a second."""

    connections: int = UNLIMITED
    rate: float = UNLIMITED_RATE


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """``of_address`` holds the addresses whose limit differs from ``per_address``; ``of_listener`` the limits
    of one listener. ``protected``: the listener of brokers, if clients have another: ``total`` and ``rate``
    do not keep its connections waiting.
    """

    total: int = UNLIMITED
    per_address: int = UNLIMITED
    of_address: Mapping[str, int] = field(default_factory=dict)
    rate: float = UNLIMITED_RATE
    of_listener: Mapping[str, ListenerLimits] = field(default_factory=dict)
    protected: str | None = None


class ConnectionCount:
    """Counts the open connections of a server: those above a limit of the server or of a listener wait, those
    above a limit of their address are refused.

    ``limits`` is called for every new connection, so limits can change while the server runs. Open
    connections stay open when a limit is lowered. ``address_rate``: how many connections a second an address
    may open.
    """

    def __init__(
        self,
        limits: Callable[[], ConnectionLimits],
        clock: Clock,
        address_rate: Callable[[str], float] = lambda address: UNLIMITED_RATE,
        windows: Windows | None = None,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._address_rate = address_rate
        self._guard = threading.Lock()  # over the numbers below
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._total = 0
        self.refused = 0
        self._failed: Counter[tuple[str, Stage]] = Counter()
        self._refusals = RefusedConnections()
        self._rates = ConnectionRates(windows or Windows())
        self._is_awaited = False
        """Whether somebody waits for a connection to end."""
        self.on_slot: Callable[[], None] = lambda: None
        """Called when one has ended for which somebody waits."""

    @property
    def total(self) -> int:
        return self._total

    def delay_ms(self, listener: str) -> int:
        """A connection has come to ``listener``: how long it waits because of rates."""
        limits = self._limits()
        of_listener = limits.of_listener.get(listener, ListenerLimits())
        rate = None if listener == limits.protected else limits.rate
        with self._guard:
            return self._rates.on_connection(listener, of_listener.rate, rate, self._clock.monotonic_ms())

    def full(self, listener: str) -> str | None:
        """Which limit keeps a connection at ``listener`` waiting until another one ends; None: no limit."""
        limits = self._limits()
        own_max = limits.of_listener.get(listener, ListenerLimits()).connections
        with self._guard:
            if self._by_listener[listener] >= own_max:
                why = f"all {own_max} of it are in use; raise its max.connections or close idle clients"
            elif listener != limits.protected and self._total >= limits.total:
                why = f"all {limits.total} are in use; raise max.connections or close idle clients"
            else:
                return None
            self._is_awaited = True
            return why

    def enter(self, address: str, listener: str) -> int | None:
        """Count a connection; None if it is welcome. Otherwise the milliseconds after which it is closed,
        because it is above a limit of its address, which the log then names.
        """
        limits, rate = self._limits(), self._address_rate(address)
        address_max = limits.of_address.get(address, limits.per_address)
        with self._guard:
            now_ms = self._clock.monotonic_ms()
            delay_ms = self._rates.on_address(address, rate, now_ms)
            if delay_ms:
                why = f"it opens more than {rate:g} a second (connection_creation_rate: sparklog quotas --ip)"
            elif self._by_address[address] < address_max:
                self._by_address[address] += 1
                self._by_listener[listener] += 1
                self._total += 1
                return None
            else:
                why = f"it has {address_max} open; raise max.connections.per.ip or close idle clients"
            self.refused += 1
            self._refusals.note(address, why, now_ms)
            return delay_ms

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

    def leave(self, address: str, listener: str) -> None:
        """Count no more a connection that had entered."""
        with self._guard:
            self._total -= 1
            self._by_listener[listener] -= 1
            self._by_address[address] -= 1
            if self._by_address[address] == 0:
                del self._by_address[address]
            is_awaited, self._is_awaited = self._is_awaited, False
        if is_awaited:
            self.on_slot()
