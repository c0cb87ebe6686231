"""A limit on the bytes a second that catching up may take (KIP-73): an allowance that grows with time.

The allowance grows by ``rate`` a second, up to a second's worth, and shrinks by what is sent or fetched. What
is larger than what is left may go all the same as long as anything is left, or a large batch would never go:
the allowance is negative then, and nothing goes until time has paid the debt. So over any while the bytes
are at most ``rate`` times the seconds, and a second's worth and one answer more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sparklog.model.ids import BrokerId
from sparklog.model.time import MonotonicMs

UNLIMITED: Final = 2**63 - 1
"""The rate that stands for none, which is also the settings' default."""

_MS_PER_S: Final = 1_000


@dataclass(slots=True)
class Throttle:
    """The allowance of one broker, as its leaders or as its followers."""

    rate: int = UNLIMITED
    _left_milli: int = 0
    _as_of_ms: MonotonicMs = MonotonicMs(0)

    @property
    def is_limited(self) -> bool:
        return self.rate < UNLIMITED

    def set_rate(self, rate: int, now_ms: MonotonicMs) -> None:
        """Go on at another rate; a debt is paid at that rate, and what was saved is at most a second's."""
        if rate == self.rate:
            return
        was_limited = self.is_limited
        self._settle(now_ms)
        self.rate = rate
        most = rate * _MS_PER_S
        self._left_milli = min(self._left_milli, most) if was_limited else most

    def left(self, now_ms: MonotonicMs) -> int:
        """Bytes that may go now; with 0 or less, none may."""
        self._settle(now_ms)
        return self._left_milli // _MS_PER_S

    def spend(self, size_bytes: int, now_ms: MonotonicMs) -> None:
        self._settle(now_ms)
        self._left_milli -= size_bytes * _MS_PER_S

    def _settle(self, now_ms: MonotonicMs) -> None:
        grown = self._left_milli + self.rate * (now_ms - self._as_of_ms)
        self._left_milli = min(grown, self.rate * _MS_PER_S)
        self._as_of_ms = now_ms


@dataclass(frozen=True, slots=True)
class ThrottledPartitions:
    """The partitions of one topic whose replica on this broker is throttled."""

    numbers: frozenset[int] = frozenset()
    are_all: bool = False

    @classmethod
    def of(cls, setting: Iterable[str], broker: BrokerId) -> "ThrottledPartitions":
        """From the setting's pairs of partition:broker, or ``*``; they were checked before."""
        items = tuple(setting)
        pairs = [item.split(":") for item in items if item != "*"]
        numbers = frozenset(int(partition) for partition, owner in pairs if int(owner) == broker)
        return cls(numbers, "*" in items)

    def __bool__(self) -> bool:
        return self.are_all or bool(self.numbers)

    def __contains__(self, partition: int) -> bool:
        return self.are_all or partition in self.numbers
