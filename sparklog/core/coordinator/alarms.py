"""When each key (a group, a transactional id) wants to be woken: the soonest first, at the cost of a heap."""

import heapq
from dataclasses import dataclass, field

from sparklog.model.time import MonotonicMs


@dataclass(slots=True)
class Alarms:
    """At most one alarm counts for each key: the latest that was set. Older ones in the heap are void."""

    _at_ms: dict[str, MonotonicMs] = field(default_factory=dict)
    _heap: list[tuple[MonotonicMs, str]] = field(default_factory=list)

    def set(self, key: str, at_ms: MonotonicMs | None) -> None:
        """Replace the key's alarm; None leaves it without one."""
        if self._at_ms.get(key) == at_ms:
            return
        if at_ms is None:
            self._at_ms.pop(key, None)
        else:
            self._at_ms[key] = at_ms
            heapq.heappush(self._heap, (at_ms, key))

    def next_ms(self) -> MonotonicMs | None:
        while self._heap and self._at_ms.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: MonotonicMs) -> list[str]:
        """The keys whose time has come, without their alarms from now on."""
        due: list[str] = []
        while (next_ms := self.next_ms()) is not None and next_ms <= now_ms:
            _, key = heapq.heappop(self._heap)
            del self._at_ms[key]
            due.append(key)
        return due
