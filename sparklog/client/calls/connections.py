"""Connections to brokers, lent to one user at a time.

A broker works on one request per connection and answers in order, so users that share a connection wait for
each other's long polls. A user therefore borrows a connection for itself, and gives it back when no reply is
outstanding. After an error, or with a reply that will not be read, the user calls ``discard``.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.errors import ClientClosed
from sparklog.model.time import Clock, MonotonicMs

IDLE_PER_BROKER_MAX: Final = 8
IDLE_MAX_MS: Final = 540_000
"""Brokers close connections after ten idle minutes; ours go a minute earlier, as Kafka's clients' do."""


class PendingReply(Protocol):
    """A reply that is on its way."""

    def result(self, timeout_ms: int) -> Any: ...


class BrokerConnection(Protocol):
    """What the client needs of ``network.connection.Connection``; one thread uses it at a time."""

    def send(self, message: Any, version: int | None = None) -> PendingReply: ...

    def send_one_way(self, message: Any, version: int | None = None) -> None: ...

    def call(self, message: Any, *, version: int | None = None, timeout_ms: int) -> Any: ...

    def version_for(self, api_key: int) -> int: ...

    def close(self) -> None:
        """From any thread; a user that waits for a reply gets a ConnectionError."""


Connect = Callable[[Endpoint, int], BrokerConnection]
"""Opens a connection within so many milliseconds, or raises OSError."""


@dataclass(slots=True)
class _Idle:
    connection: BrokerConnection
    since_ms: MonotonicMs


class ConnectionPool:
    """Safe to use from any thread; its lock is held for look-ups only."""

    def __init__(self, connect: Connect, clock: Clock) -> None:
        self._connect = connect
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: dict[Endpoint, list[_Idle]] = {}
        self._lent: set[BrokerConnection] = set()
        self._is_closed = False

    def borrow(self, endpoint: Endpoint, timeout_ms: int) -> BrokerConnection:
        """An idle connection, or a new one; OSError if none can be made."""
        stale: list[BrokerConnection] = []
        with self._lock:
            self._refuse_if_closed()
            connection = self._take_idle(endpoint, stale)
            if connection is not None:
                self._lent.add(connection)
        for old in stale:
            old.close()
        return connection or self._open(endpoint, timeout_ms)

    def give_back(self, endpoint: Endpoint, connection: BrokerConnection) -> None:
        """Return a connection on which every reply has been read."""
        with self._lock:
            self._lent.discard(connection)
            idle = self._idle.setdefault(endpoint, [])
            keep = not self._is_closed and len(idle) < IDLE_PER_BROKER_MAX
            if keep:
                idle.append(_Idle(connection, self._clock.monotonic_ms()))
        if not keep:
            connection.close()

    def discard(self, connection: BrokerConnection) -> None:
        with self._lock:
            self._lent.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close every connection, lent ones too: their users get a ConnectionError."""
        with self._lock:
            self._is_closed = True
            connections = [*self._lent, *(idle.connection for kept in self._idle.values() for idle in kept)]
            self._lent.clear()
            self._idle.clear()
        for connection in connections:
            connection.close()

    def _take_idle(self, endpoint: Endpoint, stale: list[BrokerConnection]) -> BrokerConnection | None:
        idle = self._idle.get(endpoint, [])
        oldest_ms = self._clock.monotonic_ms() - IDLE_MAX_MS
        while idle:
            newest = idle.pop()
            if newest.since_ms >= oldest_ms:
                return newest.connection
            stale.append(newest.connection)
        return None

    def _open(self, endpoint: Endpoint, timeout_ms: int) -> BrokerConnection:
        connection = self._connect(endpoint, timeout_ms)
        with self._lock:
            if not self._is_closed:
                self._lent.add(connection)
                return connection
        connection.close()
        raise ClientClosed(f"the client was closed while it was connecting to {endpoint}")

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise ClientClosed("the client is closed")
