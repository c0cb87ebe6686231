"""Calls of libraries that have no timeout of their own."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparklog.remote.store import Failure, RemoteStoreError

T = TypeVar("T")


@dataclass(slots=True)
class _Outcome(Generic[T]):
    value: T | None = None
    error: BaseException | None = None


def within(timeout_s: float, doing: str, call: Callable[[], T]) -> T:
    """The result of ``call``, or its exception; RemoteStoreError (AWAY) if it has neither in time.

    The call runs in a thread of its own. One that is too late is left behind: it holds no lock of ours, and
    what it still does concerns a name that nobody else uses.
    """
    outcome: _Outcome[T] = _Outcome()

    def run() -> None:
        try:
            outcome.value = call()
        except BaseException as error:  # noqa: BLE001 (raised again below, in the caller's thread)
            outcome.error = error

    thread = threading.Thread(target=run, name="remote-store-call", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        raise RemoteStoreError(Failure.AWAY, f"{doing}: no answer within {timeout_s:g} s")
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]  # set by run, as there was no error
