"""How far the recovery of a log directory is, for the people who wait for it.

After an unclean stop all that lies past the recovery points is read. How much that is, the sizes of the files
tell before the first of them is opened.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from sparklog.model.time import Clock
from sparklog.storage.disk import Disk
from sparklog.storage.segment import LOG

TELL_INTERVAL_MS: Final = 1_000
_GIGABYTE: Final = 1e9

Tell = Callable[[str], None]
"""Is told, now and then and at the end, in words."""


def bytes_to_check(disk: Disk, directory: str, recovery_point: int) -> int:
    """Bytes of the segments from the one on that holds the recovery point."""
    names = [name for name in disk.list(directory) if name.endswith(LOG) and name[: -len(LOG)].isdigit()]
    bases = sorted(int(name[: -len(LOG)]) for name in names)
    first = max(0, bisect_right(bases, recovery_point) - 1)
    return sum(disk.size(f"{directory}/{base:020d}{LOG}") for base in bases[first:])


class RecoveryProgress:
    """Counts what the threads of one recovery have done. ``tell`` is called by whichever comes next."""

    def __init__(self, place: str, logs: int, total_bytes: int, clock: Clock, tell: Tell) -> None:
        self._place = place
        self._logs = logs
        self._total_bytes = total_bytes
        self._clock = clock
        self._tell = tell
        self._guard = threading.Lock()
        self._logs_done = self._bytes_done = 0
        self._told_ms = clock.monotonic_ms()

    def text(self) -> str:
        return (
            f"recovering {self._logs_done} of {self._logs} logs, {self._bytes_done / _GIGABYTE:.1f} of "
            f"{self._total_bytes / _GIGABYTE:.1f} GB in {self._place}"
        )

    def on_bytes(self, count: int) -> None:
        """So many bytes were checked."""
        self._count(0, count)

    def on_log(self) -> None:
        """A log is open."""
        self._count(1, 0)

    def _count(self, logs: int, count: int) -> None:
        with self._guard:
            self._logs_done += logs
            self._bytes_done += count
            now_ms = self._clock.monotonic_ms()
            if now_ms - self._told_ms < TELL_INTERVAL_MS and self._logs_done < self._logs:
                return
            self._told_ms = now_ms
            text = self.text()
        self._tell(text)
