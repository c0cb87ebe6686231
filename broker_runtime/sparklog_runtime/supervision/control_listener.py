"""The driver's end of the control channel: accepts broker processes, and refuses strangers.

Each connection has a thread, which reads until the connection ends. A peer that does not prove within ten
seconds that it knows the run's token is disconnected.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sparklog.model.cluster_facts import host_port
from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    ControlError,
    Message,
)
from sparklog_runtime.broker_process.control_handshake import TIMEOUT_S, admit
from sparklog_runtime.supervision.tcp_ports import listen

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsServer

logger: Final = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 256

ServeConnection = Callable[[ControlConnection, Message], None]
"""Gets a connection with its hello and keeps it until it ends; runs on the connection's thread."""


class ControlListener:
    """Accepts control connections from ``open`` to ``close``."""

    def __init__(self, token: str, serve: ServeConnection, tls: "TlsServer | None" = None) -> None:
        """``tls``: None for connections in the clear."""
        self._token = token
        self._serve = serve
        self._tls = tls
        self._lock = threading.Lock()
        self._peers = 0
        """Connections that are open, those of strangers included."""
        self._connections: set[ControlConnection] = set()
        self._socket: socket.socket | None = None

    def open(self, host: str, port: int) -> int:
        """Listen on a port of ``host``, 0 for any; returns its number. PortInUse names it."""
        self._socket = listen(host, port, "choose another supervisor.port, or 0 for any")
        threading.Thread(
            target=self._accept, args=(self._socket,), name="supervisor-accept", daemon=True
        ).start()
        return int(self._socket.getsockname()[1])

    def connections(self) -> list[ControlConnection]:
        """Connections of broker processes that have said hello."""
        with self._lock:
            return list(self._connections)

    def close(self) -> None:
        """Accept no more connections, and close those that are open."""
        if self._socket is not None:
            # Wakes the thread in accept; close alone would not.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        for connection in self.connections():
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                peer, address = listener.accept()
            except OSError:
                return  # closed
            with self._lock:
                is_full = self._peers >= CONNECTIONS_MAX
                self._peers += not is_full
            if is_full:
                logger.warning("control connection refused: %d are open", CONNECTIONS_MAX)
                peer.close()
                continue
            threading.Thread(
                target=self._run, args=(peer, address), name="supervisor-connection", daemon=True
            ).start()

    def _run(self, peer: socket.socket, address: tuple[str, int]) -> None:
        try:
            connection = ControlConnection.accept(peer, TIMEOUT_S, self._tls)
            try:
                self._talk(connection)
            finally:
                connection.close()
        except (ControlError, OSError) as error:
            logger.warning("control connection from %s closed: %s", host_port(*address[:2]), error)
        finally:
            with self._lock:
                self._peers -= 1

    def _talk(self, connection: ControlConnection) -> None:
        hello = self._hello(connection)
        if hello is None:
            return
        with self._lock:
            self._connections.add(connection)
        try:
            self._serve(connection, hello)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _hello(self, connection: ControlConnection) -> Message | None:
        """The first message of a peer that knows the token: its hello, or why it cannot run.

        None if the peer closed the connection first.
        """
        if not admit(connection, self._token):
            return None
        hello = connection.receive(TIMEOUT_S)
        if hello is not None and hello["type"] not in ("hello", "failed"):
            raise ControlError(f"it began with {hello['type']!r} instead of a hello")
        return hello
