"""Tokens that come at a rate and are spent by changes of the cluster (KIP-599). As Kafka's ``TokenBucket``.

A bucket holds a burst at most, which is the rate times the measured seconds, and is full at first. What is
accepted may cost more than is left: the bucket is in debt then, and nothing is accepted until time has paid
it.
"""

from dataclasses import dataclass

from sparklog.core.client_quotas.sampled_rate import DELAY_MAX_MS, Windows
from sparklog.model.time import MonotonicMs


@dataclass(slots=True)
class TokenBucket:
    """What is left to one entity."""

    windows: Windows
    idle_from_ms: float = 0
    """From then on, without another event, it is full."""
    _tokens: float | None = None
    """As of ``_as_of_ms``. None: the bucket is full, whatever it holds."""
    _as_of_ms: MonotonicMs = MonotonicMs(0)

    def spend(self, amount: float, rate: float, now_ms: MonotonicMs) -> None:
        self._tokens = min(self.left(rate, now_ms) - amount, self._burst(rate))
        self._as_of_ms = now_ms
        missing = self._burst(rate) - self._tokens
        self.idle_from_ms = now_ms + (missing / rate * 1_000 if rate > 0 else DELAY_MAX_MS)

    def left(self, rate: float, now_ms: MonotonicMs) -> float:
        """Tokens; negative in debt. ``rate``: tokens a second."""
        burst = self._burst(rate)
        if self._tokens is None:
            return burst
        return min(burst, self._tokens + rate * (now_ms - self._as_of_ms) / 1_000)

    def delay_ms(self, rate: float, now_ms: MonotonicMs) -> int:
        """How long until the debt is paid; 0 without one. A rate of 0 allows nothing."""
        if rate <= 0:
            return DELAY_MAX_MS
        debt = -self.left(rate, now_ms)
        return min(round(debt / rate * 1_000), DELAY_MAX_MS) if debt > 0 else 0

    def _burst(self, rate: float) -> float:
        return rate * self.windows.measured_ms / 1_000
