"""The pause between two brokers of a restart, in which clients connect to the first one again.

Clients try a broker that does not answer after pauses which grow to a second. If the next broker stopped as
soon as every ISR is full, it would hand its partitions to a broker which its clients do not try yet, and a
produce would wait for them: 0.6 to 0.9 s with librdkafka, against 0.1 to 0.2 s after the pause.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.state.operations import Operation

SETTLE_MS: Final = 2_000
"""Twice the longest pause between two attempts of Java's clients by default (reconnect.backoff.max.ms)."""


@dataclass(slots=True)
class Settling:
    now_ms: int = 0
    """When the look began that asks. The other moments are of the same clock."""
    until_ms: int | None = None
    """When the first pause of this look ends."""
    _since_ms: dict[tuple[int, int], int] = field(default_factory=dict)
    """By operation and position: since when all that the next broker waits for is there."""

    def begin_look(self, now_ms: int, running: Collection[int]) -> None:
        """``running``: the ids of the operations under way; what is known of others is forgotten."""
        self.now_ms, self.until_ms = now_ms, None
        self._since_ms = {key: since for key, since in self._since_ms.items() if key[0] in running}

    def start_again(self, operation: Operation) -> None:
        """An ISR is not full: the pause begins when it is."""
        self._since_ms.pop((operation.id, operation.position), None)

    def wait(self, operation: Operation) -> tuple[Wait, ...]:
        """What the operation's next broker waits for; nothing if it is the first, or the pause is over."""
        if not operation.position:
            return ()
        since_ms = self._since_ms.setdefault((operation.id, operation.position), self.now_ms)
        end_ms = since_ms + SETTLE_MS
        if self.now_ms >= end_ms:
            return ()
        self.until_ms = end_ms if self.until_ms is None else min(self.until_ms, end_ms)
        before = operation.brokers[operation.position - 1]
        return (Wait(f"clients to connect to broker {before} again, for {SETTLE_MS // 1000} s"),)
