"""Requests that wait for a remote store, without a thread. Each is answered once, by the store or its timer.

The readers' threads deliver the store's answers. A request about several partitions is answered with the last
of them. The reader keeps an answer that arrives too late, so the client's next request finds it.
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
"""By index among the partitions of a fetch."""


class History(Protocol):
    """Reads of the remote store. No call blocks.

    An answer in memory is given at once, any other later and on another thread. With too many reads in
    progress there is none.
    """

    def read(self, wanted: HistoryRange, answer: Callable[[HistoryRead], None]) -> None:
        """The batches from the fetch offset on."""

    def find(self, wanted: HistoryTime, answer: Callable[[HistoryFound], None]) -> None:
        """The first record of a time."""


@dataclass(slots=True)
class _Wait(Generic[Answer]):
    """One request, which finishes once."""

    guard: Guard
    missing: set[int]
    """The indexes without an answer; ``arrived`` has all others."""
    finish: Callable[[Mapping[int, Answer]], None]
    arrived: dict[int, Answer] = field(default_factory=dict)
    """It no longer changes once ``is_over``."""
    timer: Cancellable | None = None
    is_over: bool = False
    """Set by the thread that calls ``finish``."""

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
        """Ask for all ``ranges``, and call ``finish`` once: with all answers, or with those in time."""
        self._ask(ranges, self._history.read, finish, self._wait_max_ms)

    def find(
        self,
        times: Mapping[int, HistoryTime],
        wait_max_ms: int,
        finish: Callable[[Mapping[int, HistoryFound]], None],
    ) -> None:
        """Search for all ``times``, and call ``finish`` once: with all answers, or after ``wait_max_ms``."""
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
    """The ranges to read from the store, within the bytes of ``bytes_max`` that the disks' records leave.

    The first partition with records may exceed the limit by one batch, as on disk.
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
