"""Requests that wait for a remote store: parked without a thread, answered once, by the store or their time.

The store's answers come on its readers' threads. A request that asks about several partitions is answered
when the last of its answers has come. What comes after the time is over is not lost: the reader keeps it, and
the client's next request finds it there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from sparklog.broker.partition.answers import (
    HistoryFound,
    HistoryRange,
    HistoryRead,
    HistoryTime,
    ReadResult,
)
from sparklog.broker.ports import Ports
from sparklog.model.ports import Cancellable, Guard

Question = TypeVar("Question")
Answer = TypeVar("Answer")

Arrived = Mapping[int, HistoryRead]
"""By place among the partitions of a fetch."""


class History(Protocol):
    """Reads of the remote store. No call waits: an answer comes now if it is in memory, else later and on
    another thread; never, if the store has too much to do.
    """

    def read(self, wanted: HistoryRange, answer: Callable[[HistoryRead], None]) -> None:
        """The batches from the fetch offset on."""

    def find(self, wanted: HistoryTime, answer: Callable[[HistoryFound], None]) -> None:
        """The first record of a time."""


@dataclass(slots=True)
class _Wait(Generic[Answer]):
    guard: Guard
    missing: set[int]
    finish: Callable[[Mapping[int, Answer]], None]
    arrived: dict[int, Answer] = field(default_factory=dict)
    timer: Cancellable | None = None
    is_over: bool = False

    def on_answer(self, index: int, answer: Answer) -> None:
        with self.guard:
            if self.is_over:
                return
            self.arrived[index] = answer
            self.missing.discard(index)
            is_last = not self.missing
        if is_last:
            self.end()

    def end(self) -> None:
        """Finish with what has arrived, unless that is done."""
        with self.guard:
            if self.is_over:
                return
            self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
        self.finish(self.arrived)


class HistoryFetches:
    """The requests that wait for a remote store."""

    def __init__(self, ports: Ports, history: History, wait_max_ms: int) -> None:
        """``wait_max_ms``: ``remote.fetch.max.wait.ms``."""
        self._ports = ports
        self._history = history
        self._wait_max_ms = wait_max_ms

    def ask(self, ranges: Mapping[int, HistoryRange], finish: Callable[[Arrived], None]) -> None:
        """Ask for all ``ranges``, and call ``finish`` once: with everything, or when the time is over."""
        self._ask(ranges, self._history.read, finish, self._wait_max_ms)

    def find(
        self,
        times: Mapping[int, HistoryTime],
        wait_max_ms: int,
        finish: Callable[[Mapping[int, HistoryFound]], None],
    ) -> None:
        """Search for all ``times``, and call ``finish`` once: with everything, or after ``wait_max_ms``."""
        self._ask(times, self._history.find, finish, wait_max_ms)

    def _ask(
        self,
        questions: Mapping[int, Question],
        ask: Callable[[Question, Callable[[Answer], None]], None],
        finish: Callable[[Mapping[int, Answer]], None],
        wait_max_ms: int,
    ) -> None:
        wait = _Wait(self._ports.new_guard(), set(questions), finish)
        wait.timer = self._ports.timer.after(wait_max_ms, wait.end)
        for index, question in questions.items():
            ask(question, partial(wait.on_answer, index))


def ranges_of(results: Sequence[ReadResult], bytes_max: int) -> dict[int, HistoryRange]:
    """What to ask the store for, within what the partitions on disk leave of ``bytes_max``.

    The first partition of a fetch that has anything may exceed the limit by one batch, as on disk.
    """
    left = bytes_max - sum(result.size_bytes for result in results)
    ranges: dict[int, HistoryRange] = {}
    nothing_yet = True
    for index, result in enumerate(results):
        wanted = result.history
        if wanted is not None and (left > 0 or nothing_yet):
            wanted = wanted._replace(max_bytes=min(wanted.max_bytes, max(left, 0)))
            ranges[index] = wanted._replace(at_least_one_batch=nothing_yet)
            left -= wanted.max_bytes
        nothing_yet = nothing_yet and not result.size_bytes and wanted is None
    return ranges
