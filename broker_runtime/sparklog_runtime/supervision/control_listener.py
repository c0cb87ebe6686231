"""The driver's end of the control channel: accepts broker processes, and refuses strangers.

Each connection has a thread, which reads until the connection ends. A peer that does not prove within ten
seconds that it knows the run's token is disconnected.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    ControlError,
    Message,
)
from sparklog_runtime.broker_process.control_handshake import TIMEOUT_S, admit
from sparklog_runtime.supervision.tcp_ports import listen

logger: Final = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 256

ServeConnection = Callable[[ControlConnection, Message], None]
"""Gets a connection with its hello and keeps it until it ends; runs on the connection's thread."""


class ControlListener:
    """Accepts control connections from ``open`` to ``close``."""

    def __init__(self, token: str, serve: ServeConnection) -> None:
        self._token = token
        self._serve = serve
        self._lock = threading.Lock()
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
                peer, _ = listener.accept()
            except OSError:
                return  # closed
            if len(self.connections()) >= CONNECTIONS_MAX:
                logger.warning("control connection refused: %d are open", CONNECTIONS_MAX)
                peer.close()
                continue
            connection = ControlConnection(peer)
            with self._lock:
                self._connections.add(connection)
            threading.Thread(
                target=self._run, args=(connection,), name="supervisor-connection", daemon=True
            ).start()

    def _run(self, connection: ControlConnection) -> None:
        try:
            hello = self._hello(connection)
            if hello is not None:
                self._serve(connection, hello)
        except (ControlError, OSError) as error:
            logger.warning("control connection from %s closed: %s", connection.peer_name, error)
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _hello(self, connection: ControlConnection) -> Message | None:
        """The first message of a peer that knows the token; None if it closed the connection first."""
        if not admit(connection, self._token):
            return None
        hello = connection.receive(TIMEOUT_S)
        if hello is not None and hello["type"] != "hello":
            raise ControlError(f"it began with {hello['type']!r} instead of a hello")
        return hello
