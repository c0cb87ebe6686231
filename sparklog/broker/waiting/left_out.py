"""Partitions that a consumer leaves out of its fetches, because it still has records of them.

Java's consumer has one fetch under way to each broker. It asks for the partitions of which it has no records
left, and forgets the others in its session until then. Suppose that it reads two partitions of one leader, of
which A is at its end and B is not:

    answer    1 MB of B
    fetch     A, which has no news: waits ``fetch.max.wait.ms``, half a second
    client    has read all of B after some milliseconds, and cannot ask for more before the answer
    answer    nothing
    fetch     A and B; and so on, with 2 MB/s

So a fetch waits only shortly while partitions are *left out*: they had records in an answer, and no fetch has
named them since. Each such fetch may wait twice as long as the one before, up to what the client asks for. So
a client that reads slowly, or has paused a partition, gets a few empty answers and no stream of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparklog.broker.waiting.asked_partitions import Key

WAIT_FIRST_MS: Final = 5


@dataclass(slots=True)
class LeftOut:
    """Those of one session, whose guard protects them."""

    _answered: set[Key] = field(default_factory=set)
    """Partitions of which the last answer had records."""
    _keys: set[Key] = field(default_factory=set)
    """Partitions that are left out."""
    _wait_ms: int = WAIT_FIRST_MS

    def on_records(self, keys: Iterable[Key]) -> None:
        """The answer has records of these partitions."""
        self._answered = set(keys)

    def on_fetch(self, named: Iterable[Key], asked_ms: int) -> int:
        """How long a fetch may wait that names these partitions, and asks for ``asked_ms``."""
        left = (self._answered | self._keys).difference(named)
        self._answered.clear()
        if left != self._keys:  # the client gets on
            self._keys, self._wait_ms = left, WAIT_FIRST_MS
        if not left:
            return asked_ms
        if self._wait_ms >= asked_ms:
            self._keys.clear()  # the client is in no hurry
            return asked_ms
        wait_ms, self._wait_ms = self._wait_ms, 2 * self._wait_ms
        return wait_ms
