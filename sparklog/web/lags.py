"""How each group got on, looked at every half minute: its lag over time, and when it last moved.

The history begins with the page. A group's committed offsets carry no time, so its progress is what changed
between two looks.
"""

import threading
from collections import deque
from typing import Final

from sparklog.client.group.lag_look import LagLook

LOOKS_KEPT: Final = 720
"""Six hours."""


class LagHistory:
    """Looks of one viewer. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lags: deque[tuple[int, dict[str, int]]] = deque(maxlen=LOOKS_KEPT)
        self._moved: dict[str, tuple[int, int]] = {}
        self.latest: LagLook | None = None

    def add(self, look: LagLook) -> None:
        with self._lock:
            self.latest = look
            self._lags.append((look.time_ms, {name: group.lag for name, group in look.groups.items()}))
            moved = {}
            for name, group in look.groups.items():
                total = sum(one.committed.offset for one in group.partitions)
                before = self._moved.get(name)
                moved[name] = before if before is not None and before[0] == total else (total, look.time_ms)
            self._moved = moved

    def of_group(self, name: str) -> list[tuple[int, int]]:
        """Time and lag of each look that had the group, the oldest first."""
        with self._lock:
            return [(time_ms, lags[name]) for time_ms, lags in self._lags if name in lags]

    def moved_ms(self, name: str) -> int | None:
        """When a look first saw the group where it is."""
        with self._lock:
            found = self._moved.get(name)
        return None if found is None else found[1]
