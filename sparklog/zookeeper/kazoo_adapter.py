"""The ZooKeeper port over kazoo's client.

Kazoo uses one thread for its connection, and another for the callbacks of watches and session events. This
adapter adds exact failure semantics:

- A call waits for the connection, at most the operation timeout, and then for its answer. Reads are repeated
  after a reconnect; writes never, because the outcome of the first attempt is unknown.
- A lock orders submissions and session expiries, so that an operation with a ``generation`` is never sent in
  a later session.
- Watches and session events share one queue, so that callbacks run in the order of the events. The loss of
  the connection fires every watch, because ZooKeeper may have changed meanwhile.

- A client that has a digest shows it at each connect, before anything else is sent. What the grants of a node
  do not allow ends in AccessRefused, in a multi as well (``sparklog.model.zookeeper_access``).

After an expiry kazoo opens a new session. Owners of ephemeral nodes are notified by the ``expired`` event and
by ``generation``, and must create their nodes again.
"""

import contextlib
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import Callback, KazooState
from kazoo.retry import KazooRetry

from sparklog.model.errors import ConfigError
from sparklog.model.zookeeper import (
    ANY_VERSION,
    AccessRefused,
    Check,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Node,
    Operation,
    OperationRefused,
    Reason,
    SessionEvent,
    SessionExpired,
    SetData,
    Stat,
    ZooKeeperError,
)
from sparklog.model.zookeeper_access import DIGEST, OPEN, OPEN_ACCESS, Acl, NodeAccess, hashed, written_down
from sparklog.zookeeper.granted_session import GrantedSession
from sparklog.zookeeper.kazoo_acls import to_kazoo
from sparklog.zookeeper.multi_read import MultiRead
from sparklog.zookeeper.quiet_log import kazoo_logger
from sparklog.zookeeper.tls_socket import has_unread, secured, shut_down, why_failed

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient

SESSION_TIMEOUT_MS: Final = 18_000
CONNECT_TIMEOUT_MAX_S: Final = 3.0
CLOSE_GRACE_S: Final = 2.0
READS_MAX: Final = 500
"""The most nodes of one request, whose answer then has some hundred kilobytes."""

RECONNECT_DELAY_S: Final = 0.05
RECONNECT_DELAY_MAX_S: Final = 1.0

_REASONS: Final[dict[type[KazooException], Reason]] = {
    NoNodeError: "no_node",
    NodeExistsError: "node_exists",
    BadVersionError: "bad_version",
    NotEmptyError: "not_empty",
    NoChildrenForEphemeralsError: "no_children_for_ephemerals",
}
_VERBS: Final[dict[type[Operation], str]] = {
    Create: "create", SetData: "change", Delete: "delete", Check: "read",
}  # fmt: skip
_EVENTS: Final[dict[str, SessionEvent]] = {
    KazooState.CONNECTED: "connected",
    KazooState.SUSPENDED: "suspended",
    KazooState.LOST: "expired",
}
_NOT_THE_CULPRIT: Final = (RolledBackError, RuntimeInconsistency)
"""The errors that ZooKeeper reports for the operations of a failed multi that were not the cause."""

logger: Final = logging.getLogger(__name__)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Kazoo's threads, with short connects and a way to close a connection that no longer answers."""

    def __init__(self, before_connect: Callable[[], None], tls: "TlsClient | None") -> None:
        super().__init__()
        self.problem = ""
        """Why the last handshake failed that did."""
        self._before_connect = before_connect
        self._tls = tls
        self._connection: socket.socket | None = None
        self._aborted = threading.Event()

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **kwargs: Any
    ) -> socket.socket:
        """``hostname`` is the name of the address in the connect string."""
        if self._aborted.is_set():
            raise ConnectionAbortedError("the client is being closed")
        self._note_refusal(hostname, address[1])
        self._before_connect()
        connection = self._connect(address, hostname, min(timeout, CONNECT_TIMEOUT_MAX_S))
        self._connection = connection
        if self._aborted.is_set():
            self.abort()
        return connection

    def _connect(self, address: tuple[str, int], hostname: str, timeout_s: float) -> socket.socket:
        connection: socket.socket = super().create_connection(address, timeout=timeout_s)
        if self._tls is None:
            return connection
        try:
            connection = secured(connection, self._tls, hostname, address[1])
        except OSError as error:
            self.problem = str(error)
            raise
        return connection

    def _note_refusal(self, host: str, port: int) -> None:
        """Look whether the server has refused this client after the last handshake."""
        failure = getattr(self._connection, "failure", None)
        if failure is not None:
            self.problem = why_failed(failure, host, port)

    def select(self, rlist: Sequence[Any], wlist: Any, xlist: Any, timeout: float | None = None) -> Any:
        """As select(2), but for what TLS has read already."""
        unread = [one for one in rlist if has_unread(one)]
        if not unread:
            return super().select(rlist, wlist, xlist, timeout)
        readable, writable, broken = super().select(rlist, wlist, xlist, 0)
        return [*readable, *(one for one in unread if one not in readable)], writable, broken

    def abort(self) -> None:
        """Wake all threads that wait for the server, and refuse later waits."""
        self._aborted.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):  # closed already: no thread waits for it
                shut_down(self._connection)


