"""The host's clocks, as the ``Clock`` port."""

import time

from sparklog.model.time import MonotonicMs, WallMs

_NS_PER_MS = 1_000_000


class SystemClock:
    """Reads time from the kernel: one clock that only goes forward, one that tells the date."""

    __slots__ = ()

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(time.monotonic_ns() // _NS_PER_MS)

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // _NS_PER_MS)
