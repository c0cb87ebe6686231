"""How fast ZooKeeper answers: a request every five seconds, and the slowest answer of the last minute.

The request is ``sync``, which goes through ZooKeeper's leader, as each write of a controller does.
"""

from collections import deque
from contextlib import suppress
from typing import Final

from sparklog.model.loops import Loop, Pause
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper, ZooKeeperError

INTERVAL_MS: Final = 5_000
KEPT: Final = 12
"""Answers of a minute."""


class ZooKeeperProbe:
    """``loop`` asks; any thread reads ``slowest_ms``."""

    def __init__(self, zookeeper: ZooKeeper, clock: Clock) -> None:
        self._zookeeper = zookeeper
        self._clock = clock
        self._answers_ms: deque[int] = deque(maxlen=KEPT)

    @property
    def slowest_ms(self) -> int:
        """0 before the first answer. A request without an answer took as long as it was waited for."""
        return max(tuple(self._answers_ms), default=0)

    def loop(self) -> Loop:
        """Ask for ever."""
        while True:
            begun_ms = self._clock.monotonic_ms()
            with suppress(ZooKeeperError):  # the time that it took says so, and for how long it is away
                self._zookeeper.sync()
            self._answers_ms.append(self._clock.monotonic_ms() - begun_ms)
            yield Pause(INTERVAL_MS)
