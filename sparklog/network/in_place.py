"""Short requests that a processor works on itself, and the watch that replaces a processor that is held up.

A hop to a handler thread and back costs more than a small produce: both threads want the interpreter lock at
every system call. So a processor that has received a short request, while few other connections wait for it
and nothing for a handler, works on that request in place.

A disk may block any of them, and with its processor all connections of that. So a *watch* looks every
``SLOW_MS``. If it sees the same request again, and the request's thread is not merely *starved*
(``core.held_threads``), another thread takes the processor's place. The slow request keeps the thread that it
has, which ends with it. For ``PAUSE_MS``, and until the slow request has ended, every request goes to
handlers. So a slow disk holds up other connections for two or three looks, once in ``PAUSE_MS``, and one that
hangs holds one thread of each processor.

    processor  ---- request ----X (slow) .............. ends with its request
    watch           |  look  |  look: the same request, which waits for a disk
    processor'                 +---- selects, receives, hands over to handlers ---->

An idle watch sleeps until the next request.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from sparklog.core.held_threads import HeldThread, ThreadState
from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.exchange import Exchange
from sparklog.network.thread_state import read_thread_state

logger: Final = logging.getLogger(__name__)

SLOW_MS: Final = 10
PAUSE_MS: Final = 1_000
_IDLE_LOOKS_MAX: Final = 20
"""After so many looks without a new request the watch sleeps."""

WorksInPlace = Callable[[memoryview], bool]
"""Whether the request in this frame is short, and waits for nothing but a disk."""


def never_in_place(_: memoryview) -> bool:
    """For servers whose requests all go to handlers."""
    return False


class _Seen(NamedTuple):
    """The request that a look of the watch has found, and what it knows of its thread."""

    exchange: Exchange
    thread: HeldThread


class InPlace:
    """The requests that one processor works on itself. ``run`` is for the processor's thread."""

    def __init__(
        self,
        work: Callable[[Exchange], None],
        is_short: WorksInPlace,
        relieve: Callable[[], None],
        *,
        name: str,
        clock: Clock,
        holder: Callable[[], int | None],
        thread_state: Callable[[int], ThreadState | None] = read_thread_state,
    ) -> None:
        """``relieve`` puts another thread into the processor's place, or raises RuntimeError if there can be
        none; ``holder`` is the native id of the thread that has it. The watch calls both.
        """
        self._work = work
        self._is_short = is_short
        self._relieve = relieve
        self._name = name
        self._clock = clock
        self._holder = holder
        self._thread_state = thread_state
        self._guard = threading.Lock()
        self._count = 0
        self._is_paused = self._is_watched = False
        self._wanted = threading.Event()
        self._is_ending = threading.Event()
        self._slow_has_ended = threading.Event()
        self._watch = threading.Thread(target=self._look, name=f"{name}-watch", daemon=True)
        self.under_way: Exchange | None = None
        """What holds the processor now."""

    def start(self) -> None:
        if self._is_short is not never_in_place:
            self._watch.start()

    def stop(self) -> None:
        """End the watch; no thread is replaced from then on."""
        self._is_ending.set()
        self._wanted.set()
        self._slow_has_ended.set()
        if self._watch.ident is not None:
            self._watch.join()

    def may_run(self, exchange: Exchange) -> bool:
        return not self._is_paused and self._is_short(exchange.frame)

    def run(self, exchange: Exchange) -> None:
        """Work on ``exchange``; another thread may be the processor after that."""
        self.under_way = exchange
        self._count += 1
        # In this order: the watch falls asleep by setting the mark, and looks at the count after that.
        if not self._is_watched:
            self._is_watched = True
            self._wanted.set()
        self._work(exchange)
        with self._guard:
            if self.under_way is exchange:
                self.under_way = None
            else:
                self._slow_has_ended.set()

    def _look(self) -> None:
        while not self._is_ending.is_set():
            self._wanted.wait()
            self._wanted.clear()
            idle_looks, before, seen = 0, -1, None
            while idle_looks < _IDLE_LOOKS_MAX or not self._falls_asleep(before):
                looked_ms = self._clock.monotonic_ms()
                # In this order: a request that begins in between counts, so the watch stays awake for it.
                before, seen = self._count, self._see(seen, looked_ms)
                if self._is_ending.wait(SLOW_MS / 1_000):
                    return
                if seen is not None and self._is_held_up(seen, looked_ms):
                    self._replace(seen.exchange)
                idle_looks = idle_looks + 1 if seen is None and self._count == before else 0

    def _see(self, before: _Seen | None, now_ms: MonotonicMs) -> _Seen | None:
        exchange = self.under_way
        if exchange is None:
            return None
        is_same = before is not None and before.exchange is exchange
        return before if is_same else _Seen(exchange, HeldThread(now_ms))

    def _is_held_up(self, seen: _Seen, looked_ms: MonotonicMs) -> bool:
        """Whether the request of the last look, at ``looked_ms``, holds its thread up."""
        if self.under_way is not seen.exchange:
            return False
        holder = self._holder()
        state = None if holder is None else self._thread_state(holder)
        now_ms = self._clock.monotonic_ms()
        return seen.thread.on_look(state, now_ms, late_ms=now_ms - looked_ms - SLOW_MS)

    def _falls_asleep(self, count: int) -> bool:
        self._is_watched = False
        if self._count == count:
            return True
        self._is_watched = True
        return False

    def _replace(self, slow: Exchange) -> None:
        """Give the processor another thread, and wait until ``slow`` has ended."""
        try:
            if not self._replaces(slow):
                return
            self._is_ending.wait(PAUSE_MS / 1_000)
            self._slow_has_ended.wait()
        except RuntimeError as error:
            logger.warning(
                "%s keeps its thread: no other can be started: %s; raise the limit of threads (ulimit -u)",
                self._name, error,
            )  # fmt: skip
            self._is_ending.wait(PAUSE_MS / 1_000)
        self._is_paused = False

    def _replaces(self, slow: Exchange) -> bool:
        """Whether ``slow`` still held the processor, which has another thread now."""
        with self._guard:
            if self.under_way is not slow or self._is_ending.is_set():
                return False
            logger.info(
                "%s is held up by a request of connection %d; another thread takes its place",
                self._name, slow.context.connection_id,
            )  # fmt: skip
            self._is_paused = True
            self._slow_has_ended.clear()
            self.under_way = None
            try:
                self._relieve()
            except RuntimeError:
                self.under_way = slow
                raise
            return True
