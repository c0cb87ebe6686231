"""One-shot watches of a ZooKeeper tree: of nodes' data, or of their children.

A server tells a session of a node only what it may read (since 3.9.2). It forgets a watch that it may not
fire; the session's client does not know of that. There the watch fires with the session's next event of that
node, or once the connection is lost.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Set
from dataclasses import dataclass, field

Judge = Callable[[int], bool]
"""Whether a session may know of it."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A watch that fired: whose it was, and the key that it was set with."""

    session_id: int
    key: Hashable


@dataclass(slots=True)
class Watches:
    """Those of one kind, by path."""

    _set: dict[str, list[Firing]] = field(default_factory=dict)
    _withheld: dict[str, list[Firing]] = field(default_factory=dict)
    """Those that the server has forgotten unfired."""

    def add(self, path: str, watch: Firing) -> None:
        self._set.setdefault(path, []).append(watch)

    def fire(self, path: str, may: Judge) -> list[Firing]:
        """The watches that fire; they are set no more."""
        fired, withheld = _divide(self._set.pop(path, ()), may)
        if withheld:
            self._withheld.setdefault(path, []).extend(withheld)
        return fired

    def recall(self, path: str, sessions: Collection[int]) -> list[Firing]:
        """Those that the clients of ``sessions`` hold for set: they fire with an event of the node."""
        return _take(self._withheld, path, sessions)

    def lose(self, session_id: int) -> list[Firing]:
        """Every watch of a session, which fires because its connection broke."""
        lost = []
        for path in sorted({*self._set, *self._withheld}):
            for table in (self._withheld, self._set):
                lost += _take(table, path, (session_id,))
        return lost

    def paths(self) -> Set[str]:
        """The nodes that are watched, and those whose watches were withheld."""
        return {*self._set, *self._withheld}

    def sessions(self) -> Set[int]:
        """The sessions that watch, or believe it."""
        tables = (self._set, self._withheld)
        return {watch.session_id for table in tables for watches in table.values() for watch in watches}


def _take(table: dict[str, list[Firing]], path: str, sessions: Collection[int]) -> list[Firing]:
    taken, left = _divide(table.pop(path, ()), lambda session_id: session_id in sessions)
    if left:
        table[path] = left
    return taken


def _divide(watches: Iterable[Firing], is_wanted: Judge) -> tuple[list[Firing], list[Firing]]:
    wanted: list[Firing] = []
    others: list[Firing] = []
    for watch in watches:
        (wanted if is_wanted(watch.session_id) else others).append(watch)
    return wanted, others
