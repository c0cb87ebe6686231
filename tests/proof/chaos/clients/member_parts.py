"""What members of the consumer group have, whatever their library: where they stand, and what they commit.

A member reads on from the group's committed offset, and commits twice a second where it stands. Each
commit has a name of its own in its metadata, so that the judge can tell which commit a reader found.
"""

import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.clients.client_parts import Place, Positions, Seen, Settings
from histories import Writer

GROUP = "shared"
SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
POLL_INTERVAL_MS = 45_000
"""For so long a rebalance waits for a member that is alive and does not join."""
COMMIT_EVERY_S = 0.5
NAME_ENDS = ";"
"""What comes behind it in a metadata was never written."""


@dataclass(frozen=True)
class Due:
    """One offset to commit: ``name`` goes into its metadata, ``op`` is its entry in the history."""

    place: Place
    offset: int
    name: str
    op: int


class Membership:
    """Where a member stands in the partitions that it owns."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._settings, self._writer = settings, writer
        self._positions = Positions(settings, writer)
        self._committed: dict[Place, int] = {}
        self._names = itertools.count()
        self._next_commit = time.monotonic() + COMMIT_EVERY_S

    @property
    def instance(self) -> str | None:
        """The instance id: all lives of a static member have the same."""
        return self._settings.name.split("/")[0] if self._settings.role == "static-member" else None

    @property
    def owned(self) -> set[Place]:
        """The partitions that it reads."""
        return set(self._positions.at)

    def own(self, place: Place, offset: int) -> None:
        self._committed[place] = offset
        self._positions.seek(*place, offset)

    def disown(self, places: Iterable[Place]) -> None:
        for place in places:
            self._positions.at.pop(place, None)

    def stands_at(self, place: Place) -> int:
        return self._positions.at[place]

    def take(self, records: dict[Place, list[Seen]]) -> None:
        """Write down what was polled. A partition that is not owned, or not yet, is another member's."""
        self._positions.take({place: some for place, some in records.items() if place in self.owned and some})

    def due(self, *, now: bool = False) -> list[Due]:
        """The commits to make, if it is time: of each partition that was read since the last."""
        if not now and time.monotonic() < self._next_commit:
            return []
        self._next_commit = time.monotonic() + COMMIT_EVERY_S
        moved = [(place, at) for place, at in self._positions.at.items() if at > self._committed[place]]
        return [self._begin(place, at) for place, at in moved]

    def _begin(self, place: Place, offset: int) -> Due:
        self._committed[place] = offset
        name = f"{offset} by {self._settings.name}, {next(self._names)}{NAME_ENDS}"
        return Due(place, offset, name, self._writer.commit(self._settings.name, GROUP, *place, name))

    def done(self, due: Due, error: object | None) -> None:
        """A commit that failed may have happened: libraries send it again, and tell the last answer."""
        if error is None:
            self._writer.done(self._settings.name, due.op)
        else:
            self._writer.unknown(self._settings.name, due.op, error, what="commit")

    def ask(self, place: Place) -> int:
        """Before the group's committed offset is asked for."""
        return self._writer.committed(self._settings.name, GROUP, *place)

    def found(self, op: int, offset: int, name: str | None) -> None:
        """What the group has committed; -1: nothing. An offset that is not its metadata's is nobody's.

        confluent-kafka reads past the end of a metadata that others committed, up to some NUL, and commits
        the NUL behind its own text.
        """
        value = None if offset < 0 else "".join((name or "").partition(NAME_ENDS)[:2])
        if value is not None and not value.startswith(f"{offset} by "):
            value = f"{offset} with metadata {value!r}"
        self._writer.found_committed(self._settings.name, op, value)

    def assigned(self, generation: int, member: str, places: Iterable[Place]) -> None:
        shares = [f"{topic}/{partition}" for topic, partition in places]
        if generation >= 0 and shares:
            identity = self.instance or member
            self._writer.assigned(self._settings.name, GROUP, generation, identity, shares)

    def trouble(self, error: object) -> None:
        self._writer.line(self._settings.name, "info", "poll", error=str(error)[:900])
