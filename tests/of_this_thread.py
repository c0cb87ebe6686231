"""Patches that the calls of one thread see, for functions that the whole process shares.

The brokers of the tests' shared cluster live in the same process as the tests. A patch of ``os.pwrite`` that
fails is a disk that fails for them too, and a broker whose disk fails stops.
"""

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def of_this_thread(original: Callable[P, R], instead: Callable[P, R]) -> Callable[P, R]:
    """``instead`` for calls from the thread that calls this, and ``original`` for all others."""
    caller = threading.get_ident()

    @functools.wraps(original)
    def either(*args: P.args, **named: P.kwargs) -> R:
        chosen = instead if threading.get_ident() == caller else original
        return chosen(*args, **named)

    return either
