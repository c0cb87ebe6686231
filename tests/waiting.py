"""The one wait of the tests: for facts in other threads and processes, of which no event tells."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
_PAUSE_S = 0.01


def until(
    condition: Callable[[], T],
    what: str | Callable[[], object] = "the condition",
    timeout_s: float = PATIENCE_S,
) -> T:
    """The first true value of ``condition``; AssertionError with ``what`` if there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            detail = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {timeout_s:.0f} s in vain for {detail}")
        time.sleep(_PAUSE_S)
    return value
