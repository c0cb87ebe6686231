"""ZooKeeper's tree as a pure state machine, for simulations and for clients in memory.

``ZooKeeperTree`` is what a server holds: nodes, versions, transaction ids, sessions with their ephemeral
nodes, one-shot watches. It starts no thread, reads no clock and makes no callbacks: a write returns the
watches that it fired, and its caller delivers them. The same calls give the same answers,
session ids and transaction ids included, so that a simulation can be replayed from its seed. Answers,
refusals and firings are compared with a real server's in
``tests/testing/test_memory_zookeeper_against_real.py``.

A session shows ``USER:PASSWORD`` or nothing, and chooses the grants of the nodes that it creates. Reads take
no session here: whoever reads for one asks ``check_read`` before.

What a real server does and this does not: forget (it has no disk), refuse requests above 1 MiB, expire a
session by itself. A session ends only by a call.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.model.zookeeper import (
    ANY_VERSION,
    AccessRefused,
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
    Unread,
)
from sparklog.model.zookeeper_access import OPEN, OPEN_ACCESS, Acl, NodeAccess, Permissions, written_down
from sparklog.testing.zookeeper_grants import STRANGER, Shown
from sparklog.testing.zookeeper_watches import Firing, Watches

FIRST_SESSION_ID: Final = 0x1000_0000_0000_0000


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
    _acls: dict[str, Acl] = field(default_factory=lambda: {"/": OPEN})
    _shown: dict[int, Shown] = field(default_factory=dict)
    """Who each session is."""
    _ephemerals: dict[int, set[str]] = field(default_factory=dict)
    """The ephemeral nodes of every session that is alive."""
    _data_watches: Watches = field(default_factory=Watches)
    _child_watches: Watches = field(default_factory=Watches)
    _sessions_opened: int = 0

    # ------------------------------------------------------------------------------------- sessions

    def open_session(self, access: NodeAccess = OPEN_ACCESS) -> int:
        """A new session's id."""
        self.zxid += 1
        self._sessions_opened += 1
        session_id = FIRST_SESSION_ID + self._sessions_opened
        self._ephemerals[session_id] = set()
        self._shown[session_id] = Shown.by(access)
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
        return [*self._data_watches.lose(session_id), *self._child_watches.lose(session_id)]

    def _end(self, session_id: int) -> list[Firing]:
        self._require(session_id)
        self.zxid += 1
        fired: list[Firing] = []
        for path in sorted(self._ephemerals[session_id]):
            acl = self._acls[path]
            self._remove(path)
            fired += self._fire_deleted(path, acl)
        del self._ephemerals[session_id], self._shown[session_id]
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
        return ZooKeeperTree(
            self.zxid,
            dict(self._nodes),
            children,
            Counter(self._children_created),
            dict(self._acls),
            self._shown,
        )

    # --------------------------------------------------------------------------------------- grants

    def check_read(self, session_id: int, path: str) -> None:
        """Raises AccessRefused if the session may not read the node. A missing one is nobody's."""
        if path in self._nodes:
            self._check(session_id, path, Permissions.READ)

    def acl(self, session_id: int, path: str) -> Acl | Unread:
        """The grants, in which only those who may change them see the hashes of passwords."""
        if path not in self._nodes:
            return Unread.MISSING
        shown, acl = self._shown_by(session_id), self._acls[path]
        if shown.may(acl, Permissions.ADMIN):
            return acl
        return shown.masked(acl) if shown.may(acl, Permissions.READ) else Unread.CLOSED

    def set_acl(self, session_id: int, path: str, acl: Acl) -> Unread | None:
        """Give a node its grants; None if that was done."""
        self._require(session_id)
        self.zxid += 1
        shown = self._shown_by(session_id)
        if path not in self._nodes:
            return Unread.MISSING
        if not shown.may(self._acls[path], Permissions.ADMIN):
            return Unread.CLOSED
        self._acls[path] = written_down(acl, shown.identity)
        return None

    def identity(self, session_id: int) -> str:
        """Who the session is: ``USER:HASH``, and empty for a stranger."""
        return self._shown_by(session_id).identity

    def _shown_by(self, session_id: int) -> Shown:
        return self._shown.get(session_id, STRANGER)

    def _check(self, session_id: int, path: str, permission: Permissions) -> None:
        if not self._shown_by(session_id).may(self._acls[path], permission):
            raise AccessRefused(f"session {session_id:#x} lacks {permission.name} at {path}")

    def watch_data(self, session_id: int, path: str, key: Hashable) -> None:
        """Fire ``key`` once when the node is created, changed or deleted."""
        self._require(session_id)
        self._data_watches.add(_checked(path), Firing(session_id, key))

    def watch_children(self, session_id: int, path: str, key: Hashable) -> None:
        """Fire ``key`` once when a child, or the node itself, is created or deleted."""
        self._require(session_id)
        watches = self._child_watches if _checked(path) in self._nodes else self._data_watches
        watches.add(path, Firing(session_id, key))

    # --------------------------------------------------------------------------------------- writes

    def apply(self, session_id: int, operations: Sequence[Operation]) -> Applied:
        """All of the operations in one transaction, or MultiFailed with the first one that is refused."""
        self._require(session_id)
        if not operations:
            return Applied(self.zxid, [], [])
        before = {_checked(operation.path): self.get(operation.path) for operation in operations}
        acls_before = {path: self._acls.get(path, OPEN) for path in before}
        counts_before = {path: self._children_created[path] for one in before for path in (one, _parent(one))}
        applied: list[Operation] = []
        stats: list[Stat | None] = []
        self.zxid += 1
        for index, asked in enumerate(operations):
            try:
                operation = self._numbered(asked)
                before.setdefault(operation.path, self.get(operation.path))
                stats.append(self._apply(session_id, operation))
            except (_Refused, AccessRefused) as refused:
                self._restore(before)
                self._acls.update((path, acls_before[path]) for path in acls_before if path in self._nodes)
                self._restore_counts(counts_before)
                if isinstance(refused, AccessRefused):
                    raise
                raise MultiFailed(index, asked, refused.reason) from None
            applied.append(operation)
        return Applied(self.zxid, stats, self._fire(applied, acls_before))

    def ensure_path(self, session_id: int, path: str) -> list[Firing]:
        """Create the persistent node and its parents where they are missing, a transaction each."""
        fired: list[Firing] = []
        if _checked(path) in self._nodes:
            self.check_read(session_id, path)
            return fired
        for end in _ends(path):
            self.check_read(session_id, path[:end])
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
                self._check_create(session_id, path)
                self._children_created[_parent(path)] += 1
                self._put(path, Node(data, Stat(0, self.zxid, self.zxid, session_id if ephemeral else 0)))
                self._acls[path] = self._shown_by(session_id).acl_of(path)
            case SetData(path, data, version):
                stat = self._at_version(session_id, path, version, Permissions.WRITE).stat
                changed = Stat(stat.version + 1, stat.czxid, self.zxid, stat.ephemeral_owner)
                self._nodes[path] = Node(data, changed)
                return changed
            case Delete(path, version):
                if path == "/":
                    raise _Refused("other")
                self._check_delete(session_id, path)
                self._at_version(session_id, path, version)
                if self._children[path]:
                    raise _Refused("not_empty")
                self._remove(path)
            case Check(path, version):
                self._at_version(session_id, path, version, Permissions.READ)
        return None

    def _check_create(self, session_id: int, path: str) -> None:
        parent = self._nodes.get(_parent(path))
        if parent is None:
            raise _Refused("no_node")
        self._check(session_id, _parent(path), Permissions.CREATE)
        if path in self._nodes:
            raise _Refused("node_exists")
        if parent.stat.ephemeral_owner:
            raise _Refused("no_children_for_ephemerals")

    def _check_delete(self, session_id: int, path: str) -> None:
        if _parent(path) not in self._nodes:
            raise _Refused("no_node")
        self._check(session_id, _parent(path), Permissions.DELETE)

    def _at_version(
        self, session_id: int, path: str, version: int, needed: Permissions | None = None
    ) -> Node:
        """The node at this version; the client ``needed`` a permission to use it so."""
        node = self._nodes.get(path)
        if node is None:
            raise _Refused("no_node")
        if needed is not None:
            self._check(session_id, path, needed)
        if version not in (ANY_VERSION, node.stat.version):
            raise _Refused("bad_version")
        return node

    def _put(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        self._acls[path] = OPEN
        self._children[path] = set()
        self._children[_parent(path)].add(_name(path))
        if node.stat.ephemeral_owner:
            self._ephemerals[node.stat.ephemeral_owner].add(path)

    def _remove(self, path: str) -> None:
        owner = self._nodes.pop(path).stat.ephemeral_owner
        del self._children[path], self._acls[path]
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

    def _fire(self, operations: Iterable[Operation], acls: Mapping[str, Acl]) -> list[Firing]:
        """``acls``: those of nodes that are gone, from before."""
        fired: list[Firing] = []
        for operation in operations:
            path = operation.path
            acl = self._acls.get(path) or acls.get(path, OPEN)
            match operation:
                case Create():
                    fired += self._fire_at(self._data_watches, path, acl)
                    fired += self._fire_at_parent(path)
                case SetData():
                    fired += self._fire_at(self._data_watches, path, acl)
                case Delete():
                    fired += self._fire_deleted(path, acl)
        return fired

    def _fire_deleted(self, path: str, acl: Acl) -> list[Firing]:
        """``acl``: the grants that the node had."""
        may = self._judge(acl)
        fired = [*self._data_watches.fire(path, may), *self._child_watches.fire(path, may)]
        sessions = {one.session_id for one in fired}
        return [
            *fired,
            *self._data_watches.recall(path, sessions),
            *self._child_watches.recall(path, sessions),
            *self._fire_at_parent(path),
        ]

    def _fire_at_parent(self, path: str) -> list[Firing]:
        parent = _parent(path)
        return self._fire_at(self._child_watches, parent, self._acls.get(parent, OPEN))

    def _fire_at(self, watches: Watches, path: str, acl: Acl) -> list[Firing]:
        fired = watches.fire(path, self._judge(acl))
        return [*fired, *watches.recall(path, {one.session_id for one in fired})]

    def _judge(self, acl: Acl) -> Callable[[int], bool]:
        """Whether a session may know of a node with these grants."""
        return lambda session_id: self._shown_by(session_id).may(acl, Permissions.READ)

    # ------------------------------------------------------------------------------------ invariants

    def check_invariants(self) -> None:
        """Every node has its parent, every ephemeral node a live session, every watch a live session."""
        assert self._nodes.keys() == self._children.keys() == self._acls.keys()
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
            assert watches.sessions() <= self._ephemerals.keys()
        assert self._child_watches.paths() <= self._nodes.keys()


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
