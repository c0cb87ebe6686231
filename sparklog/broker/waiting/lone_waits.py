"""Requests that wait in one partition: most produces. They need no more of ``joint_wait`` than its outcome.

A joint wait has a lock, a timer and a table of shares for each request. Here all requests share one lock,
which is held for a few lines, and one timer. It is set for the earliest time-out, and serves many requests:
nearly all are answered long before. Where it ends before the time of those that wait, it is set again.

The rules are those of a joint wait. A request is answered exactly once, by whoever takes it out of the table.
A completion that arrives before ``begin`` has returned is kept. If ``begin`` raises, nothing is answered.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from sparklog.broker.ports import Ports
from sparklog.model.ports import Cancellable


class WaitResult(Protocol):
    """What a request gets of a partition."""

    @property
    def waits(self) -> bool:
        """Whether it is decided later, by a completion."""


ResultT = TypeVar("ResultT", bound=WaitResult)
OutcomeT = TypeVar("OutcomeT")

NO_DEADLINE: Final = 1 << 62
"""The deadline, in milliseconds, of a request that has not begun to wait."""


@dataclass(slots=True, eq=False)
class _LoneWait(Generic[ResultT, OutcomeT]):
    """One request, from before it begins."""

    forget: Callable[[int], None]
    answer: Callable[[ResultT], None]
    result: ResultT | None = None
    """None until ``begin`` has returned."""
    outcome: OutcomeT | None = None
    """A completion that arrived before that."""
    deadline_ms: int = NO_DEADLINE


class LoneWaits(Generic[ResultT, OutcomeT]):
    """The waiting requests of one kind, by the tokens that their partitions know."""

    def __init__(
        self,
        ports: Ports,
        decided: Callable[[ResultT, OutcomeT], ResultT],
        *,
        timed_out: OutcomeT,
        tokens: Iterator[int],
    ) -> None:
        """``decided``, ``timed_out``: as for ``JointWaits``, with which these share their ``tokens``."""
        self._ports = ports
        self._decided = decided
        self._timed_out = timed_out
        self._tokens = tokens
        self._guard = ports.new_guard()
        """Protects all below, and the fields of the waits."""
        self._waits: dict[int, _LoneWait[ResultT, OutcomeT]] = {}
        self._timer: Cancellable | None = None
        """None while none is set."""
        self._timer_ms = 0
        """When ``_timer`` ends."""

    def __len__(self) -> int:
        return len(self._waits)

    def run(
        self,
        begin: Callable[[int], ResultT],
        forget: Callable[[int], None],
        timeout_ms: int,
        answer: Callable[[ResultT], None],
    ) -> None:
        """Begin, and ``answer`` once there is a result: on this thread, on the one that completes the
        request, or on the timer's. ``begin`` and ``forget``: as of a ``Share``.
        """
        token = next(self._tokens)
        wait: _LoneWait[ResultT, OutcomeT] = _LoneWait(forget, answer)
        # The token is known before the request begins, so that no completion can arrive too early.
        with self._guard:
            self._waits[token] = wait
        try:
            result = begin(token)
        except BaseException:
            self._take(token)
            forget(token)
            raise
        decided = self._settle(token, wait, result, timeout_ms)
        if decided is not None:
            answer(decided)

    def complete(self, token: int, outcome: OutcomeT) -> None:
        """The request that waits under ``token`` is decided; an unknown token is ignored."""
        with self._guard:
            wait = self._waits.get(token)
            if wait is None:
                return
            result = wait.result
            if result is None:
                wait.outcome = outcome
                return
            del self._waits[token]
        wait.answer(self._decided(result, outcome))

    def _settle(
        self, token: int, wait: _LoneWait[ResultT, OutcomeT], result: ResultT, timeout_ms: int
    ) -> ResultT | None:
        """What to answer now; None if the request waits."""
        now_ms = self._ports.clock.monotonic_ms() if result.waits else 0
        with self._guard:
            outcome = wait.outcome
            if not result.waits or outcome is not None:
                del self._waits[token]
            else:
                wait.result = result
                wait.deadline_ms = now_ms + timeout_ms
                self._set_timer(now_ms, wait.deadline_ms)
                return None
        return result if outcome is None or not result.waits else self._decided(result, outcome)

    def _take(self, token: int) -> None:
        with self._guard:
            self._waits.pop(token, None)

    # Time-outs

    def _set_timer(self, now_ms: int, deadline_ms: int) -> None:
        """Within the guard: have a timer that ends no later than ``deadline_ms``."""
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._ports.timer.after(deadline_ms - now_ms, self._on_timer)

    def _on_timer(self) -> None:
        now_ms = self._ports.clock.monotonic_ms()
        with self._guard:
            self._timer = None
            late = {token: wait for token, wait in self._waits.items() if wait.deadline_ms <= now_ms}
            for token in late:
                del self._waits[token]
            next_ms = min((wait.deadline_ms for wait in self._waits.values()), default=NO_DEADLINE)
            if next_ms < NO_DEADLINE:
                self._set_timer(now_ms, next_ms)
        for wait in late.values():
            assert wait.result is not None, "a request has a deadline once it has a result"
            wait.answer(self._decided(wait.result, self._timed_out))
        # A slow disk may hold the lock of a partition: all have been answered by then.
        for token, wait in late.items():
            wait.forget(token)
