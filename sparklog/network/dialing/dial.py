"""A connection to a host and port: a socket, in the clear or with TLS on it."""

import socket
import time
from typing import TYPE_CHECKING

from sparklog.model.cluster_facts import host_port
from sparklog.network.streams.byte_stream import ByteStream, PlainStream

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient


def dial(host: str, port: int, *, timeout_ms: int, tls: "TlsClient | None" = None) -> ByteStream:
    """Connect, or raise ConnectionError with the address: ConnectionRefusedError if nobody listens there,
    ``TlsRefused`` if TLS is refused for good.
    """
    deadline = time.monotonic() + timeout_ms / 1_000
    if tls is None:
        return PlainStream(connect(host, port, timeout_ms))
    # OpenSSL is imported by processes that use TLS alone.
    from sparklog.network.dialing.tls_dialing import secure

    context = tls.context()
    return secure(connect(host, port, timeout_ms), host, port, tls=tls, context=context, deadline=deadline)


def connect(host: str, port: int, timeout_ms: int) -> socket.socket:
    """A socket that does not block; raises as ``dial`` does."""
    peer = host_port(host, port)
    try:
        sock = socket.create_connection((host, port), timeout_ms / 1_000)
    except UnicodeError as error:
        raise ConnectionError(f"cannot connect: {host!r} cannot be a host name: {error}") from error
    except OSError as error:
        kind = ConnectionRefusedError if isinstance(error, ConnectionRefusedError) else ConnectionError
        raise kind(f"cannot connect to {peer}: {error}") from error
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def is_refused(host: str, port: int, timeout_ms: int) -> bool:
    """Whether ``host`` refuses connections to ``port``: nobody listens there. False if it does not answer."""
    try:
        socket.create_connection((host, port), timeout_ms / 1_000).close()
    except ConnectionRefusedError:
        return True
    except (OSError, UnicodeError):
        return False
    return False
