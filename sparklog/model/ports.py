"""Ports to the world that shells are written against, so that a simulation can stand in for it."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Timer(Protocol):
    """Calls ``action`` once, ``delay_ms`` from now, on the timer's own thread; actions must be short."""

    def after(self, delay_ms: int, action: Callable[[], None]) -> Cancellable: ...


class Executor(Protocol):
    """Runs work on some other thread: parallel recovery, group fsync, blocking calls to peers."""

    def submit(self, work: Callable[[], None]) -> None: ...


class Guard(Protocol):
    """A partition's lock; the simulator puts a tripwire in its place."""

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
