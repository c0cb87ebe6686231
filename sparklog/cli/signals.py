"""Signals that ask a command to end: noted, so that it can finish what it has begun."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def end_as_flag(*numbers: int) -> Iterator[threading.Event]:
    """Make Ctrl-C and SIGTERM (or the given signals) set the event. The second one acts as it did before."""
    ended = threading.Event()
    before = {number: signal.getsignal(number) for number in numbers or (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        ended.set()
        restore()

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield ended
    finally:
        restore()
