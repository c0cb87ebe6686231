"""The connection between the driver's supervisor and each broker process: lines of JSON over TCP.

One object a line, at most 64 KiB, never pickle. The first line of a broker must be a hello with the run's
random token, so that a stranger who finds the port is refused. The messages, by their ``type``:

    broker to supervisor
      hello       token, slot, pid, found: ids of the brokers whose data this host has; again after a
                  reconnect, then with broker_id
      recovering  text: how far the recovery of its logs is, for people
      registered  epoch, host, port, listeners: host:port by name, log_dirs, metrics_port or null: it serves
      failed      reason, fatal: it could not start; fatal when trying again cannot help
      bye         clean: it has stopped on purpose
    supervisor to broker
      welcome     broker_id, ports by listener: who the broker is
      stop        stop tidily

The end of the connection is what both sides watch: the kernel closes it the moment a process dies, so the
supervisor knows within milliseconds.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError

LINE_BYTES_MAX: Final = 65_536

Message = Mapping[str, Any]


class ControlError(SparklogError):
    """The peer sent something else than a message of this channel; the connection is closed."""


def require_int(message: Message, field: str) -> int:
    value = message.get(field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ControlError(
            f"control message {message.get('type')!r}: {field}={value!r} is not a whole number"
        )
    return value


def require_str(message: Message, field: str) -> str:
    value = message.get(field)
    if not isinstance(value, str):
        raise ControlError(f"control message {message.get('type')!r}: {field}={value!r} is not a string")
    return value


def require_mapping(message: Message, field: str, kind: type) -> dict[str, Any]:
    """Values of one ``kind`` by name."""
    value = message.get(field)
    if not isinstance(value, dict) or not all(type(item) is kind for item in value.values()):
        raise ControlError(
            f"control message {message.get('type')!r}: {field} is no mapping to {kind.__name__}"
        )
    return value


def require_list(message: Message, field: str, kind: type) -> list[Any]:
    value = message.get(field)
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise ControlError(f"control message {message.get('type')!r}: {field} is no list of {kind.__name__}")
    return value


class ControlConnection:
    """One end of the channel. ``send`` from any thread, ``receive`` from one."""

    def __init__(self, peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Detects a host that vanished without closing its connections.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        self._socket = peer
        self._pending = bytearray()
        self._send_lock = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, host: str, port: int, timeout_s: float) -> "ControlConnection":
        peer = socket.create_connection((host, port), timeout_s)
        peer.settimeout(None)
        return cls(peer)

    @property
    def local_host(self) -> str:
        """Our own address on the way to the peer."""
        return str(self._socket.getsockname()[0])

    @property
    def peer_name(self) -> str:
        try:
            host, port = self._socket.getpeername()[:2]
        except OSError:
            return "a disconnected peer"
        return host_port(host, port)

    def set_timeout(self, timeout_s: float | None) -> None:
        self._socket.settimeout(timeout_s)

    def send(self, message: Message) -> None:
        """Send one message; OSError if the connection has ended."""
        line = json.dumps(message, separators=(",", ":")).encode("utf-8") + b"\n"
        if len(line) > LINE_BYTES_MAX:
            raise ControlError(f"control message of {len(line)} bytes is larger than {LINE_BYTES_MAX}")
        with self._send_lock:
            self._socket.sendall(line)

    def receive(self) -> Message | None:
        """The next message, or None when the peer has closed or died."""
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) >= LINE_BYTES_MAX:
                raise ControlError(f"control line longer than {LINE_BYTES_MAX} bytes")
            try:
                chunk = self._socket.recv(4096)
            except ConnectionError:
                return None
            except OSError:
                if self._closed:
                    return None
                raise
            if not chunk:
                return None
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return _parse(line)

    def close(self) -> None:
        """Close from any thread; a waiting ``receive`` returns None."""
        self._closed = True
        with contextlib.suppress(OSError):  # the peer was faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _parse(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"control line is no JSON: {line[:80]!r}") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ControlError(f"control line is no message: {line[:80]!r}")
    return message
