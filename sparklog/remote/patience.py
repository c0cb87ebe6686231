"""Calls of libraries that have no timeout of their own, and the end of all of them at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparklog.remote.store import Failure, RemoteStoreError

T = TypeVar("T")


@dataclass(slots=True)
class _Outcome(Generic[T]):
    value: T | None = None
    error: BaseException | None = None
    is_there: bool = False


class Stop:
    """Ends the calls of the stores that were opened with it, for a process that must not wait for them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waits: set[threading.Event] = set()
        self._is_given = False

    @property
    def is_given(self) -> bool:
        return self._is_given

    def give(self) -> None:
        """Calls under way, and all later ones, fail at once: RemoteStoreError (AWAY)."""
        with self._guard:
            self._is_given = True
            for wait in self._waits:
                wait.set()

    @contextmanager
    def ends(self, wait: threading.Event) -> Iterator[None]:
        """Set ``wait`` as soon as the stop is given."""
        with self._guard:
            self._waits.add(wait)
            if self._is_given:
                wait.set()
        try:
            yield
        finally:
            with self._guard:
                self._waits.discard(wait)


def within(timeout_s: float, doing: str, call: Callable[[], T], stop: Stop) -> T:
    """The result of ``call``, or its exception; RemoteStoreError (AWAY) if it has neither in time.

    The call runs in a thread of its own. One that is too late, or under way at the stop, is abandoned: it
    holds no lock of ours, and what it still does concerns a name that nobody else uses.
    """
    if stop.is_given:
        raise RemoteStoreError(Failure.AWAY, f"{doing}: this broker stops")
    outcome: _Outcome[T] = _Outcome()
    wait = threading.Event()

    def run() -> None:
        try:
            outcome.value = call()
        except BaseException as error:  # noqa: BLE001 (raised again below, in the caller's thread)
            outcome.error = error
        outcome.is_there = True
        wait.set()

    thread = threading.Thread(target=run, name="remote-store-call", daemon=True)
    with stop.ends(wait):
        thread.start()
        wait.wait(timeout_s)
    if not outcome.is_there:
        why = "this broker stops" if stop.is_given else f"no answer within {timeout_s:g} s"
        raise RemoteStoreError(Failure.AWAY, f"{doing}: {why}")
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]  # set by run, as there was no error
