"""Requests that wait in several partitions and get one answer. For one partition there is ``lone_waits``.

A request has one share per partition. A share does its work under the partition's lock, and is then decided,
or waits for replicas under a token. The request is answered exactly once: when its last share is decided, or
when its time is up. Shares that are late by then say REQUEST_TIMED_OUT; their work stays done.

    client --> run(shares) --> begin(token) in each partition ...... complete(token, outcome) from its outbox
                                                                 \\..... the deadline
               answer(results by partition) <---------------------/

A completion may arrive before ``begin`` has returned, because any thread may let out a partition's outbox.
Such an outcome is kept until the share's own result is known.

If ``begin`` raises, the exception goes to the caller, who answers for the whole request: all tokens are
forgotten here and in the partitions, and ``answer`` is not called.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from sparklog.broker.ports import Ports
from sparklog.broker.waiting.lone_waits import LoneWaits, WaitResult
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard

ResultT = TypeVar("ResultT", bound=WaitResult)
OutcomeT = TypeVar("OutcomeT")


class Share(NamedTuple, Generic[ResultT]):
    """One partition's part of a request."""

    topic_partition: TopicPartition
    begin: Callable[[int], ResultT]
    """Does the work; a result that waits does so under the token that ``begin`` is given."""
    forget: Callable[[int], None]
    """Makes the partition forget a token whose wait has ended."""


@dataclass(slots=True)
class _OpenShare(Generic[ResultT, OutcomeT]):
    """A share that is not decided yet."""

    topic_partition: TopicPartition
    forget: Callable[[int], None]
    result: ResultT | None = None
    """None until ``begin`` has returned."""
    outcome: OutcomeT | None = None
    """A completion that arrived before ``begin`` returned."""


@dataclass(slots=True)
class JointWait(Generic[ResultT, OutcomeT]):
    """One request. ``guard`` protects all of it."""

    guard: Guard
    answer: Callable[[dict[TopicPartition, ResultT]], None]
    results: dict[TopicPartition, ResultT]
    """The refusals, and the decided shares. A share that has begun is here or in ``open_shares``."""
    open_shares: dict[int, _OpenShare[ResultT, OutcomeT]] = field(default_factory=dict)
    """By token."""
    deadline: Cancellable | None = None
    """Set if a share is open when all have begun."""
    all_begun: bool = False
    """False for a request that can still get shares, and must not be answered yet."""
    is_answered: bool = False
    """Set once, by the thread that answers, or gives up. Then no share is open."""


class JointWaits(Generic[ResultT, OutcomeT]):
    """The waiting requests of one kind, by the tokens that their partitions know."""

    def __init__(
        self, ports: Ports, decided: Callable[[ResultT, OutcomeT], ResultT], *, timed_out: OutcomeT
    ) -> None:
        """``decided`` gives the result of a share that waited, once it has its outcome. ``timed_out`` is the
        outcome of a share that is still undecided at its request's deadline.
        """
        self._decided = decided
        self._ports = ports
        self._timed_out = timed_out
        self._tokens = itertools.count(1)
        self._waits: dict[int, JointWait[ResultT, OutcomeT]] = {}
        self.alone: Final = LoneWaits(ports, decided, timed_out=timed_out, tokens=self._tokens)
        """The requests that wait in one partition only."""

    def __len__(self) -> int:
        """The number of waiting shares, lone requests among them."""
        return len(self._waits) + len(self.alone)

    def run(
        self,
        shares: Iterable[Share[ResultT]],
        timeout_ms: int,
        answer: Callable[[dict[TopicPartition, ResultT]], None],
        *,
        refused: dict[TopicPartition, ResultT] | None = None,
    ) -> None:
        """Begin each of ``shares``, in order; ``answer`` gets their results and those of ``refused``.

        No two of them may be about the same partition, because results are by partition (``named_twice``).
        ``answer`` is called on this thread, on the one that completes the last share, or on the timer's.
        """
        wait: JointWait[ResultT, OutcomeT] = JointWait(
            self._ports.new_guard(), answer, {} if refused is None else dict(refused)
        )
        try:
            for share in shares:
                self._begin(wait, share)
        except BaseException:
            self._abandon(wait)
            raise
        with wait.guard:
            wait.all_begun = True
            if wait.open_shares:
                wait.deadline = self._ports.timer.after(timeout_ms, lambda: self._time_out(wait))
        self._answer_if_decided(wait)

    def complete(self, token: int, outcome: OutcomeT) -> None:
        """The share that waits under ``token`` is decided; an unknown token is ignored."""
        wait = self._waits.get(token)
        if wait is None:
            self.alone.complete(token, outcome)
            return
        with wait.guard:
            share = wait.open_shares.get(token)
            if share is None:
                return
            if share.result is None:
                share.outcome = outcome
                return
            self._decide(wait, token, self._decided(share.result, outcome))
        self._answer_if_decided(wait)

    def _begin(self, wait: JointWait[ResultT, OutcomeT], share: Share[ResultT]) -> None:
        token = next(self._tokens)
        # The token is known before the share begins, so that no completion can arrive too early.
        begun = _OpenShare[ResultT, OutcomeT](share.topic_partition, share.forget)
        with wait.guard:
            wait.open_shares[token] = begun
        self._waits[token] = wait
        result = share.begin(token)
        with wait.guard:
            begun.result = result
            if not result.waits:
                self._decide(wait, token, result)
            elif begun.outcome is not None:
                self._decide(wait, token, self._decided(result, begun.outcome))

    def _decide(self, wait: JointWait[ResultT, OutcomeT], token: int, result: ResultT) -> None:
        """Within the guard of ``wait``."""
        share = wait.open_shares.pop(token)
        wait.results[share.topic_partition] = result
        self._waits.pop(token, None)

    def _time_out(self, wait: JointWait[ResultT, OutcomeT]) -> None:
        with wait.guard:
            late = self._take_open(wait)
            for share in late.values():
                # Begun, because the deadline is set after the last share has begun.
                assert share.result is not None
                wait.results[share.topic_partition] = self._decided(share.result, self._timed_out)
        self._answer_if_decided(wait)
        self._forget(late)  # a slow disk may hold the lock of a partition

    def _abandon(self, wait: JointWait[ResultT, OutcomeT]) -> None:
        with wait.guard:
            wait.is_answered = True
            left = self._take_open(wait)
        self._forget(left)

    def _take_open(self, wait: JointWait[ResultT, OutcomeT]) -> dict[int, _OpenShare[ResultT, OutcomeT]]:
        """The open shares of ``wait``, which are open no longer. Within its guard."""
        taken = dict(wait.open_shares)
        wait.open_shares.clear()
        for token in taken:
            self._waits.pop(token, None)
        return taken

    @staticmethod
    def _forget(shares: dict[int, _OpenShare[ResultT, OutcomeT]]) -> None:
        for token, share in shares.items():
            share.forget(token)

    def _answer_if_decided(self, wait: JointWait[ResultT, OutcomeT]) -> None:
        with wait.guard:
            if wait.is_answered or wait.open_shares or not wait.all_begun:
                return
            wait.is_answered = True
        if wait.deadline is not None:
            wait.deadline.cancel()
        wait.answer(wait.results)


def named_twice(topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions that a request names more than once, which it must not."""
    return [named for named, count in Counter(topic_partitions).items() if count > 1]
