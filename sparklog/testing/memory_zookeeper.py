"""ZooKeeper for the threads of one process: the port over a tree in memory.

``MemoryZooKeeperServer`` guards one tree with a lock, and its ``client()`` is the ``ZooKeeper`` port over it:
callbacks run on a thread of the client's own, in the order in which things happened, as kazoo's do. A call
waits for the connection, at most the operation timeout, and is then done at once, or refused.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from sparklog.model.zookeeper import (
    ANY_VERSION,
    AccessRefused,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Node,
    Operation,
    OperationRefused,
    SessionEvent,
    SessionExpired,
    SetData,
    Stat,
    Unread,
    ZooKeeperError,
)
from sparklog.model.zookeeper_access import OPEN_ACCESS, Acl, NodeAccess
from sparklog.testing.zookeeper_tree import Applied, ZooKeeperTree
from sparklog.testing.zookeeper_watches import Firing

__all__ = ["Applied", "Firing", "MemoryZooKeeper", "MemoryZooKeeperServer", "ZooKeeperTree"]

OPERATION_TIMEOUT_MS: Final = 18_000

logger: Final = logging.getLogger(__name__)


class MemoryZooKeeperServer:
    """One tree that the threads of a process share."""

    def __init__(self, tree: ZooKeeperTree | None = None) -> None:
        self.tree = ZooKeeperTree() if tree is None else tree
        self.changed = threading.Condition()
        """Guards the tree, and the connection of every client."""
        self.clients: dict[int, MemoryZooKeeper] = {}
        """The client of each session."""

    def client(
        self, *, operation_timeout_ms: int = OPERATION_TIMEOUT_MS, access: NodeAccess = OPEN_ACCESS
    ) -> "MemoryZooKeeper":
        """A client with a session of its own, connected."""
        return MemoryZooKeeper(self, operation_timeout_ms=operation_timeout_ms, access=access).start()


class MemoryZooKeeper:
    """A session with a server in this process: the ``ZooKeeperAdmin`` port.

    Two lines of fate for tests: ``lose_connection`` and ``restore_connection``, and ``expire_session``.
    """

    def __init__(
        self,
        server: MemoryZooKeeperServer,
        *,
        operation_timeout_ms: int = OPERATION_TIMEOUT_MS,
        access: NodeAccess = OPEN_ACCESS,
    ) -> None:
        self._access = access
        self._tree = server.tree
        self._changed = server.changed
        self._clients = server.clients
        self._operation_timeout_s = operation_timeout_ms / 1000
        self._listeners: list[Callable[[SessionEvent], None]] = []
        self._callbacks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._generation = 0
        self._session_id = 0
        self._is_connected = False
        self._is_closed = False
        self._dispatcher = threading.Thread(target=self._dispatch, name="memory-zookeeper", daemon=True)

    def start(self, timeout_ms: int = 0, *, creates_chroot: bool = True) -> "MemoryZooKeeper":
        """Begin the session at once; the parameters are kazoo's, and not used: there is no chroot."""
        with self._changed:
            if self._is_closed:
                raise SessionExpired("this ZooKeeper client was closed")
            self._open()
            self._dispatcher.start()
            self._tell("connected")
        return self

    def __enter__(self) -> "MemoryZooKeeper":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------- session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        """Sessions end by ``expire`` alone."""
        return 0

    @property
    def generation(self) -> int:
        return self._generation

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        with self._changed:
            self._listeners.append(callback)

    def close(self) -> None:
        """End the session. Returns when no callback runs any more."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            is_started = self._session_id != 0
            if self._tree.is_open(self._session_id):
                self._deliver(self._tree.close_session(self._session_id))
            self._clients.pop(self._session_id, None)
            self._changed.notify_all()
        self._callbacks.put(None)
        if is_started and threading.current_thread() is not self._dispatcher:
            self._dispatcher.join()

    def lose_connection(self) -> None:
        """ZooKeeper goes silent for this client; its session lives on. Calls wait, then ConnectionLost."""
        with self._changed:
            if not self._is_connected:
                return
            self._is_connected = False
            self._tell("suspended")
            self._deliver(self._tree.lose_watches(self._session_id))

    def restore_connection(self) -> None:
        """ZooKeeper answers again: to the same session, or to a new one if that expired meanwhile."""
        with self._changed:
            if self._is_connected or self._is_closed or not self._session_id:
                return
            if not self._tree.is_open(self._session_id):
                self._forget()
                self._open()
            self._is_connected = True
            self._tell("connected")
            self._changed.notify_all()

    def expire_session(self) -> None:
        """ZooKeeper ends the session. A connected client is notified now, another once it reconnects."""
        was_connected = self._is_connected
        self.lose_connection()
        with self._changed:
            if self._tree.is_open(self._session_id):
                self._deliver(self._tree.expire_session(self._session_id))
        if was_connected:
            self.restore_connection()

    def _open(self) -> None:
        self._session_id = self._tree.open_session(self._access)
        self._clients[self._session_id] = self
        self._is_connected = True

    def _forget(self) -> None:
        del self._clients[self._session_id]
        self._session_id = 0
        self._generation += 1
        self._tell("expired")

    # ------------------------------------------------------------------------------------- callbacks

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            self._callbacks.put(partial(listener, event))

    def _deliver(self, fired: Iterable[Firing]) -> None:
        """Queue the callbacks of watches, each with the client that set it. Called under the lock."""
        for firing in fired:
            callback = firing.key
            assert callable(callback), firing
            self._clients[firing.session_id]._callbacks.put(callback)

    def _dispatch(self) -> None:
        while (callback := self._callbacks.get()) is not None:
            if self._is_closed:
                continue
            try:
                callback()
            except Exception:  # a bug in one callback must not keep the others from running
                logger.exception("a ZooKeeper callback failed")

    # ----------------------------------------------------------------------------------------- reads

    def sync(self) -> None:
        with self._changed:
            self._ready()  # there is one server, which lags none

    def get(self, path: str) -> Node | None:
        with self._changed:
            self._ready_to_read(path)
            return self._tree.get(path)

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.get(path) for path in paths]

    def exists(self, path: str) -> Stat | None:
        with self._changed:
            self._ready_to_read(path)
            return self._tree.exists(path)

    def children(self, path: str) -> list[str]:
        with self._changed:
            self._ready_to_read(path)
            return self._tree.children(path)

    def children_many(self, paths: Sequence[str]) -> list[list[str] | Unread]:
        return [self._children_of(path) for path in paths]

    def _children_of(self, path: str) -> list[str] | Unread:
        try:
            return Unread.MISSING if self.exists(path) is None else self.children(path)
        except AccessRefused:
            return Unread.CLOSED

    @property
    def identity(self) -> str:
        return self._tree.identity(self._session_id)

    def acls(self, paths: Sequence[str]) -> list[Acl | Unread]:
        with self._changed:
            self._ready()
            return [self._tree.acl(self._session_id, path) for path in paths]

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        with self._changed:
            self._ready_to_read(path)
            self._tree.watch_data(self._session_id, path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        with self._changed:
            self._ready_to_read(path)
            self._tree.watch_children(self._session_id, path, callback)

    # ---------------------------------------------------------------------------------------- writes

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        if not operations:
            return []
        with self._changed:
            self._ready()
            if generation is not None and generation != self._generation:
                raise SessionExpired(
                    f"the ZooKeeper session of generation {generation} is over; "
                    f"this is generation {self._generation}"
                )
            applied = self._tree.apply(self._session_id, operations)
            self._deliver(applied.fired)
            return applied.stats

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        self._single(Create(path, data, ephemeral))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self._single(SetData(path, data, version))
        assert stat is not None
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._single(Delete(path, version))

    def set_acls(self, changes: Mapping[str, Acl]) -> dict[str, Unread | None]:
        with self._changed:
            self._ready()
            return {path: self._tree.set_acl(self._session_id, path, acl) for path, acl in changes.items()}

    def ensure_path(self, path: str) -> None:
        with self._changed:
            self._ready()
            try:
                self._deliver(self._tree.ensure_path(self._session_id, path))
            except MultiFailed as failed:  # below an ephemeral node: nothing was created before that
                raise ZooKeeperError(f"{path} cannot be ensured: {failed}") from None

    def _single(self, operation: Operation) -> Stat | None:
        try:
            return self.multi([operation])[0]
        except MultiFailed as failed:
            raise OperationRefused(operation, failed.reason) from None

    def _ready_to_read(self, path: str) -> None:
        self._ready()
        self._tree.check_read(self._session_id, path)

    def _ready(self) -> None:
        """Wait until there is a connection. Called under the lock."""
        if threading.current_thread() is self._dispatcher:
            raise ZooKeeperError(
                "a ZooKeeper callback called ZooKeeper: with a real one it would wait for itself; "
                "let it put something into its owner's queue"
            )
        deadline = time.monotonic() + self._operation_timeout_s
        while not self._is_connected and not self._is_closed:
            if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                raise ConnectionLost(
                    f"no connection to ZooKeeper for {self._operation_timeout_s:g} s: nothing was sent"
                )
        if self._is_closed:
            raise SessionExpired("this ZooKeeper client was closed")
