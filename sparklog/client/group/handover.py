"""Where a member's loop and its application meet: changes of partitions one way, consent the other way.

The loop (``membership``) talks to the coordinator on a thread of its own. The application polls. Partitions
are the application's: the loop offers a change, and a partition is given up only after the application took
that change, so that it could commit its positions first.
"""

import threading
from collections import deque
from dataclasses import dataclass

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import Signal
from sparklog.model.time import Clock, MonotonicMs


@dataclass(frozen=True, slots=True)
class Identity:
    """A member in one generation, as commits name it; without a generation the member has no partitions."""

    member_id: str = ""
    generation: int = -1


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions that the member owns from now on, beside those that it has."""

    partitions: frozenset[TopicPartition]
    generation: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions that the member gives up. Until this change is taken their positions may be committed."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions that may belong to other members already: a commit of their positions would be refused."""

    partitions: frozenset[TopicPartition]


Change = Assigned | Revoked | Lost


class Handover:
    """Shared by two threads; its lock is held for a few lines."""

    def __init__(self, clock: Clock) -> None:
        self.identity = Identity()
        """Written by the loop; one reference, so that a reader needs no lock."""
        self.obstacle = ""
        """Why the member is not in its group yet, in words; empty if nothing is known to be wrong."""
        self.taken = Signal()
        """Given when the application has taken a change, and when it closes."""
        self._clock = clock
        self._lock = threading.Lock()
        self._changes: deque[Change] = deque()
        self._failure: SparklogError | None = None
        self._is_closing = False
        self._polled_ms: MonotonicMs = clock.monotonic_ms()

    # For the loop.

    def offer(self, change: Change) -> None:
        with self._lock:
            self._changes.append(change)

    def has_changes(self) -> bool:
        """Whether a change was offered that the application has not taken yet."""
        with self._lock:
            return bool(self._changes)

    def fail(self, error: SparklogError) -> None:
        """End the membership: the application's next poll raises the error."""
        with self._lock:
            self._failure = error

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    def silent_ms(self) -> int:
        """How long ago the application polled."""
        return self._clock.monotonic_ms() - self._polled_ms

    # For the application.

    def note_poll(self) -> None:
        """The application lives; raises the error that ended the membership, if one did."""
        self._polled_ms = self._clock.monotonic_ms()
        if self._failure is not None:
            raise self._failure

    def next_change(self) -> Change | None:
        """The oldest change that was not taken yet."""
        with self._lock:
            return self._changes[0] if self._changes else None

    def take(self) -> None:
        """The change that ``next_change`` returned has been carried out."""
        with self._lock:
            self._changes.popleft()
        self.taken.give()

    def close(self) -> None:
        """The application leaves: the loop asks for nothing more."""
        self._is_closing = True
        self.taken.give()
