"""Waiting during a start: in small steps, so that a stop can interrupt it, with progress lines."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from sparklog.model.errors import SparklogError

WAIT_STEP_S: Final = 0.05
PROGRESS_INTERVAL_S: Final = 2.0


def brokers_in_words(broker_ids: Sequence[int]) -> str:
    """What a start waits for: "broker 2", "brokers 2, 3"."""
    return f"broker{'s' if len(broker_ids) > 1 else ''} {', '.join(map(str, broker_ids))}"


class StartInterrupted(SparklogError):  # noqa: N818 (it states a fact)
    """The start was given up because a stop was asked for."""


class Patience:
    """Waits, until ``stopping`` is set at most; reports at intervals through ``progress``."""

    def __init__(self, stopping: threading.Event, progress: Callable[[str], None]) -> None:
        self._stopping = stopping
        self._progress = progress

    def check(self) -> None:
        """Raise StartInterrupted if a stop was asked for."""
        if self._stopping.is_set():
            raise StartInterrupted("the start was interrupted by a stop")

    def wait(
        self,
        is_ready: Callable[[float], bool],
        what: Callable[[], str],
        why: Callable[[float], str | None] = lambda waited_s: None,
    ) -> None:
        """Until ``is_ready`` says so; it may itself wait, for as long as its argument in seconds says.

        ``why`` gets the seconds that were waited, and may have a line that says more than ``what``.
        """
        began = time.monotonic()
        reports = 0
        while not is_ready(WAIT_STEP_S):
            self.check()
            waited_s = time.monotonic() - began
            if waited_s // PROGRESS_INTERVAL_S > reports:
                reports += 1
                self._progress(why(waited_s) or f"waiting for {what()} ({waited_s:.0f} s)")
        self.check()

    def wait_until(
        self,
        is_so: Callable[[], bool],
        what: Callable[[], str],
        timeout_s: float,
        too_late: Callable[[], str],
    ) -> None:
        """The same for what can only be asked; SparklogError ``too_late`` after the time-out."""
        deadline = time.monotonic() + timeout_s

        def is_ready(pause_s: float) -> bool:
            if is_so():
                return True
            if time.monotonic() > deadline:
                raise SparklogError(too_late())
            self._stopping.wait(pause_s)
            return False

        self.wait(is_ready, what)


class Background:
    """A call on a thread of its own."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._done = threading.Event()
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (raised again by raise_failure)
                self._failure = error
            self._done.set()

        threading.Thread(target=run, name=name, daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        return self._done.wait(timeout_s)

    def raise_failure(self, what: str) -> None:
        if isinstance(self._failure, SparklogError):
            raise self._failure
        if self._failure is not None:
            raise SparklogError(f"{what}: {self._failure}") from self._failure
