"""Connections to other brokers: one each, opened when needed and again after a failure."""

import threading
from typing import Any

from sparklog.model.cluster import Broker
from sparklog.model.ids import BrokerId
from sparklog.network.connection import Connection

CONNECT_TIMEOUT_MS = 10_000


class PeerConnections:
    """``ports.Peers`` over TCP. A broker that moved to another address is connected to anew."""

    def __init__(self, *, client_id: str) -> None:
        self._client_id = client_id
        self._lock = threading.Lock()
        self._connections: dict[BrokerId, tuple[Broker, Connection]] = {}
        self._is_closed = False

    def call(self, broker: Broker, message: Any, *, timeout_ms: int) -> Any:
        connection = self._connection(broker, timeout_ms)
        try:
            return connection.call(message, timeout_ms=timeout_ms)
        except OSError:
            self._drop(broker.id, connection)
            raise

    def forget(self, broker_id: BrokerId) -> None:
        with self._lock:
            known = self._connections.pop(broker_id, None)
        if known is not None:
            known[1].close()

    def close(self) -> None:
        """End all calls, and refuse further ones."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        for broker_id in connections:
            self.forget(broker_id)

    def _connection(self, broker: Broker, timeout_ms: int) -> Connection:
        with self._lock:
            known = self._connections.get(broker.id)
        if known is not None:
            if known[0] == broker:
                return known[1]
            self.forget(broker.id)
        connection = Connection.open(
            broker.host,
            broker.port,
            client_id=self._client_id,
            timeout_ms=min(timeout_ms, CONNECT_TIMEOUT_MS),
        )
        with self._lock:
            if not self._is_closed:
                self._connections[broker.id] = (broker, connection)
                return connection
        connection.close()
        raise ConnectionError(f"broker {broker.id} is not called any more: this broker stops")

    def _drop(self, broker_id: BrokerId, connection: Connection) -> None:
        with self._lock:
            known = self._connections.get(broker_id)
            if known is not None and known[1] is connection:
                del self._connections[broker_id]
        connection.close()
