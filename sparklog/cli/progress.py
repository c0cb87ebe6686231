"""Progress messages on standard error, for operations that take longer than a moment."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 1.5
REPORT_EVERY_S: Final = 2.0


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Print ``what`` if the block takes longer than ``PATIENCE_S``."""
    timer = threading.Timer(PATIENCE_S, lambda: say(f"{what} ..."))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Counter:
    """Counts something, and prints the count every few seconds."""

    def __init__(self, what: str) -> None:
        self.count = 0
        self._what = what
        self._begun_s = time.monotonic()
        self._reported_s = self._begun_s

    def add(self, count: int) -> None:
        self.count += count
        now_s = time.monotonic()
        if now_s - self._reported_s >= REPORT_EVERY_S:
            self._reported_s = now_s
            rate = self.count / (now_s - self._begun_s)
            say(f"{self._what}: {self.count:,} ({rate:,.0f}/s)")


def say(text: str) -> None:
    """Print one line on standard error."""
    print(f"sparklog: {text}", file=sys.stderr, flush=True)
