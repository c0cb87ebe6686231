"""How fast connections may be opened: at a broker, at a listener, and from an address (KIP-402, KIP-612).

A connection that comes too early for its broker or listener is not refused: whoever accepts it waits, one
window of a rate at most. One that its address opens too early is closed after such a wait, and does not
count. The listener of brokers is bound by a rate of its own alone, where clients have another listener.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.client_quotas.sampled_rate import SampledRate, Windows
from sparklog.model.time import MonotonicMs

UNLIMITED_RATE: Final = 0x7FFFFFFF
ADDRESSES_MAX: Final = 10_000
"""Addresses whose rates are remembered; beyond these, idle ones are forgotten first."""

_BROKER: Final = ""


@dataclass(slots=True)
class ConnectionRates:
    """Not safe for threads. Rates are connections a second."""

    windows: Windows = field(default_factory=Windows)
    _by_listener: dict[str, SampledRate] = field(default_factory=dict)
    _by_address: dict[str, SampledRate] = field(default_factory=dict)

    def on_connection(
        self, listener: str, listener_rate: float, broker_rate: float | None, now_ms: MonotonicMs
    ) -> int:
        """Count a connection; returns for how long, in milliseconds, it waits. ``broker_rate`` None: the
        broker's rate is not about this listener.
        """
        delay_ms = 0 if broker_rate is None else self._record(_BROKER, broker_rate, now_ms)
        return max(delay_ms, self._record(listener, listener_rate, now_ms))

    def on_address(self, address: str, rate: float, now_ms: MonotonicMs) -> int:
        """Count a connection from ``address``; if it comes too early, it does not count, and this returns
        after how many milliseconds it is closed.
        """
        if rate >= UNLIMITED_RATE:
            return 0
        if address not in self._by_address and len(self._by_address) >= ADDRESSES_MAX:
            self._forget(now_ms)
        used = self._by_address.setdefault(address, SampledRate(self.windows))
        used.record(1, now_ms)
        delay_ms = used.delay_ms(rate, now_ms, self.windows.sample_ms)
        if delay_ms:
            used.record(-1, now_ms)
        return delay_ms

    def _record(self, name: str, rate: float, now_ms: MonotonicMs) -> int:
        if rate >= UNLIMITED_RATE:
            return 0
        used = self._by_listener.setdefault(name, SampledRate(self.windows))
        used.record(1, now_ms)
        return used.delay_ms(rate, now_ms, self.windows.sample_ms)

    def _forget(self, now_ms: MonotonicMs) -> None:
        """Forget addresses that are idle, or else the one that was so first."""
        idle = [address for address, used in self._by_address.items() if used.idle_from_ms <= now_ms]
        for address in idle or [next(iter(self._by_address))]:
            del self._by_address[address]
