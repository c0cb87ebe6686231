"""The connection between the driver's supervisor and each broker process: lines of JSON over TCP.

One object a line, at most 64 KiB, never pickle. A connection begins with proofs of both sides that they know
the run's random token (``control_handshake``), so that a stranger who finds the port is refused. The messages
after that, by their ``type``:

    broker to supervisor
      hello       slot, pid, found: ids of the brokers whose data this host has; again after a reconnect, then
                  with broker_id
      recovering  text: how far the recovery of its logs is, for people
      registered  epoch, host, port, listeners: host:port by name, log_dirs, metrics_port or null: it serves
      failed      reason, fatal: it could not start; fatal when trying again cannot help,
                  and unsafe when it is refused for safety
      bye         clean: it has stopped on purpose
    supervisor to broker
      welcome     broker_id, ports by listener: who the broker is
      stop        stop tidily

The end of the connection is what both sides watch: the kernel closes it the moment a process dies, so the
supervisor knows within milliseconds.
"""

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError
from sparklog.network.dialing.dial import dial
from sparklog.network.streams.byte_stream import ByteStream, PlainStream

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient, TlsServer

LINE_BYTES_MAX: Final = 65_536
_PIECE_BYTES: Final = 4_096

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

    def __init__(self, stream: ByteStream) -> None:
        with socket.socket(fileno=os.dup(stream.fileno())) as peer:
            _watch_host(peer)
            self.local_host: Final = str(peer.getsockname()[0])
            """Our own address on the way to the peer."""
            self.peer_name: Final = _peer_name(peer)
        self._stream = stream
        self._pending = bytearray()
        self._send_lock = threading.Lock()
        self._state = threading.Lock()  # over all that follows
        self._users = 0
        """Threads that use the stream at this moment: it is closed after the last one."""
        self._closed = False

    @classmethod
    def open(
        cls, host: str, port: int, timeout_s: float, tls: "TlsClient | None" = None
    ) -> "ControlConnection":
        """Connect; raises as ``dial`` does."""
        return cls(dial(host, port, timeout_ms=int(timeout_s * 1_000), tls=tls))

    @classmethod
    def accept(
        cls, peer: socket.socket, timeout_s: float, tls: "TlsServer | None" = None
    ) -> "ControlConnection":
        """Take over an accepted socket, after its handshake if ``tls`` asks for one; OSError, and the socket
        is closed, if that fails.
        """
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            return cls(PlainStream(peer))
        # OpenSSL is imported by processes that use TLS alone.
        from sparklog_runtime.broker_process.control_tls import accept_tls

        return cls(accept_tls(peer, tls, timeout_s))

    def send(self, message: Message) -> None:
        """Send one message; OSError if the connection has ended."""
        line = json.dumps(message, separators=(",", ":")).encode("utf-8") + b"\n"
        if len(line) > LINE_BYTES_MAX:
            raise ControlError(f"control message of {len(line)} bytes is larger than {LINE_BYTES_MAX}")
        rest = memoryview(line)
        with self._send_lock, self._use():
            while rest:
                try:
                    rest = rest[self._stream.send(rest) :]
                except BlockingIOError:
                    self._wait(select.POLLOUT, None)
            while not self._stream.flush():
                self._wait(select.POLLOUT, None)

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """The next message, or None when the peer has closed or died.

        Raises TimeoutError if the message is not there in time; another call waits on for it.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) >= LINE_BYTES_MAX:
                raise ControlError(f"control line longer than {LINE_BYTES_MAX} bytes")
            chunk = self._receive_some(deadline)
            if not chunk:
                return None
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return _parse(line)

    def close(self) -> None:
        """Close from any thread; a waiting ``receive`` returns None."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            if self._users == 0:
                self._stream.close()
                return
            with contextlib.suppress(OSError):  # the peer was faster
                self._stream.shutdown()  # wakes threads in poll

    def _receive_some(self, deadline: float | None) -> bytes:
        """What has arrived, waited for; empty at the end of the connection."""
        try:
            with self._use():
                while True:
                    try:
                        return self._stream.recv(_PIECE_BYTES)
                    except BlockingIOError:
                        self._wait(select.POLLIN, deadline)
        except ConnectionError:
            return b""

    def _wait(self, events: int, deadline: float | None) -> None:
        """Until the stream is ready or broken; TimeoutError after the deadline."""
        poll = select.poll()
        poll.register(self._stream.fileno(), events)
        if deadline is None:
            poll.poll()
        elif not poll.poll(max(0.0, deadline - time.monotonic()) * 1_000):
            raise TimeoutError(f"{self.peer_name} has not sent a whole message in time")

    @contextmanager
    def _use(self) -> Iterator[None]:
        """While inside, the stream's descriptor stays this stream's; ConnectionError after ``close``."""
        with self._state:
            if self._closed:
                raise ConnectionAbortedError("the control connection is closed")
            self._users += 1
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._state:
            self._users -= 1
            if self._closed and self._users == 0:
                self._stream.close()


def _watch_host(peer: socket.socket) -> None:
    """Detect a host that vanishes without closing its connections."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def _peer_name(peer: socket.socket) -> str:
    try:
        host, port = peer.getpeername()[:2]
    except OSError:
        return "a disconnected peer"
    return host_port(host, port)


def _parse(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"control line is no JSON: {line[:80]!r}") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ControlError(f"control line is no message: {line[:80]!r}")
    return message
