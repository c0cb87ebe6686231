"""The way to the controller: whoever holds ``/controller`` now, also if that changed a moment ago.

A call that waits on a controller which has been replaced ends at once, because the change of ``/controller``
closes its connection; the caller tries again and reaches the new one. (Kafka lets such a call run into its
time-out: partitions stood still for 36-40 s.)
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

from sparklog.core.controller.state.znodes import CONTROLLER, ControllerNode, decode_controller
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Changes, Loop
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.network.connection import Connection
from sparklog.zookeeper.node_watch import watch_node

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 3_000
"""A machine that is gone answers no connect, and a change of ``/controller`` cannot end that wait."""

SHARED_LANE = ""


def watch_controller(zookeeper: ZooKeeper, lead_to: Callable[[ControllerNode | None], None]) -> Loop:
    """Call ``lead_to`` with whoever holds ``/controller``, and again after every change; None if nobody
    does.
    """

    def look(node: Node | None) -> bool:
        try:
            lead_to(None if node is None else decode_controller(node.data))
        except SparklogError as error:
            # Another release wrote it. The next entry is read as soon as it is written.
            logger.error("the controller's entry in ZooKeeper is of no use: %s", error)
            lead_to(None)
        return True

    return watch_node(zookeeper, CONTROLLER, look)


class ControllerLink:
    """Connections to the active controller, opened anew whenever that changes: one per *lane*.

    The other side serves one request of a connection at a time. A creation of topics may take its time there,
    and what cannot wait behind it, such as changes of ISRs, goes on a lane of its own.
    """

    def __init__(self, *, client_id: str) -> None:
        self.changes = Changes()
        """Of the controller's address."""
        self._client_id = client_id
        self._changed = threading.Condition()
        self._address: tuple[str, int] | None = None
        self._generation = 0
        self._connections: dict[str, Connection] = {}
        self._closing = threading.Event()

    def call(self, message: Any, *, timeout_ms: int, lane: str = SHARED_LANE) -> Any:
        """Send ``message`` to the active controller; OSError if there is none, it went away or is silent.

        A call that ran into its time-out ends its lane's connection: the next one begins with a fresh one.
        """
        connection = self._connected(timeout_ms, lane)
        try:
            return connection.call(message, timeout_ms=timeout_ms)
        except OSError:
            self._drop(connection, lane)
            raise

    def lead_to(self, controller: ControllerNode | None) -> None:
        """From now on requests go to ``controller``; None if no controller is known."""
        address = None if controller is None else (controller.host, controller.port)
        with self._changed:
            if address == self._address:
                return
            logger.info("the controller is now at %s", address)
            self._address = address
            self._generation += 1
            connections, self._connections = self._connections, {}
            self._changed.notify_all()
        for connection in connections.values():
            connection.close()
        self.changes.happened()

    def close(self) -> None:
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def _connected(self, timeout_ms: int, lane: str) -> Connection:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing.is_set() or self._address is not None, timeout_ms / 1_000
            )
            if self._closing.is_set() or self._address is None:
                raise ConnectionError("no controller is elected: is an application with brokers running?")
            known = self._connections.get(lane)
            if known is not None and not known.has_peer_left():
                return known
            self._connections.pop(lane, None)
            host, port = self._address
            generation = self._generation
        if known is not None:  # the controller closes connections that were idle for long
            known.close()
        connect_ms = min(timeout_ms, CONNECT_TIMEOUT_MS)
        connection = Connection.open(host, port, client_id=self._client_id, timeout_ms=connect_ms)
        with self._changed:
            current = self._adopt(connection, generation, lane)
        if current is not connection:
            connection.close()
        if current is None:
            raise ConnectionError("the controller changed while it was being connected to")
        return current

    def _adopt(self, connection: Connection, generation: int, lane: str) -> Connection | None:
        """Share ``connection`` with the lane, unless it has another, or this leads to an old controller."""
        is_current = generation == self._generation and not self._closing.is_set()
        if lane not in self._connections and is_current:
            self._connections[lane] = connection
        return self._connections.get(lane)

    def _drop(self, connection: Connection, lane: str) -> None:
        with self._changed:
            if self._connections.get(lane) is connection:
                del self._connections[lane]
        connection.close()