class KazooZooKeeper:
    """A ZooKeeper session. ``connect_string`` is ``host:port,host:port/chroot``; the chroot is created."""

    def __init__(
        self,
        connect_string: str,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        *,
        operation_timeout_ms: int | None = None,
        access: NodeAccess = OPEN_ACCESS,
        tls: "TlsClient | None" = None,
    ) -> None:
        self.connect_string = connect_string
        self._access = access
        self._identity = ""
        """``USER:HASH`` of the digest; empty without one."""
        self._operation_timeout_s = (operation_timeout_ms or session_timeout_ms) / 1000
        self._handler = _Handler(self._show_digest, tls)
        self._client = self._new_client(session_timeout_ms)
        self._granted = GrantedSession(self._client)
        self._client.add_listener(self._on_state)
        self._lock = threading.Lock()
        """Orders submissions and expiries; held only while a request is queued."""
        self._connected = threading.Event()
        self._listeners: list[Callable[[SessionEvent], None]] = []
        self._generation = 0
        self._session_id = 0
        self._is_started = False
        self._is_closed = False

    def _new_client(self, session_timeout_ms: int) -> KazooClient:
        try:
            return KazooClient(
                hosts=self.connect_string,
                timeout=session_timeout_ms / 1000,
                handler=self._handler,
                logger=kazoo_logger(),
                connection_retry=KazooRetry(
                    max_tries=-1, delay=RECONNECT_DELAY_S, max_delay=RECONNECT_DELAY_MAX_S
                ),
            )
        except ValueError as error:
            raise ZooKeeperError(
                f"zookeeper={self.connect_string!r} is not host:port[,host:port][/chroot] ({error})"
            ) from None

    # ------------------------------------------------------------------------------------------ life

    def start(self, timeout_ms: int, *, creates_chroot: bool = True) -> "KazooZooKeeper":
        """Connect, and create the chroot if it is missing.

        Raises ConnectionLost with the address if no server answers, AccessRefused if the chroot may not be
        created, ConfigError if the digest cannot be had.
        """
        self._take_digest()
        self._is_started = True
        self._client.start_async()
        if not self._connected.wait(timeout_ms / 1000):
            self.close()
            problem = self._handler.problem
            raise ConnectionLost(
                f"no ZooKeeper answered at {self.connect_string} within {timeout_ms} ms: "
                + (problem or "check that it runs there and that the address is right")
            )
        try:
            if creates_chroot:
                self._ensure_chroot()
        except BaseException:
            self.close()
            raise
        return self

    def _ensure_chroot(self) -> None:
        """Nodes above the chroot belong to nobody, because other clusters may have theirs below them."""
        chroot: str = self._client.chroot
        if not chroot or self.exists("/") is not None:
            return
        self._client.chroot = ""  # nothing else is sent before this client has started
        try:
            for path in _ancestors(chroot):
                self._ensure_node(path, OPEN)
        finally:
            self._client.chroot = chroot
        self._ensure_node("/", self._access.acl_of("/"))

    def _take_digest(self) -> None:
        if self._access.digest is not None:
            digest = self._access.digest()
            self._identity = hashed(digest)
            self._client.auth_data = {(DIGEST, digest)}

    def _show_digest(self) -> None:
        """Called before each connect. If the digest cannot be had now, the one from before is shown."""
        try:
            self._take_digest()
        except ConfigError as error:
            logger.warning("ZooKeeper is shown the user and password from before: %s", error)

    def close(self) -> None:
        """End the session. If ZooKeeper cannot be reached, the session expires later."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_started:
            return
        if not self._connected.is_set():
            self._handler.abort()
        grace = threading.Timer(CLOSE_GRACE_S, self._handler.abort)
        grace.daemon = True
        grace.start()
        try:
            self._client.stop()
            self._client.close()
        finally:
            grace.cancel()

    def __enter__(self) -> "KazooZooKeeper":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------- session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        return self._granted.timeout_ms

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Session id and password, which suffice to take over, or to end, this session."""
        client_id = self._client.client_id
        if client_id is None:
            raise ConnectionLost(f"not connected to ZooKeeper at {self.connect_string}")
        session_id, password = client_id
        return int(session_id), bytes(password)

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        with self._lock:
            self._listeners.append(callback)

    def _on_state(self, state: str) -> None:
        """Called by kazoo's connection thread on a change, before it sends requests in the new state."""
        if self._is_closed:
            return
        event = _EVENTS[state]
        with self._lock:
            self._take(event)
            listeners = tuple(self._listeners)
        logger.info("ZooKeeper session %#x at %s: %s", self._session_id, self.connect_string, event)
        for listener in listeners:
            self._handler.dispatch_callback(Callback("session", self._tell, (listener, event)))

    def _take(self, event: SessionEvent) -> None:
        if event == "connected":
            self._session_id = self._client.client_id[0]
            self._connected.set()
            return
        self._connected.clear()
        if event == "expired":
            self._session_id = 0
            self._generation += 1

    def _tell(self, listener: Callable[[SessionEvent], None], event: SessionEvent) -> None:
        if not self._is_closed:
            listener(event)

    # ----------------------------------------------------------------------------------------- reads

    def get(self, path: str) -> Node | None:
        try:
            data, stat = self._read(lambda: self._client.get_async(path), path)
        except NoNodeError:
            return None
        return Node(data, _stat(stat))

    def sync(self) -> None:
        self._read(lambda: self._client.sync_async("/"))

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Read ``READS_MAX`` nodes per request, all requests at once; an old server gets single reads."""
        chunks = [paths[start : start + READS_MAX] for start in range(0, len(paths), READS_MAX)]
        try:
            found = [node for nodes in self._read_all(chunks, self._submit_reads) for node in nodes]
        except UnimplementedError:
            return [self.get(path) for path in paths]
        for path, node in zip(paths, found, strict=True):
            if isinstance(node, NoAuthError):
                raise self._refused(f"read {path}")
            if isinstance(node, KazooException):
                raise ZooKeeperError(f"ZooKeeper at {self.connect_string}: {path}: {node!r}")
        return found

    def _submit_reads(self, paths: Sequence[str]) -> Any:
        pending = self._handler.async_result()
        self._client._call(MultiRead(paths, self._client.chroot), pending)
        return pending

    def exists(self, path: str) -> Stat | None:
        stat = self._read(lambda: self._client.exists_async(path), path)
        return None if stat is None else _stat(stat)

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self._read(lambda: self._client.get_children_async(path), path))
        except NoNodeError:
            return []

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        with self._once(callback) as watch:
            self._read(lambda: self._client.exists_async(path, watch=watch), path)

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        with self._once(callback) as watch:
            while True:
                try:
                    self._read(lambda: self._client.get_children_async(path, watch=watch), path)
                except NoNodeError:
                    if self._read(lambda: self._client.exists_async(path, watch=watch), path) is not None:
                        continue  # created between the two questions
                return

    @contextlib.contextmanager
    def _once(self, callback: Callable[[], None]) -> Iterator[Callable[[object], None]]:
        """A watch that calls ``callback`` only once, however often kazoo fires it, and not if it is refused:
        kazoo keeps that one, too.
        """
        pending = deque([callback])

        def fire(_event: object) -> None:
            if self._is_closed:
                return
            try:
                call = pending.pop()
            except IndexError:  # it has fired, or was refused
                return
            call()

        try:
            yield fire
        except AccessRefused:
            pending.clear()
            raise

    # ---------------------------------------------------------------------------------------- writes

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        if not operations:
            return []
        results = self._write(lambda: self._submit_multi(operations), generation)
        for index, result in enumerate(results):
            if isinstance(result, NoAuthError):
                raise self._refused(_in_words(operations[index]))
            if isinstance(result, KazooException) and not isinstance(result, _NOT_THE_CULPRIT):
                raise MultiFailed(index, operations[index], _reason(result), repr(result))
        return [
            _stat(result) if isinstance(operation, SetData) else None
            for operation, result in zip(operations, results, strict=True)
        ]

    def _submit_multi(self, operations: Sequence[Operation]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral, sequential):
                    transaction.create(path, data, self._acls_of(path), ephemeral, sequential)
                case SetData(path, data, version):
                    transaction.set_data(path, data, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        operation = Create(path, data, ephemeral)
        acls = self._acls_of(path)
        self._single(operation, lambda: self._client.create_async(path, data, acls, ephemeral))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        operation = SetData(path, data, version)
        return _stat(self._single(operation, lambda: self._client.set_async(path, data, version)))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._single(Delete(path, version), lambda: self._client.delete_async(path, version))

    def ensure_path(self, path: str) -> None:
        if self.exists(path) is None:
            for step in _ancestors(path):
                self._ensure_node(step, self._access.acl_of(step))
            self._ensure_node(path, self._access.acl_of(path))

    def _ensure_node(self, path: str, acl: Acl) -> None:
        """Create the node if it is missing and its parent is there; repeating it changes nothing."""
        self._read(lambda: self._client.ensure_path_async(path, self._kazoos(acl)), path, "create")

    def _acls_of(self, path: str) -> list[Any]:
        return self._kazoos(self._access.acl_of(path))

    def _kazoos(self, acl: Acl) -> list[Any]:
        return to_kazoo(written_down(acl, self._identity))

    def _single(self, operation: Operation, submit: Callable[[], Any]) -> Any:
        try:
            return self._write(submit, None)
        except NoAuthError:
            raise self._refused(_in_words(operation)) from None
        except KazooException as error:
            raise OperationRefused(operation, _reason(error), repr(error)) from None

    # ------------------------------------------------------------------------------------- transport

    def _read(self, submit: Callable[[], Any], path: str = "/", verb: str = "read") -> Any:
        """Repeat a read until a server answers. Of kazoo's errors only NoNodeError is raised."""
        deadline = self._deadline()
        while True:
            try:
                return self._ask(submit, deadline, None)
            except ConnectionLost:
                if self._is_closed or time.monotonic() >= deadline:
                    raise
            except NoNodeError:
                raise
            except NoAuthError:
                raise self._refused(f"{verb} {path}") from None
            except KazooException as error:
                raise ZooKeeperError(f"ZooKeeper at {self.connect_string}: {error!r}") from error

    def _read_all(self, questions: Sequence[Any], submit: Callable[[Any], Any]) -> list[Any]:
        """The answers to all questions; questions whose answers a reconnect lost are sent again."""
        deadline = self._deadline()
        pending = [self._submit(partial(submit, question), deadline, None) for question in questions]
        answers = []
        for question, one in zip(questions, pending, strict=True):
            try:
                answers.append(self._await(one, deadline))
            except UnimplementedError:
                raise
            except (ConnectionLost, KazooException):
                answers.append(self._read(partial(submit, question)))
        return answers

    def _write(self, submit: Callable[[], Any], generation: int | None) -> Any:
        """Submit a write once; never repeats it."""
        return self._ask(submit, self._deadline(), generation)

    def _deadline(self) -> float:
        return time.monotonic() + self._operation_timeout_s

    def _ask(self, submit: Callable[[], Any], deadline: float, generation: int | None) -> Any:
        return self._await(self._submit(submit, deadline, generation), deadline)

    def _await(self, pending: Any, deadline: float) -> Any:
        try:
            return pending.get(timeout=max(0.0, deadline - time.monotonic()))
        except (ConnectionLoss, OperationTimeoutError, KazooTimeoutError) as error:
            raise ConnectionLost(
                f"no answer from ZooKeeper at {self.connect_string} ({type(error).__name__}): "
                f"whether the operation happened is unknown"
            ) from None
        except ConnectionClosedError:
            raise SessionExpired(f"this ZooKeeper client ({self.connect_string}) was closed") from None
        except SessionExpiredError:
            raise SessionExpired(f"the ZooKeeper session at {self.connect_string} has expired") from None

    def _submit(self, submit: Callable[[], Any], deadline: float, generation: int | None) -> Any:
        if not self._is_closed and not self._connected.wait(max(0.0, deadline - time.monotonic())):
            raise ConnectionLost(
                f"no connection to ZooKeeper at {self.connect_string} for "
                f"{self._operation_timeout_s:g} s: nothing was sent"
            )
        with self._lock:
            if self._is_closed:
                raise SessionExpired(f"this ZooKeeper client ({self.connect_string}) was closed")
            if generation is not None and generation != self._generation:
                raise SessionExpired(
                    f"the ZooKeeper session of generation {generation} is over; "
                    f"this is generation {self._generation}"
                )
            return submit()

    def _refused(self, what: str) -> AccessRefused:
        if not self._identity:
            return AccessRefused(
                f"ZooKeeper at {self.connect_string} does not let strangers {what}: the node is closed to "
                "all but a user with a password; set zookeeper.digest"
            )
        user = self._identity.partition(":")[0]
        return AccessRefused(
            f"ZooKeeper at {self.connect_string} does not let user {user!r} {what}: the node belongs "
            "to another user, or to the same with another password; correct zookeeper.digest"
        )


def _ancestors(path: str) -> list[str]:
    """Those of a node below the root, highest first."""
    return [path[:at] for at, letter in enumerate(path) if letter == "/" and at]


def _in_words(operation: Operation) -> str:
    return f"{_VERBS[type(operation)]} {operation.path}"


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def _reason(error: KazooException) -> Reason:
    return _REASONS.get(type(error), "other")
