"""What happens when: one heap of events, a virtual clock, and processes that can pause and die.

Nothing here waits and nothing is left to chance: the next event is the earliest in the heap, and of those at
the same time the one that was scheduled first. Every event belongs to a ``Process`` or to the world. Events
of a dead process are dropped; those of a process that is paused, or that waits inside a blocking call, are
kept in order and run when it goes on.

``block`` is a blocking call: the process that makes it stands still in the middle of its event while the rest
of the world goes on. So a controller can be overtaken between two of its ZooKeeper requests, without threads.

Death can strike in the middle of an event: ``ProcessDied`` unwinds the shipped code, which must not catch it,
and whatever that code still tries to do while it unwinds no longer reaches the world.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Final

from sparklog.model.ports import Cancellable
from sparklog.model.time import MonotonicMs, WallMs

WALL_START_MS: Final = 1_700_000_000_000
US_PER_MS: Final = 1_000

Action = Callable[[], None]


class ProcessDied(BaseException):
    """The process that runs this code was killed; nobody may handle it but the schedule."""


class OutOfSteps(BaseException):
    """The run was given no more steps than it has taken; ends it wherever it is."""


class Escaped(BaseException):
    """An exception left an event: its cause. Whoever waits on the stack below it may not handle it, as it is
    of another process."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")


def dice(seed: int, name: str) -> random.Random:
    """A stream of its own for every purpose, so that a fault left out does not reshuffle all others."""
    return random.Random(f"{seed}/{name}")


