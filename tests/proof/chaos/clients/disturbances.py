"""What happens to clients that others take the place of: members of the group, transactional producers.

A client *stalls*: SIGSTOP, and SIGCONT after a while that may be longer than its session. It *leaves* in good
order and comes back. Or its *twin*, the next life under the same identity, begins while it stalls; then it
wakes up and has to find out that it was replaced. One that has not ended after a while is killed.
"""

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

EVERY_S = (8.0, 25.0)
STALL_S = (1.0, 12.0)
END_S = 15.0
"""For so long a client that was replaced, or told to end, may go on."""

STALL, LEAVE, TWIN = "stall", "leave", "twin"


@dataclass
class _Disturbed:
    process: subprocess.Popen[bytes]
    until: float


class Disturbances:
    """Which clients stall, and which replaced ones still live. Everything happens in the caller's thread."""

    def __init__(self, rng: Random, clock: Callable[[], float] = time.monotonic) -> None:
        self._rng, self._clock = rng, clock
        self._next = clock() + rng.uniform(*EVERY_S)
        self._stalled: list[_Disturbed] = []
        self._ending: list[_Disturbed] = []
        self.count = 0

    def is_due(self) -> bool:
        return self._clock() > self._next

    def begin(self, process: subprocess.Popen[bytes], *, has_twin: bool) -> str:
        """Disturb this one; ``TWIN``: the caller launches its next life beside it."""
        self._next = self._clock() + self._rng.uniform(*EVERY_S)
        self.count += 1
        what = self._rng.choice((STALL, LEAVE, TWIN if has_twin else STALL))
        if what == LEAVE:
            self.leave(process)
            return what
        process.send_signal(signal.SIGSTOP)
        self._stalled.append(_Disturbed(process, self._clock() + self._rng.uniform(*STALL_S)))
        if what == TWIN:
            self._ending.append(_Disturbed(process, self._stalled[-1].until + END_S))
        return what

    def leave(self, process: subprocess.Popen[bytes]) -> None:
        """Have it end in good order, or at last by force; twice is as good as once."""
        if all(one.process is not process for one in self._ending):
            process.send_signal(signal.SIGTERM)
            self._ending.append(_Disturbed(process, self._clock() + END_S))

    def go_on(self, *, is_over: bool = False) -> None:
        """Wake who has stalled for long enough, and kill who should have ended; all if it ``is_over``."""
        now = self._clock()
        for one in [one for one in self._stalled if is_over or now > one.until]:
            self._stalled.remove(one)
            one.process.send_signal(signal.SIGCONT)
        for one in [one for one in self._ending if is_over or now > one.until]:
            self._ending.remove(one)
            one.process.kill()
            one.process.wait()
