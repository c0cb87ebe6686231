"""ZooKeeper's tree as a pure state machine, for simulations and for clients in memory.

``ZooKeeperTree`` is what a server holds: nodes, versions, transaction ids, sessions with their ephemeral
nodes, one-shot watches. It starts no thread, reads no clock and makes no callbacks: a write returns the
watches that it fired, and its caller delivers them. The same calls give the same answers,
session ids and transaction ids included, so that a simulation can be replayed from its seed. Answers,
refusals and firings are compared with a real server's in
``tests/testing/test_memory_zookeeper_against_real.py``.

What a real server does and this does not: forget (it has no disk), refuse requests above 1 MiB, expire a
session by itself. A session ends only by a call.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.model.zookeeper import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    MultiFailed,
    Node,
    Operation,
    Reason,
    SessionExpired,
    SetData,
    Stat,
)

FIRST_SESSION_ID: Final = 0x1000_0000_0000_0000


@dataclass(frozen=True, slots=True)
class Firing:
    """A watch that fired: whose it was, and the key that it was set with."""

    session_id: int
    key: Hashable


@dataclass(frozen=True, slots=True)
class Applied:
    """What a write did: its transaction, the new Stat of each SetData, and the watches it fired, in order."""

    zxid: int
    stats: list[Stat | None]
    fired: list[Firing]


class _Refused(Exception):  # noqa: N818 (says what is the case)
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


@dataclass(slots=True)
class ZooKeeperTree:
    """The state of one ZooKeeper. Not safe for threads; nothing in it is random."""

    zxid: int = 0
    """The last transaction. Refused writes and the ends and beginnings of sessions take one each, too."""
    _nodes: dict[str, Node] = field(default_factory=lambda: {"/": Node(b"", Stat(0, 0, 0))})
    _children: dict[str, set[str]] = field(default_factory=lambda: {"/": set()})
    _children_created: Counter[str] = field(default_factory=Counter)
    """How many children each node has had: what the names of sequential ones end with."""
    _ephemerals: dict[int, set[str]] = field(default_factory=dict)
    """The ephemeral nodes of every session that is alive."""
    _data_watches: dict[str, list[Firing]] = field(default_factory=dict)
    _child_watches: dict[str, list[Firing]] = field(default_factory=dict)
    _sessions_opened: int = 0

    # ------------------------------------------------------------------------------------- sessions

    def open_session(self) -> int:
        """A new session's id."""
        self.zxid += 1
        self._sessions_opened += 1
        session_id = FIRST_SESSION_ID + self._sessions_opened
        self._ephemerals[session_id] = set()
        return session_id

    def is_open(self, session_id: int) -> bool:
        return session_id in self._ephemerals

    @property
    def sessions(self) -> list[int]:
        """The sessions that are alive, oldest first."""
        return list(self._ephemerals)

    def close_session(self, session_id: int) -> list[Firing]:
        """The session's owner ends it: its ephemeral nodes vanish, its watches are forgotten unfired."""
        self.lose_watches(session_id)
        return self._end(session_id)

    def expire_session(self, session_id: int) -> list[Firing]:
        """The server ends the session: its own watches fire first, then those that its nodes fire."""
        return [*self.lose_watches(session_id), *self._end(session_id)]

    def lose_watches(self, session_id: int) -> list[Firing]:
        """The session's connection broke: each of its watches fires, because it will see no more changes."""
        lost = []
        for watches in (self._data_watches, self._child_watches):
            for path in sorted(watches):
                mine, others = _divide(watches[path], session_id)
                lost += mine
                if others:
                    watches[path] = others
                else:
                    del watches[path]
        return lost

    def _end(self, session_id: int) -> list[Firing]:
        self._require(session_id)
        self.zxid += 1
        fired: list[Firing] = []
        for path in sorted(self._ephemerals[session_id]):
            self._remove(path)
            fired += self._fire_deleted(path)
        del self._ephemerals[session_id]
        return fired

    def _require(self, session_id: int) -> None:
        if session_id not in self._ephemerals:
            raise SessionExpired(f"ZooKeeper session {session_id:#x} is over")

    # ---------------------------------------------------------------------------------------- reads

    def get(self, path: str) -> Node | None:
        return self._nodes.get(_checked(path))

    def exists(self, path: str) -> Stat | None:
        node = self.get(path)
        return None if node is None else node.stat

    def children(self, path: str) -> list[str]:
        return sorted(self._children.get(_checked(path), ()))

    def copy(self) -> "ZooKeeperTree":
        """The nodes as they are now, for reading."""
        children = {path: set(names) for path, names in self._children.items()}
        return ZooKeeperTree(self.zxid, dict(self._nodes), children, Counter(self._children_created))

    def watch_data(self, session_id: int, path: str, key: Hashable) -> None:
        """Fire ``key`` once when the node is created, changed or deleted."""
        self._require(session_id)
        self._data_watches.setdefault(_checked(path), []).append(Firing(session_id, key))

    def watch_children(self, session_id: int, path: str, key: Hashable) -> None:
        """Fire ``key`` once when a child, or the node itself, is created or deleted."""
        self._require(session_id)
        watches = self._child_watches if _checked(path) in self._nodes else self._data_watches
        watches.setdefault(path, []).append(Firing(session_id, key))

    # --------------------------------------------------------------------------------------- writes

    def apply(self, session_id: int, operations: Sequence[Operation]) -> Applied:
        """All of the operations in one transaction, or MultiFailed with the first one that is refused."""
        self._require(session_id)
        if not operations:
            return Applied(self.zxid, [], [])
        before = {_checked(operation.path): self.get(operation.path) for operation in operations}
        counts_before = {path: self._children_created[path] for one in before for path in (one, _parent(one))}
        applied: list[Operation] = []
        stats: list[Stat | None] = []
        self.zxid += 1
        for index, asked in enumerate(operations):
            try:
                operation = self._numbered(asked)
                before.setdefault(operation.path, self.get(operation.path))
                stats.append(self._apply(session_id, operation))
            except _Refused as refused:
                self._restore(before)
                self._restore_counts(counts_before)
                raise MultiFailed(index, asked, refused.reason) from None
            applied.append(operation)
        return Applied(self.zxid, stats, self._fire(applied))

    def ensure_path(self, session_id: int, path: str) -> list[Firing]:
        """Create the persistent node and its parents where they are missing, a transaction each."""
        fired: list[Firing] = []
        for end in _ends(_checked(path)):
            if path[:end] not in self._nodes:
                fired += self.apply(session_id, [Create(path[:end])]).fired
        return fired

    def _numbered(self, operation: Operation) -> Operation:
        """The operation with the whole name of the node that it creates."""
        if not isinstance(operation, Create) or not operation.sequential:
            return operation
        parent = _parent(operation.path)
        if parent not in self._nodes:
            raise _Refused("no_node")
        return replace(operation, path=f"{operation.path}{self._children_created[parent]:010}")

    def _apply(self, session_id: int, operation: Operation) -> Stat | None:
        """One operation; the order of its checks is a real server's."""
        match operation:
            case Create(path, data, ephemeral):
                self._check_create(path)
                self._children_created[_parent(path)] += 1
                self._put(path, Node(data, Stat(0, self.zxid, self.zxid, session_id if ephemeral else 0)))
            case SetData(path, data, version):
                stat = self._at_version(path, version).stat
                changed = Stat(stat.version + 1, stat.czxid, self.zxid, stat.ephemeral_owner)
                self._nodes[path] = Node(data, changed)
                return changed
            case Delete(path, version):
                if path == "/":
                    raise _Refused("other")
                self._at_version(path, version)
                if self._children[path]:
                    raise _Refused("not_empty")
                self._remove(path)
            case Check(path, version):
                self._at_version(path, version)
        return None

    def _check_create(self, path: str) -> None:
        parent = self._nodes.get(_parent(path))
        if parent is None:
            raise _Refused("no_node")
        if path in self._nodes:
            raise _Refused("node_exists")
        if parent.stat.ephemeral_owner:
            raise _Refused("no_children_for_ephemerals")

    def _at_version(self, path: str, version: int) -> Node:
        node = self._nodes.get(path)
        if node is None:
            raise _Refused("no_node")
        if version not in (ANY_VERSION, node.stat.version):
            raise _Refused("bad_version")
        return node

    def _put(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        self._children[path] = set()
        self._children[_parent(path)].add(_name(path))
        if node.stat.ephemeral_owner:
            self._ephemerals[node.stat.ephemeral_owner].add(path)

    def _remove(self, path: str) -> None:
        owner = self._nodes.pop(path).stat.ephemeral_owner
        del self._children[path]
        self._children_created.pop(path, None)
        self._children[_parent(path)].discard(_name(path))
        if owner:
            self._ephemerals[owner].discard(path)

    def _restore(self, before: dict[str, Node | None]) -> None:
        """Restore the paths of a refused multi: children are removed first and created last."""
        for path in sorted(before, reverse=True):
            if before[path] is None and path in self._nodes:
                self._remove(path)
        for path in sorted(before):
            node = before[path]
            if node is None:
                continue
            now = self._nodes.get(path)
            if now is not None and now.stat.czxid == node.stat.czxid:
                self._nodes[path] = node
                continue
            if now is not None:  # deleted and created again; nothing below it is left by now
                self._remove(path)
            self._put(path, node)

    def _restore_counts(self, before: dict[str, int]) -> None:
        for path, count in before.items():
            self._children_created[path] = count
            if not count:
                del self._children_created[path]

    # -------------------------------------------------------------------------------------- watches

    def _fire(self, operations: Iterable[Operation]) -> list[Firing]:
        fired: list[Firing] = []
        for operation in operations:
            path = operation.path
            match operation:
                case Create():
                    fired += self._data_watches.pop(path, [])
                    fired += self._child_watches.pop(_parent(path), [])
                case SetData():
                    fired += self._data_watches.pop(path, [])
                case Delete():
                    fired += self._fire_deleted(path)
        return fired

    def _fire_deleted(self, path: str) -> list[Firing]:
        return [
            *self._data_watches.pop(path, []),
            *self._child_watches.pop(path, []),
            *self._child_watches.pop(_parent(path), []),
        ]

    # ------------------------------------------------------------------------------------ invariants

    def check_invariants(self) -> None:
        """Every node has its parent, every ephemeral node a live session, every watch a live session."""
        assert self._nodes.keys() == self._children.keys()
        ephemerals: dict[int, set[str]] = {session_id: set() for session_id in self._ephemerals}
        for path, node in self._nodes.items():
            assert path == "/" or _name(path) in self._children[_parent(path)], path
            assert max(node.stat.czxid, node.stat.mzxid) <= self.zxid, (path, node, self.zxid)
            if node.stat.ephemeral_owner:
                ephemerals[node.stat.ephemeral_owner].add(path)
        assert ephemerals == self._ephemerals
        assert self._children_created.keys() <= self._nodes.keys()
        assert sum(map(len, self._children.values())) == len(self._nodes) - 1
        for watches in (self._data_watches, self._child_watches):
            for path, watching in watches.items():
                assert watching, path
                assert all(watch.session_id in self._ephemerals for watch in watching), (path, watching)
        assert self._child_watches.keys() <= self._nodes.keys()


def _checked(path: str) -> str:
    if path != "/" and (not path.startswith("/") or path.endswith("/") or "//" in path):
        raise ValueError(f"path {path!r} is not a ZooKeeper path: it must look like /a/b")
    return path


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _ends(path: str) -> list[int]:
    """Where each ancestor of ``path``, and the path itself, ends in it."""
    if path == "/":
        return []
    return [*(at for at, letter in enumerate(path) if letter == "/" and at), len(path)]


def _divide(watches: Iterable[Firing], session_id: int) -> tuple[list[Firing], list[Firing]]:
    mine: list[Firing] = []
    others: list[Firing] = []
    for watch in watches:
        (mine if watch.session_id == session_id else others).append(watch)
    return mine, others
