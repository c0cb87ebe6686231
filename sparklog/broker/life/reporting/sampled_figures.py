"""The figures of a broker, as samples: what each is, and the last hour of them.

A sample is taken every ``INTERVAL_MS``. A figure that counts something (``.._per_s``, ``.._p99_ms``,
``cpu_cores``) is about the time since the sample before. A figure that had no value is NaN: the p99 of no
requests, the memory on a system that does not say it.
"""

import math
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

INTERVAL_MS: Final = 5_000
SAMPLES_KEPT_MAX: Final = 720
"""An hour. A sample takes some 250 bytes, the hour 0.2 MB."""

P99: Final = 0.99
UNKNOWN: Final = math.nan


@dataclass(frozen=True, slots=True)
class Counted:
    """What a broker has counted since its start."""

    time_ms: int
    """By a clock that only goes forward."""
    produced_bytes: int = 0
    produced_records: int = 0
    fetched_bytes: int = 0
    fetched_records: int = 0
    requests: int = 0
    errors: int = 0
    cpu_ns: int = 0
    produces: tuple[int, ...] = ()
    """How many took as long as each bucket of ``network.request_statistics`` says."""
    fetches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Levels:
    """What a broker has now."""

    memory_bytes: float = UNKNOWN
    open_files: float = UNKNOWN
    threads: float = UNKNOWN
    connections: int = 0
    requests_queued: int = 0
    leaders: int = 0
    replicas: int = 0
    under_replicated: int = 0
    replica_lag_max: int = 0
    """Offsets that the follower lacks which lags most, of the partitions led here."""
    log_bytes: int = 0
    disk_free_bytes: float = UNKNOWN
    """On the disk that has the least."""


def _rate(count: str) -> Callable[[Counted, Counted, Levels], float]:
    figure = attrgetter(count)

    def per_second(earlier: Counted, now: Counted, _: Levels) -> float:
        # A topic that was deleted takes its counts along.
        new: int = max(0, figure(now) - figure(earlier))
        return new * 1_000 / max(1, now.time_ms - earlier.time_ms)

    return per_second


def _level(name: str) -> Callable[[Counted, Counted, Levels], float]:
    figure = attrgetter(name)
    return lambda _, __, levels: float(figure(levels))


def _cpu_cores(earlier: Counted, now: Counted, _: Levels) -> float:
    return (now.cpu_ns - earlier.cpu_ns) / 1e6 / max(1, now.time_ms - earlier.time_ms)


def figures_of(bounds_ms: Sequence[int]) -> dict[str, Callable[[Counted, Counted, Levels], float]]:
    """Each figure's name, and how it is made of two counts and the levels. ``bounds_ms``: of the buckets."""

    def p99(which: str) -> Callable[[Counted, Counted, Levels], float]:
        buckets = attrgetter(which)

        def of(earlier: Counted, now: Counted, _: Levels) -> float:
            before = buckets(earlier) or (0,) * len(buckets(now))
            new = [later - first for later, first in zip(buckets(now), before, strict=True)]
            return quantile_ms(bounds_ms, new, P99)

        return of

    counts = ("produced_bytes", "produced_records", "fetched_bytes", "fetched_records", "requests", "errors")
    return {
        **{f"{name}_per_s": _rate(name) for name in counts},
        "produce_p99_ms": p99("produces"),
        "fetch_p99_ms": p99("fetches"),
        "cpu_cores": _cpu_cores,
        **{name: _level(name) for name in Levels.__slots__},
    }


def quantile_ms(bounds_ms: Sequence[int], counts: Sequence[int], quantile: float) -> float:
    """The duration that a share ``quantile`` of the requests did not exceed; NaN without requests.

    ``counts``: how many were above the bound before and not above their own; the last of them, above all.
    Within a bucket durations are taken to be spread evenly, and above the last bound to be at it.
    """
    wanted, below, lower_ms = quantile * sum(counts), 0, 0
    if not wanted:
        return UNKNOWN
    for bound_ms, count in zip(bounds_ms, counts, strict=False):
        if below + count >= wanted:
            return lower_ms + (bound_ms - lower_ms) * (wanted - below) / count
        below, lower_ms = below + count, bound_ms
    return float(lower_ms)


class FiguresHour:
    """The last samples. One thread adds, after another; readers get copies."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names: Final = tuple(names)
        self._samples: deque[tuple[int, array[float]]] = deque(maxlen=SAMPLES_KEPT_MAX)

    def add(self, wall_ms: int, values: Sequence[float]) -> None:
        """Times ascend, also where the wall clock was set back."""
        if self._samples:
            wall_ms = max(wall_ms, self._samples[-1][0] + 1)
        self._samples.append((wall_ms, array("d", values)))

    def after(self, wall_ms: int, at_most: int) -> tuple[list[int], list[list[float]]]:
        """The newest ``at_most`` samples after ``wall_ms``, exclusive: their times, and the values of each
        figure at these.
        """
        samples = list(self._samples)
        first = max(bisect_right(samples, wall_ms, key=lambda one: one[0]), len(samples) - max(0, at_most))
        chosen = samples[first:]
        return (
            [time_ms for time_ms, _ in chosen],
            [[values[place] for _, values in chosen] for place in range(len(self.names))],
        )
