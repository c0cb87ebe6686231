"""Progress reports of the recovery of a log directory, for its operators.

After an unclean stop everything beyond the recovery points is read. The total is computed from the sizes of
the files before the first log is opened.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from sparklog.model.time import Clock
from sparklog.storage.disk import Disk
from sparklog.storage.segments.segment import LOG

REPORT_INTERVAL_MS: Final = 1_000
_GIGABYTE: Final = 1e9

Tell = Callable[[str], None]
"""Receives a progress report as text, at intervals and at the end."""


def bytes_to_check(disk: Disk, directory: str, recovery_point: int) -> int:
    """Total size of the segment that holds the recovery point and all later ones."""
    names = [name for name in disk.list(directory) if name.endswith(LOG) and name[: -len(LOG)].isdigit()]
    bases = sorted(int(name[: -len(LOG)]) for name in names)
    first = max(0, bisect_right(bases, recovery_point) - 1)
    return sum(disk.size(f"{directory}/{base:020d}{LOG}") for base in bases[first:])


class RecoveryProgress:
    """Counts the logs and bytes that the threads of one recovery have checked; any of them calls ``tell``."""

    def __init__(self, place: str, logs: int, total_bytes: int, clock: Clock, tell: Tell) -> None:
        self._place = place
        self._logs = logs
        self._total_bytes = total_bytes
        self._clock = clock
        self._tell = tell
        self._guard = threading.Lock()
        self._logs_done = self._bytes_done = 0
        self._reported_ms = clock.monotonic_ms()

    def text(self) -> str:
        return (
            f"recovering {self._logs_done} of {self._logs} logs, {self._bytes_done / _GIGABYTE:.1f} of "
            f"{self._total_bytes / _GIGABYTE:.1f} GB in {self._place}"
        )

    def on_bytes(self, count: int) -> None:
        """Add ``count`` checked bytes."""
        self._count(0, count)

    def on_log(self) -> None:
        """Add one recovered log."""
        self._count(1, 0)

    def _count(self, logs: int, count: int) -> None:
        with self._guard:
            self._logs_done += logs
            self._bytes_done += count
            now_ms = self._clock.monotonic_ms()
            if now_ms - self._reported_ms < REPORT_INTERVAL_MS and self._logs_done < self._logs:
                return
            self._reported_ms = now_ms
            text = self.text()
        self._tell(text)
