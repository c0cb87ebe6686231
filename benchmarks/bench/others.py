"""How much CPU others use: a figure counts only if the machine was quiet before it.

The load average holds the benchmark's own last part, so it judges nothing. What counts is the machine's busy
time (``/proc/stat``, with what its host took away) less that of the benchmark's own processes, in the ten
seconds before each part. A part waits while others use more than ``CORES_MAX``, ten minutes at most. It is
measured all the same after that, and its rows are *busy*.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.machine import TICKS, children, cpu_of
from bench.scale import say

CORES_MAX: Final = 0.3
LOOK_S: Final = 10.0
WAIT_MAX_S: Final = 600.0

_BUSY: Final = ("user", "nice", "system", "irq", "softirq", "steal")
_COLUMNS: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of the first line of ``/proc/stat``, in ticks. Guests' time, which follows, is in the users' already."""


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU seconds since the machine began, and of each process of the benchmark since that began."""

    at_s: float
    busy_s: float
    own_s: Mapping[int, float]


def reading() -> Reading:
    own = [os.getpid(), *children()]
    return Reading(
        time.monotonic(),
        busy_s_in(Path("/proc/stat").read_text()),
        {pid: cpu_of([pid], with_ended=False) for pid in own},
    )


def busy_s_in(stat: str) -> float:
    """Busy seconds of all cores, in the text of ``/proc/stat``."""
    name, *ticks = stat.partition("\n")[0].split() or [""]
    if name != "cpu" or len(ticks) < len(_COLUMNS):
        raise ValueError(f"/proc/stat begins with {stat[:80]!r}: expected 'cpu' and {', '.join(_COLUMNS)}")
    by_name = dict(zip(_COLUMNS, map(int, ticks), strict=False))
    return sum(by_name[one] for one in _BUSY) / TICKS


def others_cores(before: Reading, after: Reading) -> float:
    """Cores that processes of others used. An own process that has ended in between counts as another's."""
    own_s = sum(max(0.0, spent - before.own_s.get(pid, 0.0)) for pid, spent in after.own_s.items())
    return max(0.0, after.busy_s - before.busy_s - own_s) / (after.at_s - before.at_s)


def is_busy(cores: float) -> bool:
    return cores > CORES_MAX


def wait_until_quiet(
    read: Callable[[], Reading] = reading,
    sleep: Callable[[float], None] = time.sleep,
    tell: Callable[[str], None] = say,
) -> float:
    """Cores that others used in the last look; busy ones only after the longest wait."""
    before = read()
    until_s = before.at_s + WAIT_MAX_S
    while True:
        sleep(LOOK_S)
        after = read()
        cores = others_cores(before, after)
        if not is_busy(cores) or after.at_s >= until_s:
            return cores
        left_s = until_s - after.at_s
        tell(f"others use {cores:.2f} cores, more than {CORES_MAX}: waiting {left_s:.0f} s at most")
        before = after
