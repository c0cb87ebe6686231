"""Two kinds of time that cannot be mixed up.

Monotonic milliseconds measure lag, timeouts and deadlines, and mean nothing outside this process.
Wall-clock milliseconds since 1970 stamp records and decide retention and expiry; they can jump.
"""

from typing import NewType, Protocol

MonotonicMs = NewType("MonotonicMs", int)
WallMs = NewType("WallMs", int)


class Clock(Protocol):
    """The port through which shells read time; pure layers get the time as an argument."""

    def monotonic_ms(self) -> MonotonicMs: ...

    def wall_ms(self) -> WallMs: ...