class Event:
    """One thing to happen, unless it is cancelled before."""

    __slots__ = ("action", "is_cancelled", "process")

    def __init__(self, process: "Process | None", action: Action) -> None:
        self.process = process
        self.action = action
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Process:
    """One incarnation of a program: it runs, is paused, waits, or is dead for good."""

    __slots__ = (
        "_drift",
        "_drift_since_us",
        "_drifted_us",
        "_held",
        "_is_draining",
        "_pauses",
        "is_alive",
        "is_waiting",
        "name",
        "schedule",
        "skew_ms",
    )

    def __init__(self, schedule: "Schedule", name: str) -> None:
        self.schedule = schedule
        self.name = name
        self.is_alive = True
        self.is_waiting = False
        self.skew_ms = 0
        self._drift = 0.0
        self._drift_since_us = 0
        self._drifted_us = 0
        self._pauses = 0
        self._held: deque[Event] = deque()
        self._is_draining = False

    def __repr__(self) -> str:
        return self.name

    @property
    def is_running(self) -> bool:
        return self.is_alive and not self.is_paused

    def soon(self, action: Action) -> None:
        """Run ``action`` as this process's next free event."""
        self.schedule.after(0, self, action)

    def kill(self) -> None:
        self.is_alive = False
        self._held.clear()

    @property
    def is_paused(self) -> bool:
        return self._pauses > 0

    def pause(self) -> None:
        """Stand still until every pause has ended."""
        self._pauses += 1

    def resume(self) -> None:
        self._pauses -= 1
        self._drain()

    def must_hold(self) -> bool:
        return self._pauses > 0 or self.is_waiting or bool(self._held)

    def hold(self, event: Event) -> None:
        self._held.append(event)
        self._drain()

    def stop_waiting(self) -> None:
        self.is_waiting = False
        self._drain()

    def _drain(self) -> None:
        if self._held and not self._is_draining and not self.is_paused and not self.is_waiting:
            self._is_draining = True
            self.schedule.after(0, None, self._run_next)

    def _run_next(self) -> None:
        self._is_draining = False
        if self.is_paused or self.is_waiting or not self._held:
            return
        event = self._held.popleft()
        try:
            self.schedule.run(event)
        finally:
            self._drain()

    # model.time.Clock

    def monotonic_ms(self) -> MonotonicMs:
        if self._drift:
            return MonotonicMs(self._drifting_us() // US_PER_MS)
        return MonotonicMs(self.schedule.now_us // US_PER_MS)

    def wall_ms(self) -> WallMs:
        return WallMs(WALL_START_MS + self.monotonic_ms() + self.skew_ms)

    def drift(self, rate: float) -> None:
        """From now on this machine's clocks gain ``rate`` seconds in every second."""
        self._drifted_us = self._drifting_us() - self.schedule.now_us
        self._drift_since_us = self.schedule.now_us
        self._drift = rate

    def true_us(self, delay_us: int) -> int:
        """How long ``delay_us`` of this machine's clock are."""
        return int(delay_us / (1 + self._drift)) if self._drift else delay_us

    def _drifting_us(self) -> int:
        now_us = self.schedule.now_us
        return now_us + self._drifted_us + int((now_us - self._drift_since_us) * self._drift)


class Schedule:
    """The world's time. ``on_step`` is called after every event, with the process that it belonged to, and
    before every wait in the middle of one; ``on_standstill`` before a wait in the middle of a change."""

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        self.steps_max: int | None = None
        self.on_step: Callable[[Process | None], None] = lambda process: None
        self.on_standstill: Callable[[Process], None] = lambda process: None
        self._heap: list[tuple[int, int, Event]] = []
        self._scheduled = 0

    @property
    def now_ms(self) -> int:
        return self.now_us // US_PER_MS

    def after(self, delay_us: int, process: Process | None, action: Action) -> Event:
        return self.at(self.now_us + delay_us if delay_us > 0 else self.now_us, process, action)

    def at(self, when_us: int, process: Process | None, action: Action) -> Event:
        event = Event(process, action)
        self._scheduled += 1
        heapq.heappush(self._heap, (when_us, self._scheduled, event))
        return event

    def run_until(self, when_us: int) -> None:
        """Everything that happens up to ``when_us``; then it is that time."""
        heap = self._heap
        while heap and heap[0][0] <= when_us:
            self.step()
        self.now_us = max(self.now_us, when_us)

    def step(self) -> None:
        """The next event."""
        when_us, _, event = heapq.heappop(self._heap)
        if event.is_cancelled:
            return
        if when_us > self.now_us:
            self.now_us = when_us
        process = event.process
        if process is None:
            try:
                event.action()
            except Exception as error:
                raise Escaped(error) from error
        elif not process.is_alive:
            return
        elif process.must_hold():
            process.hold(event)
        else:
            self.run(event)

    def run(self, event: Event) -> None:
        process = event.process
        if event.is_cancelled or process is None or not process.is_alive:
            return
        if self.steps == self.steps_max:
            raise OutOfSteps
        self.steps += 1
        try:
            try:
                event.action()
            except ProcessDied:
                assert not process.is_alive, process
            self.on_step(process)
        except Exception as error:
            raise Escaped(error) from error

    def block(self, process: Process, delay_us: int, *, is_looked_at: bool = True) -> None:
        """The running event of ``process`` waits; the rest of the world goes on meanwhile.

        What it has done so far is looked at first: the world may act upon it. A broker that registers is
        elected for the log that it has just recovered, not for the one that a power cut took from it. If it
        stands still in the middle of a change, nobody else can see that yet, but whatever else it did before.
        """
        if not process.is_alive:
            raise ProcessDied(process.name)
        look = self.on_step if is_looked_at else self.on_standstill
        try:
            look(process)
        except Exception as error:
            raise Escaped(error) from error
        arrived: list[bool] = []
        process.is_waiting = True
        self.after(delay_us, None, lambda: arrived.append(True))
        while process.is_alive and (not arrived or process.is_paused):
            self.step()
        if not process.is_alive:
            raise ProcessDied(process.name)
        process.stop_waiting()


class ProcessTimer:
    """``model.ports.Timer``, dying with its process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def after(self, delay_ms: int, action: Action) -> Cancellable:
        delay_us = self._process.true_us(delay_ms * US_PER_MS)
        return self._process.schedule.after(delay_us, self._process, action)


class InlineExecutor:
    """``model.ports.Executor``: does the work at once."""

    def submit(self, work: Action) -> None:
        work()


class Tripwire:
    """A partition's guard where nothing runs at the same time: whoever would wait has found a bug."""

    __slots__ = ("_is_held",)

    def __init__(self) -> None:
        self._is_held = False

    @property
    def is_held(self) -> bool:
        return self._is_held

    def acquire(self, blocking: bool = True) -> bool:
        if self._is_held:
            assert not blocking, "a lock is taken twice by one thread: this would wait for ever"
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        assert self._is_held, "a lock is released that nobody holds"
        self._is_held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *unused: object) -> None:
        self.release()
