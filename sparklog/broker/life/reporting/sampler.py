"""Takes a sample of a broker's figures every five seconds, on a thread of its own.

A disk that hangs holds up this thread alone: reports go on with the facts of before.
"""

import logging
import threading
import time
from typing import Final

from sparklog.broker.life.reporting.disk_facts import reported_directories
from sparklog.broker.life.reporting.process_facts import process_facts
from sparklog.broker.life.reporting.sampled_figures import (
    INTERVAL_MS,
    UNKNOWN,
    Counted,
    FiguresHour,
    Levels,
    figures_of,
)
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.core.apis.api_table import APIS
from sparklog.model.time import Clock
from sparklog.network.reactor import Reactor
from sparklog.network.request_statistics import DURATIONS_MS, ApiStatistics, RequestStatistics
from sparklog.wire.messages.discovery.broker_report import ReportedDirectory

logger: Final = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 1.0
"""The longest wait for a sample that a disk holds up."""

_KEYS: Final = {api.name: api.key for api in APIS.values()}
_FIGURES: Final = figures_of(DURATIONS_MS)


class Sampler:
    """The figures of one broker, while it serves."""

    def __init__(
        self, parts: ReplicaParts, reactor: Reactor, statistics: RequestStatistics, clock: Clock
    ) -> None:
        self.hour: Final = FiguresHour(tuple(_FIGURES))
        self.directories: list[ReportedDirectory] = reported_directories(parts.log_dirs, parts.free_spaces)
        """As of the last sample."""
        self._parts = parts
        self._reactor = reactor
        self._statistics = statistics
        self._clock = clock
        self._before = self._count()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="figures", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(CLOSE_SECONDS)

    def sample(self) -> None:
        """Take one now."""
        self.directories = reported_directories(self._parts.log_dirs, self._parts.free_spaces)
        now, levels = self._count(), self._levels()
        self.hour.add(self._clock.wall_ms(), [of(self._before, now, levels) for of in _FIGURES.values()])
        self._before = now

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_MS / 1_000):
            try:
                self.sample()
            except Exception:
                # Also after a bug, because a broker without figures looks like one that does nothing.
                logger.exception("a sample of figures failed; the next one is tried in its turn")

    def _count(self) -> Counted:
        by_api, traffic = self._statistics.snapshot(), self._parts.traffic.total()
        return Counted(
            self._clock.monotonic_ms(),
            *traffic,
            requests=sum(one.requests for one in by_api.values()),
            errors=sum(sum(one.errors.values()) for one in by_api.values()),
            cpu_ns=time.process_time_ns(),
            produces=_durations(by_api.get(_KEYS["Produce"])),
            fetches=_durations(by_api.get(_KEYS["Fetch"])),
        )

    def _levels(self) -> Levels:
        partitions, process = self._parts.table.partitions(), process_facts()
        free = [one.free_bytes for one in self.directories if one.free_bytes >= 0]
        return Levels(
            memory_bytes=_known(process.memory_bytes),
            open_files=_known(process.open_files),
            threads=_known(process.threads),
            connections=self._reactor.connections,
            requests_queued=self._reactor.requests_waiting,
            leaders=sum(one.is_leader for one in partitions),
            replicas=len(partitions),
            under_replicated=sum(one.is_under_replicated for one in partitions),
            replica_lag_max=max(
                (lag for one in partitions for lag in one.follower_lags().values()), default=0
            ),
            log_bytes=sum(one.log.size_bytes for one in partitions),
            disk_free_bytes=min(free, default=UNKNOWN),
        )


def _known(fact: int) -> float:
    return UNKNOWN if fact < 0 else fact


def _durations(sums: ApiStatistics | None) -> tuple[int, ...]:
    return (0,) * (len(DURATIONS_MS) + 1) if sums is None else tuple(sums.durations)
