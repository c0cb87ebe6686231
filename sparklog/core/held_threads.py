"""Whether the thread of a request is held up, by a disk or a lock, or only waits for its turn. PURE.

On a busy machine a thread waits for a core, or for the interpreter's lock. It is *starved*. By the clock, and
by its CPU, it looks as one whose disk hangs. What the kernel notes about a thread tells them apart:

| the thread waits for | state | turns |
|---|---|---|
| a core | R | |
| the interpreter's lock | S | more, because it wakes every 5 ms to ask again |
| a disk | D | |
| another lock, a pipe, a file system in user space | S | no more |

A thread that computes is in R too, and uses CPU.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparklog.model.time import MonotonicMs

HELD_MS_MAX: Final = 90
"""With the 10 ms before the first look at a request, no thread is left to it for more than 100 ms."""

COMPUTES_MS: Final = 10
"""A request that takes so much CPU is not short, however busy the machine is."""

LATE_MS: Final = 5
"""A look that comes so late says that the machine is busy. It decides where the kernel says nothing."""

_RUNNABLE: Final = "R"
_SLEEPING: Final = "S"
_NS_PER_MS: Final = 1_000_000


class ThreadState(NamedTuple):
    """What the kernel notes about a thread."""

    letter: str
    """``R``, ``S``, ``D`` and others, as ``ps`` shows them."""
    cpu_ns: int
    turns: int
    """How often it was given a core."""


@dataclass(slots=True)
class HeldThread:
    """A thread that works on one request since ``since_ms``, when the watch saw that request first."""

    since_ms: MonotonicMs
    _first: ThreadState | None = field(init=False, default=None)
    _last: ThreadState | None = field(init=False, default=None)

    def on_look(self, state: ThreadState | None, now_ms: MonotonicMs, *, late_ms: int) -> bool:
        """Whether the request holds the thread up, at another look that finds both as they were.

        ``state``: None if the kernel says nothing. ``late_ms``: how much later the look comes than it should.
        """
        if now_ms - self.since_ms >= HELD_MS_MAX:
            return True
        if state is None:
            return late_ms < LATE_MS
        before, self._last = self._last, state
        if self._first is None:
            self._first = state
        if state.letter not in (_RUNNABLE, _SLEEPING):
            return True
        if state.cpu_ns - self._first.cpu_ns >= COMPUTES_MS * _NS_PER_MS:
            return True
        # Asleep at both looks, and not woken in between.
        return state.letter == _SLEEPING and before == state
