"""Loops of a shell, as conversations: what a loop asks the world, and how the world starts one.

A broker and a controller consist of loops: send what has gathered, wait for the answer, wait for a change,
begin again. Each is written once, as a generator that *yields a question* and *is sent its outcome*:

    def report(self) -> Loop:
        while True:
            try:
                answer = yield CallController(self._request(), timeout_ms=5_000)
                if answer.error_code is ErrorCode.none:
                    return
            except (OSError, SparklogError) as error:
                logger.warning("not reported yet: %s", error)
            yield Pause(500)

A loop never waits in any other way, starts no thread and reads no clock, so that threads
(``network.loop_threads``) and the simulation's events drive the same code. Two exceptions: it calls the
ZooKeeper port itself, because that port waits in both; and it may hold a ``Guard`` for a few lines, never
across a ``yield``.

To write another shell, implement ``Loops``. For each loop: call ``begin``; take the first question with
``go_on(loop)``; find the outcome, or the error of a call; hand it over with ``go_on`` and take the next
question, until there is none. End a loop before that with ``loop.close()``. An exception that leaves a loop
is a bug: report it, and begin the loop anew after a pause, because a broker would lack that loop until it is
restarted.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sparklog.model.cluster import Node


class Signal:
    """A flag that any thread gives and one loop awaits. It stays given until the loop takes it.

    ``give`` calls ``wake`` after it has set the flag, and a shell sets ``wake`` before it looks at the flag:
    so no giving is missed, without a lock.
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
        """Whether it was given since it was last taken."""
        if not self._is_given:
            return False  # and nothing is written: another thread may give it at this moment
        self._is_given = False
        return True


class Changes:
    """A fact that changes now and then, and the signals of those who want to know."""

    def __init__(self) -> None:
        self._signals: list[Signal] = []

    @contextmanager
    def signalled(self) -> Iterator[Signal]:
        """A signal that every change gives while the context lasts."""
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
    """Wait for ``delay_ms``. Its outcome means nothing."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the signal is given, at most for ``timeout_ms`` (None: for ever). Outcome: whether it was.

    A signal that was given before the question ends the wait at once.
    """

    signal: Signal
    timeout_ms: int | None = None


Call = CallBroker | CallController
Question = Call | Pause | Await
Loop = Generator[Question, Any, None]
"""Yields questions, is sent outcomes."""


def go_on(loop: Loop, outcome: Any = None, error: Exception | None = None) -> Question | None:
    """Hand the outcome of its last question to a loop, or the error of its call; nothing, to begin it.

    Returns the next question, None once the loop has ended.
    """
    try:
        return loop.send(outcome) if error is None else loop.throw(error)
    except StopIteration:
        return None


class Loops(Protocol):
    """What runs loops: threads, or the events of a simulation."""

    def start(self, name: str, begin: Callable[[], Loop]) -> None:
        """Run what ``begin`` returns until it ends, beside the caller. ``name`` is for logs and thread
        lists.
        """
