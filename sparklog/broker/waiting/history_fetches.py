"""Fetches that wait for a remote store: parked without a thread, answered once, by the store or their time.

The store's answers come on its readers' threads. A fetch that asks for several partitions is answered when
the last of its answers has come. What comes after the time is over is not lost: the reader keeps it, and the
client's next fetch finds it there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from sparklog.broker.partition.answers import HistoryRange, HistoryRead, ReadResult
from sparklog.broker.ports import Ports
from sparklog.model.ports import Cancellable, Guard

Arrived = Mapping[int, HistoryRead]
"""By place among the partitions of a fetch."""


class History(Protocol):
    """Reads of the remote store."""

    def read(self, wanted: HistoryRange, answer: Callable[[HistoryRead], None]) -> None:
        """Give ``answer`` the batches from the fetch offset on, now if they are in memory, else later and on
        another thread; never, if the store has too much to do. The call does not wait.
        """


@dataclass(slots=True)
class _Wait:
    guard: Guard
    missing: set[int]
    finish: Callable[[Arrived], None]
    arrived: dict[int, HistoryRead] = field(default_factory=dict)
    timer: Cancellable | None = None
    is_over: bool = False

    def on_read(self, index: int, read: HistoryRead) -> None:
        with self.guard:
            if self.is_over:
                return
            self.arrived[index] = read
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
    """The fetches that wait for a remote store."""

    def __init__(self, ports: Ports, history: History, wait_max_ms: Callable[[], int]) -> None:
        """``wait_max_ms``: ``remote.fetch.max.wait.ms`` as it is now."""
        self._ports = ports
        self._history = history
        self._wait_max_ms = wait_max_ms

    def ask(self, ranges: Mapping[int, HistoryRange], finish: Callable[[Arrived], None]) -> None:
        """Ask for all ``ranges``, and call ``finish`` once: with everything, or when the time is over."""
        wait = _Wait(self._ports.new_guard(), set(ranges), finish)
        wait.timer = self._ports.timer.after(self._wait_max_ms(), wait.end)
        for index, wanted in ranges.items():
            self._history.read(wanted, partial(wait.on_read, index))


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
