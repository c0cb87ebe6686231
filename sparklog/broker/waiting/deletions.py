"""A request to delete records on its way: log starts are raised here, and followers take that over.

Each partition that waits does so under a token in its own purgatory, until no live replica has any of what
was deleted. The request is answered when its last partition is decided, or when its time is up: what was
deleted here stays deleted all the same, and the followers will come to it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from sparklog.broker.partition.answers import DeletionResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import Ports
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard

Results = dict[TopicPartition, DeletionResult]
Delete = Callable[[int], DeletionResult]
"""Deletes in one partition, waiting under the token that it is given."""


@dataclass(slots=True)
class DeletionWait:
    """One request; answered when ``open_tokens`` is empty and every deletion was tried."""

    guard: Guard
    answer: Callable[[Results], None]
    results: Results
    open_tokens: dict[int, Partition] = field(default_factory=dict)
    deadline: Cancellable | None = None
    tried_all: bool = False
    answered: bool = False


class DeletionPurgatory:
    """Deletions that wait for replicas, by the tokens that their partitions know."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._tokens = itertools.count(1)
        self._waits: dict[int, DeletionWait] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def delete(
        self,
        refused: Results,
        wanted: list[tuple[Partition, Delete]],
        timeout_ms: int,
        answer: Callable[[Results], None],
    ) -> None:
        """Delete in each of ``wanted``; ``answer`` gets their results and those of ``refused``."""
        wait = DeletionWait(self._ports.new_guard(), answer, dict(refused))
        for partition, delete in wanted:
            token = next(self._tokens)
            with wait.guard:
                wait.open_tokens[token] = partition
            self._waits[token] = wait
            result = delete(token)
            if not result.waits:
                self.complete(token, result)
        with wait.guard:
            wait.tried_all = True
            if wait.open_tokens:
                wait.deadline = self._ports.timer.after(timeout_ms, lambda: self._time_out(wait))
        self._answer_if_over(wait)

    def complete(self, token: int, result: DeletionResult) -> None:
        """What became of the deletion that waits under ``token``."""
        wait = self._waits.pop(token, None)
        if wait is None:
            return
        with wait.guard:
            partition = wait.open_tokens.pop(token, None)
            if partition is not None:
                wait.results[partition.topic_partition] = result
        self._answer_if_over(wait)

    def _time_out(self, wait: DeletionWait) -> None:
        with wait.guard:
            late = list(wait.open_tokens.items())
            wait.open_tokens.clear()
            for _, partition in late:
                wait.results[partition.topic_partition] = DeletionResult(ErrorCode.request_timed_out)
        for token, partition in late:
            self._waits.pop(token, None)
            partition.forget_deletion(token)
        self._answer_if_over(wait)

    def _answer_if_over(self, wait: DeletionWait) -> None:
        with wait.guard:
            if wait.answered or wait.open_tokens or not wait.tried_all:
                return
            wait.answered = True
        if wait.deadline is not None:
            wait.deadline.cancel()
        wait.answer(wait.results)
