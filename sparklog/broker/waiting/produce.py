"""A produce request on its way: appended here, waiting there, answered once.

A request holds batches for several partitions. Each is appended under its partition's lock; with acks=all
each then waits in its partition's purgatory under a token. The request is answered when its last partition is
decided, or when its time is up: what was appended stays in the log all the same.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from sparklog.broker.partition.answers import AppendResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import Ports
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard

Answer = Callable[[dict[TopicPartition, AppendResult]], None]


@dataclass(slots=True)
class ProduceWait:
    """One request. ``open_tokens`` holds a place for the request itself until all appends were tried."""

    guard: Guard
    answer: Answer
    results: dict[TopicPartition, AppendResult] = field(default_factory=dict)
    open_tokens: dict[int, Partition | None] = field(default_factory=dict)
    deadline: Cancellable | None = None
    answered: bool = False


class ProducePurgatory:
    """Produce requests that wait for replication, by the tokens that their partitions know."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._tokens = itertools.count(1)
        self._waits: dict[int, tuple[ProduceWait, TopicPartition]] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def begin(self, answer: Answer) -> tuple[ProduceWait, int]:
        """A new request, and the token that keeps it open until ``finish``."""
        wait = ProduceWait(self._ports.new_guard(), answer)
        token = next(self._tokens)
        wait.open_tokens[token] = None
        return wait, token

    def expect(self, wait: ProduceWait, partition: Partition) -> int:
        """A token for ``partition``, known before the append so that no completion can come too early."""
        token = next(self._tokens)
        with wait.guard:
            wait.open_tokens[token] = partition
        self._waits[token] = (wait, partition.topic_partition)
        return token

    def on_appended(
        self, wait: ProduceWait, token: int, topic_partition: TopicPartition, result: AppendResult
    ) -> None:
        """The append was tried; unless it waits, this partition is decided."""
        with wait.guard:
            # A completion may have come in already, with an error that counts.
            if topic_partition not in wait.results or wait.results[topic_partition].error is ErrorCode.none:
                wait.results[topic_partition] = result
        if not result.waits:
            self._close(wait, token)

    def finish(self, wait: ProduceWait, token: int, timeout_ms: int) -> None:
        """All appends were tried: answer, or wait at most ``timeout_ms``."""
        with wait.guard:
            waits = len(wait.open_tokens) > 1
            if waits:
                wait.deadline = self._ports.timer.after(timeout_ms, lambda: self._time_out(wait))
        self._close(wait, token)

    def complete(self, token: int, error: ErrorCode) -> None:
        """A partition's machine decided about ``token``."""
        known = self._waits.get(token)
        if known is None:
            return
        wait, topic_partition = known
        with wait.guard:
            so_far = wait.results.get(topic_partition)
            base_offset = so_far.base_offset if so_far else -1
            start = so_far.log_start_offset if so_far else -1
            if error is not ErrorCode.none or so_far is None:
                wait.results[topic_partition] = AppendResult(
                    error, base_offset if error is ErrorCode.none else -1, start
                )
        self._close(wait, token)

    def _close(self, wait: ProduceWait, token: int) -> None:
        self._waits.pop(token, None)
        with wait.guard:
            wait.open_tokens.pop(token, None)
            if wait.open_tokens or wait.answered:
                return
            wait.answered = True
        self._send(wait)

    def _time_out(self, wait: ProduceWait) -> None:
        with wait.guard:
            if wait.answered:
                return
            wait.answered = True
            late = [(token, part) for token, part in wait.open_tokens.items() if part is not None]
            for _, partition in late:
                wait.results[partition.topic_partition] = AppendResult(ErrorCode.request_timed_out)
            wait.open_tokens.clear()
        for token, partition in late:
            self._waits.pop(token, None)
            partition.forget_produce(token)
        self._send(wait)

    def _send(self, wait: ProduceWait) -> None:
        if wait.deadline is not None:
            wait.deadline.cancel()
        wait.answer(wait.results)
