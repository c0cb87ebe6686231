"""Connections to the active controller, which is the holder of ``/controller`` in ZooKeeper.

A change of ``/controller`` closes the connections to the previous controller. A pending call therefore fails
at once, and the caller retries with the new controller. (Kafka lets such a call time out: partitions stood
still for 36-40 s.)
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from sparklog.core.controller.state.znodes import CONTROLLER, ControllerNode, decode_controller
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Changes, Loop
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector
from sparklog.zookeeper.node_watch import watch_node

logger: Final = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 3_000
"""A dead host does not answer a connect, and a change of ``/controller`` cannot end that wait."""

RETRY_MS = 200
"""How long to wait for another controller before one that cannot be connected to is tried again."""

SHARED_LANE = ""


class NotSentError(ConnectionError):
    """No controller is elected, or the elected one cannot be connected to; nothing was sent."""


def watch_controller(zookeeper: ZooKeeper, lead_to: Callable[[ControllerNode | None], None]) -> Loop:
    """Call ``lead_to`` with the holder of ``/controller``, or None, now and after every change."""

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
    """One connection per *lane* to the active controller, reopened whenever the controller changes.

    The controller serves one request of a connection at a time. Urgent requests, such as ISR changes, have a
    lane of their own, because the creation of topics may take long.
    """

    def __init__(self, *, client_id: str, connector: Connector = IN_THE_CLEAR) -> None:
        self.changes = Changes()
        """Changes of the controller's address."""
        self._client_id = client_id
        self._connector = connector
        self._changed = threading.Condition()
        self._address: tuple[str, int] | None = None
        self._generation = 0
        self._connections: dict[str, Connection] = {}
        self._closing = threading.Event()

    def call(self, message: Any, *, timeout_ms: int, lane: str = SHARED_LANE) -> Any:
        """Send ``message`` to the active controller; OSError if it leaves, or the call times out; of these
        NotSentError if there is none, or it cannot be connected to.

        A failed call closes its lane's connection; the next call opens another.
        """
        connection = self._connected(timeout_ms, lane)
        try:
            return connection.call(message, timeout_ms=timeout_ms)
        except OSError:
            self._drop(connection, lane)
            raise

    def call_when_reachable(self, message: Any, *, timeout_ms: int) -> Any:
        """As ``call``, but wait until a controller can be connected to, within ``timeout_ms`` in all.

        While the office changes hands, ZooKeeper may still name the controller that left. A request that was
        sent is never sent again, because it may have been carried out: its loss is an OSError.
        """
        deadline_s = time.monotonic() + timeout_ms / 1_000
        while True:
            generation = self._generation
            left_ms = max(int((deadline_s - time.monotonic()) * 1_000), 1)
            try:
                return self.call(message, timeout_ms=left_ms)
            except NotSentError:
                self._await_another(generation)
                if self._closing.is_set() or time.monotonic() > deadline_s:
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

    def _await_another(self, generation: int) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing.is_set() or self._generation != generation, RETRY_MS / 1_000
            )

    def _connected(self, timeout_ms: int, lane: str) -> Connection:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing.is_set() or self._address is not None, timeout_ms / 1_000
            )
            if self._closing.is_set() or self._address is None:
                raise NotSentError("no controller is elected: is an application with brokers running?")
            known = self._connections.get(lane)
            if known is not None and not known.has_peer_left():
                return known
            self._connections.pop(lane, None)
            host, port = self._address
            generation = self._generation
        if known is not None:  # the controller closes connections that were idle for long
            known.close()
        connect_ms = min(timeout_ms, CONNECT_TIMEOUT_MS)
        try:
            connection = self._connector.open(host, port, client_id=self._client_id, timeout_ms=connect_ms)
        except OSError as error:
            raise NotSentError(str(error)) from error
        with self._changed:
            current = self._adopt(connection, generation, lane)
        if current is not connection:
            connection.close()
        if current is None:
            raise NotSentError("the controller changed while it was being connected to")
        return current

    def _adopt(self, connection: Connection, generation: int, lane: str) -> Connection | None:
        """Make ``connection`` the lane's, unless the lane has one or the controller changed."""
        is_current = generation == self._generation and not self._closing.is_set()
        if lane not in self._connections and is_current:
            self._connections[lane] = connection
        return self._connections.get(lane)

    def _drop(self, connection: Connection, lane: str) -> None:
        with self._changed:
            if self._connections.get(lane) is connection:
                del self._connections[lane]
        connection.close()
