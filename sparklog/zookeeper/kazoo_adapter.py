"""The ZooKeeper port over kazoo's client.

Kazoo uses one thread for its connection, and another for the callbacks of watches and session events. This
adapter adds exact failure semantics:

- A call waits for the connection, at most the operation timeout, and then for its answer. Reads are repeated
  after a reconnect; writes never, because the outcome of the first attempt is unknown.
- A lock orders submissions and session expiries, so that an operation with a ``generation`` is never sent in
  a later session.
- Watches and session events share one queue, so that callbacks run in the order of the events. The loss of
  the connection fires every watch, because ZooKeeper may have changed meanwhile.

After an expiry kazoo opens a new session. Owners of ephemeral nodes are notified by the ``expired`` event and
by ``generation``, and must create their nodes again.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
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

from sparklog.model.zookeeper import (
    ANY_VERSION,
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
from sparklog.zookeeper.multi_read import MultiRead

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

    def __init__(self) -> None:
        super().__init__()
        self._connection: socket.socket | None = None
        self._aborted = threading.Event()

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> socket.socket:
        if self._aborted.is_set():
            raise ConnectionAbortedError("the client is being closed")
        connection: socket.socket = super().create_connection(
            *args, timeout=min(timeout, CONNECT_TIMEOUT_MAX_S), **kwargs
        )
        self._connection = connection
        if self._aborted.is_set():
            self.abort()
        return connection

    def abort(self) -> None:
        """Wake all threads that wait for the server, and refuse later waits."""
        self._aborted.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):  # closed already: no thread waits for it
                self._connection.shutdown(socket.SHUT_RDWR)


class KazooZooKeeper:
    """A ZooKeeper session. ``connect_string`` is ``host:port,host:port/chroot``; the chroot is created."""

    def __init__(
        self,
        connect_string: str,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        *,
        operation_timeout_ms: int | None = None,
    ) -> None:
        self.connect_string = connect_string
        self._operation_timeout_s = (operation_timeout_ms or session_timeout_ms) / 1000
        self._handler = _Handler()
        self._client = self._new_client(session_timeout_ms)
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
                connection_retry=KazooRetry(
                    max_tries=-1, delay=RECONNECT_DELAY_S, max_delay=RECONNECT_DELAY_MAX_S
                ),
            )
        except ValueError as error:
            raise ZooKeeperError(
                f"zookeeper={self.connect_string!r} is not host:port[,host:port][/chroot] ({error})"
            ) from None

    # ------------------------------------------------------------------------------------------ life

    def start(self, timeout_ms: int) -> "KazooZooKeeper":
        """Connect and create the chroot; raises ConnectionLost with the address if no server answers."""
        self._is_started = True
        self._client.start_async()
        if not self._connected.wait(timeout_ms / 1000):
            self.close()
            raise ConnectionLost(
                f"no ZooKeeper answered at {self.connect_string} within {timeout_ms} ms: "
                f"check that it runs there and that the address is right"
            )
        try:
            self.ensure_path("/")
        except BaseException:
            self.close()
            raise
        return self

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
            data, stat = self._read(lambda: self._client.get_async(path))
        except NoNodeError:
            return None
        return Node(data, _stat(stat))

    def sync(self) -> None:
        self._read(lambda: self._client.sync_async("/"))

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Read ``READS_MAX`` nodes per request, all requests at once; an old server gets single reads."""
        chunks = [paths[start : start + READS_MAX] for start in range(0, len(paths), READS_MAX)]
        try:
            return [node for nodes in self._read_all(chunks, self._submit_reads) for node in nodes]
        except UnimplementedError:
            return [self.get(path) for path in paths]

    def _submit_reads(self, paths: Sequence[str]) -> Any:
        pending = self._handler.async_result()
        self._client._call(MultiRead(paths, self._client.chroot), pending)
        return pending

    def exists(self, path: str) -> Stat | None:
        stat = self._read(lambda: self._client.exists_async(path))
        return None if stat is None else _stat(stat)

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self._read(lambda: self._client.get_children_async(path)))
        except NoNodeError:
            return []

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        watch = self._once(callback)
        self._read(lambda: self._client.exists_async(path, watch=watch))

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        watch = self._once(callback)
        while True:
            try:
                self._read(lambda: self._client.get_children_async(path, watch=watch))
            except NoNodeError:
                if self._read(lambda: self._client.exists_async(path, watch=watch)) is not None:
                    continue  # created between the two questions
            return

    def _once(self, callback: Callable[[], None]) -> Callable[[object], None]:
        """A watch that calls ``callback`` only once, however often kazoo fires it."""
        pending = [callback]

        def fire(_event: object) -> None:  # only ever on the one callback thread
            if pending and not self._is_closed:
                pending.pop()()

        return fire

    # ---------------------------------------------------------------------------------------- writes

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        if not operations:
            return []
        results = self._write(lambda: self._submit_multi(operations), generation)
        for index, result in enumerate(results):
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
                    transaction.create(path, data, ephemeral=ephemeral, sequence=sequential)
                case SetData(path, data, version):
                    transaction.set_data(path, data, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        operation = Create(path, data, ephemeral)
        self._single(operation, lambda: self._client.create_async(path, data, ephemeral=ephemeral))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        operation = SetData(path, data, version)
        return _stat(self._single(operation, lambda: self._client.set_async(path, data, version)))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._single(Delete(path, version), lambda: self._client.delete_async(path, version))

    def ensure_path(self, path: str) -> None:
        self._read(lambda: self._client.ensure_path_async(path))  # repeating it changes nothing

    def _single(self, operation: Operation, submit: Callable[[], Any]) -> Any:
        try:
            return self._write(submit, None)
        except KazooException as error:
            raise OperationRefused(operation, _reason(error), repr(error)) from None

    # ------------------------------------------------------------------------------------- transport

    def _read(self, submit: Callable[[], Any]) -> Any:
        """Repeat a read until a server answers. Of kazoo's errors only NoNodeError is raised."""
        deadline = time.monotonic() + self._operation_timeout_s
        while True:
            try:
                return self._ask(submit, deadline, None)
            except ConnectionLost:
                if self._is_closed or time.monotonic() >= deadline:
                    raise
            except NoNodeError:
                raise
            except KazooException as error:
                raise ZooKeeperError(f"ZooKeeper at {self.connect_string}: {error!r}") from error

    def _read_all(self, questions: Sequence[Any], submit: Callable[[Any], Any]) -> list[Any]:
        """The answers to all questions; questions whose answers a reconnect lost are sent again."""
        deadline = time.monotonic() + self._operation_timeout_s
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
        return self._ask(submit, time.monotonic() + self._operation_timeout_s, generation)

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


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def _reason(error: KazooException) -> Reason:
    return _REASONS.get(type(error), "other")
