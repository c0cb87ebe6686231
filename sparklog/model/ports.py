"""Ports through which shells use timers, threads and locks, so that a simulation can replace these."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Timer(Protocol):
    """Calls ``action`` once, ``delay_ms`` from now, on the timer's own thread; actions must be short."""

    def after(self, delay_ms: int, action: Callable[[], None]) -> Cancellable: ...


class Executor(Protocol):
    """Runs work on another thread: parallel recovery, group fsync, blocking calls to peers."""

    def submit(self, work: Callable[[], None]) -> None: ...


class Guard(Protocol):
    """A partition's lock; in the simulation, which has one thread, waiting for it is an error."""

    def acquire(self, blocking: bool = ...) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
