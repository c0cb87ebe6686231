"""A rate over the last seconds, in samples, and how long one that exceeded it waits. As Kafka's ``Rate`` over
a ``SampledStat``.

What is used is added to the newest sample; a sample that is ``sample_ms`` old gets nothing more. It counts
until the time of ``samples`` samples has passed since its last event. The rate is the sum over the time since
the oldest sample began, and that time is never less than all samples but one: a burst after silence is spread
over them.

    |  s1  |  s2  |  s3  | ... | s11 .|   rate = sum / (now - begin of s1)
                                     now
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.time import MonotonicMs

DELAY_MAX_MS: Final = 3_600_000
"""The longest delay, an hour. Kafka has no bound: a request of a megabyte under a rate of a byte delays its
client for twelve days there, also when the quota is raised a minute later.
"""

_MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True)
class Windows:
    """Over how long rates are measured: ``quota.window.num`` and ``quota.window.size.seconds``."""

    samples: int = 11
    sample_ms: int = 1_000

    @property
    def measured_ms(self) -> int:
        """After this time without an event nothing is left of a rate."""
        return self.samples * self.sample_ms

    @property
    def full_ms(self) -> int:
        """The shortest time over which a rate is measured."""
        return (self.samples - 1) * self.sample_ms


@dataclass(slots=True)
class _Sample:
    began_ms: int
    last_ms: int
    sum: float = 0.0


@dataclass(slots=True)
class SampledRate:
    """What one entity has used lately."""

    windows: Windows
    idle_from_ms: int = 0
    """From then on, without another event, it is as one that never was."""
    _samples: deque[_Sample] = field(default_factory=deque)

    def record(self, amount: float, now_ms: MonotonicMs) -> None:
        """Add ``amount``; a negative one takes back what was added."""
        self._forget_old(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1].began_ms >= self.windows.sample_ms:
            samples.append(_Sample(now_ms, now_ms))
        samples[-1].sum += amount
        samples[-1].last_ms = now_ms
        self.idle_from_ms = now_ms + self.windows.measured_ms

    def rate(self, now_ms: MonotonicMs) -> float:
        """A second."""
        self._forget_old(now_ms)
        used = sum(sample.sum for sample in self._samples)
        return used * _MS_PER_S / self._window_ms(now_ms)

    def delay_ms(self, bound: float, now_ms: MonotonicMs, delay_max_ms: int = DELAY_MAX_MS) -> int:
        """How long to wait until the rate is ``bound`` again, if nothing is used meanwhile; 0 if it is not
        exceeded.
        """
        excess = self.rate(now_ms) - bound
        if excess <= 0:
            return 0
        if bound <= 0:
            return delay_max_ms
        return min(round(excess / bound * self._window_ms(now_ms)), delay_max_ms)

    def _window_ms(self, now_ms: MonotonicMs) -> int:
        """The time over which the rate is measured now."""
        elapsed_ms = now_ms - self._samples[0].began_ms if self._samples else 0
        missing = self.windows.samples - 1 - elapsed_ms // self.windows.sample_ms
        if missing > 0:
            elapsed_ms += missing * self.windows.sample_ms
        return elapsed_ms or self.windows.sample_ms

    def _forget_old(self, now_ms: MonotonicMs) -> None:
        samples = self._samples
        while samples and now_ms - samples[0].last_ms >= self.windows.measured_ms:
            samples.popleft()
