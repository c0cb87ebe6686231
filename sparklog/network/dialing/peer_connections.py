"""Connections to other brokers: one each, opened when needed and again after a failure."""

import threading
from typing import Any, Final

from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector
from sparklog.network.dialing.dial import is_refused

CONNECT_TIMEOUT_MS: Final = 10_000


class PeerConnections:
    """Requests to brokers over TCP. A broker that moved to another address is connected to anew."""

    def __init__(
        self,
        *,
        client_id: str,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        connector: Connector = IN_THE_CLEAR,
    ) -> None:
        self._client_id = client_id
        self._connector = connector
        self._connect_timeout_ms = connect_timeout_ms
        self._lock = threading.Lock()
        self._connections: dict[BrokerId, tuple[Node, Connection]] = {}
        self._is_closed = False

    def call(self, node: Node, message: Any, *, timeout_ms: int) -> Any:
        """Send ``message`` and wait for its response.

        Raises OSError if the broker cannot be reached or is silent, SparklogError if its answer is not
        understood.
        """
        connection = self._connection(node, timeout_ms)
        try:
            return connection.call(message, timeout_ms=timeout_ms)
        except OSError:
            self._drop(node.id, connection)
            raise

    def forget(self, broker_id: BrokerId) -> None:
        """Close the connection to this broker; a call that waits on it ends with OSError."""
        with self._lock:
            known = self._connections.pop(broker_id, None)
        if known is not None:
            known[1].close()

    def has_ended(self, node: Node, wait_ms: int) -> bool:
        """Whether this broker's process has ended, as its host shows: there is no connection on which it is
        merely silent, and another one is refused.

        The end of a connection alone does not show that, because a broker closes connections that were idle
        for long. The host of a process that is paused accepts, and a host that does not answer within
        ``wait_ms`` shows nothing.
        """
        with self._lock:
            known = self._connections.get(node.id)
        if known is not None and known[0] == node and not known[1].has_peer_left():
            return False
        return is_refused(node.host, node.port, wait_ms)

    def close(self) -> None:
        """End all calls, and refuse further ones."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        for broker_id in connections:
            self.forget(broker_id)

    def _connection(self, node: Node, timeout_ms: int) -> Connection:
        with self._lock:
            known = self._connections.get(node.id)
        if known is not None:
            if known[0] == node:
                return known[1]
            self.forget(node.id)
        connection = self._connector.open(
            node.host,
            node.port,
            client_id=self._client_id,
            timeout_ms=min(timeout_ms, self._connect_timeout_ms),
        )
        with self._lock:
            # Another thread may have connected meanwhile: the later connection stays.
            replaced = self._connections.get(node.id)
            if not self._is_closed:
                self._connections[node.id] = (node, connection)
        if replaced is not None:
            replaced[1].close()
        if not self._is_closed:
            return connection
        connection.close()
        raise ConnectionAbortedError(f"broker {node.id} is not called any more: this side stops")

    def _drop(self, broker_id: BrokerId, connection: Connection) -> None:
        with self._lock:
            known = self._connections.get(broker_id)
            if known is not None and known[1] is connection:
                del self._connections[broker_id]
        connection.close()
