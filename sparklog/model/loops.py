"""Loops of a shell, written as generators: the questions that a loop yields, and the port that runs loops.

A broker and a controller consist of loops: send pending requests, wait for the answer, wait for a change,
repeat. Each is written once, as a generator that *yields a question* and *is sent its outcome*:

    def report(self) -> Loop:
        while True:
            try:
                answer = yield CallController(self._request(), timeout_ms=5_000)
                if answer.error_code is ErrorCode.none:
                    return
            except (OSError, SparklogError) as error:
                logger.warning("not reported yet: %s", error)
            yield Pause(500)

A loop waits only by yielding, starts no thread and reads no clock, so that threads (``network.loop_threads``)
and the simulation's events drive the same code. Two exceptions: a loop calls the ZooKeeper port directly,
because that port blocks in both; and it may hold a ``Guard`` for a few lines, but never across a ``yield``.

To write another shell, implement ``Loops``. For each loop: call ``begin``; get the first question by
``go_on(loop)``; find the outcome, or the error of a call; pass it to ``go_on``, which returns the next
question, until it returns None. ``loop.close()`` ends a loop early. An exception that leaves a loop is a bug:
report it and restart the loop after a pause, because otherwise the broker would lack that loop until its next
start.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sparklog.model.cluster_facts import Node


class Signal:
    """A flag that any thread sets (``give``) and one loop awaits. It stays set until the loop takes it.

    ``give`` calls ``wake`` after it has set the flag, and a shell sets ``wake`` before it reads the flag, so
    that no signal is lost, without a lock.
    """

    __slots__ = ("_is_given", "wake")

    def __init__(self) -> None:
        self._is_given = False
        self.wake: Callable[[], None] | None = None
        """Called by whoever gives the signal; must be short. Belongs to the shell that awaits it."""

    @property
    def is_given(self) -> bool:
        return self._is_given

    def give(self) -> None:
        self._is_given = True
        if (wake := self.wake) is not None:
            wake()

    def take(self) -> bool:
        """Clear the flag; whether it was set."""
        if not self._is_given:
            return False  # and nothing is written: another thread may give it at this moment
        self._is_given = False
        return True


class Changes:
    """Notifies loops of a fact's changes by their signals."""

    def __init__(self) -> None:
        self._signals: list[Signal] = []

    @contextmanager
    def signalled(self) -> Iterator[Signal]:
        """A signal that every change sets while the context lasts."""
        signal = Signal()
        self._signals.append(signal)
        try:
            yield signal
        finally:
            self._signals.remove(signal)

    def happened(self) -> None:
        for signal in tuple(self._signals):
            signal.give()


@dataclass(frozen=True, slots=True)
class CallBroker:
    """Send a request to a broker. Outcome: its response.

    Thrown into the loop: OSError if the broker cannot be reached, is silent for ``timeout_ms``
    (TimeoutError), or the connection ends; SparklogError if its answer cannot be understood. Calls of one
    ``lane`` share a connection, on which a broker serves one request after the other.
    """

    node: Node
    message: Any
    timeout_ms: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class CallController:
    """Send a request to the active controller, waiting for one to be elected. Outcome: its response.

    Thrown into the loop: as for ``CallBroker``, and OSError if another controller is elected meanwhile.
    """

    message: Any
    timeout_ms: int
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for ``delay_ms``. The outcome has no meaning."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the signal is set, at most for ``timeout_ms`` (None: for ever). Outcome: whether it was.

    A signal that is set already ends the wait at once.
    """

    signal: Signal
    timeout_ms: int | None = None


Call = CallBroker | CallController
Question = Call | Pause | Await
Loop = Generator[Question, Any, None]
"""Yields questions, is sent outcomes."""


def go_on(loop: Loop, outcome: Any = None, error: Exception | None = None) -> Question | None:
    """Send a loop the outcome of its last question, or the error of its call; nothing to begin the loop.

    Returns the next question, or None after the loop has ended.
    """
    try:
        return loop.send(outcome) if error is None else loop.throw(error)
    except StopIteration:
        return None


class Loops(Protocol):
    """The port that runs loops: threads, or the events of a simulation."""

    def start(self, name: str, begin: Callable[[], Loop]) -> None:
        """Run what ``begin`` returns until it ends, beside the caller. ``name`` is for logs and thread
        lists.
        """
