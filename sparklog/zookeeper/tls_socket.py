"""TLS to a ZooKeeper server: the socket that kazoo reads and writes, and why it could not be had."""

import re
import socket
import ssl
from typing import TYPE_CHECKING

from sparklog.model.cluster_facts import host_port

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient


class TlsSocket(ssl.SSLSocket):
    """One that remembers why it broke: in TLS 1.3 a server refuses a client after the handshake."""

    failure: ssl.SSLError | None = None

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self.failure = error
            raise


def secured(sock: socket.socket, tls: "TlsClient", host: str, port: int) -> ssl.SSLSocket:
    """``sock`` after a handshake, within its timeout. ``host``: the name that the certificate is for.

    Raises ConnectionError with the reason, after which ``sock`` is closed.
    """
    context = tls.context()
    context.sslsocket_class = TlsSocket
    try:
        return context.wrap_socket(sock, server_hostname=host.rstrip(".").partition("%")[0])
    except OSError as error:
        sock.close()
        raise ConnectionError(why_failed(error, host, port)) from error


def why_failed(error: OSError, host: str, port: int) -> str:
    """What a user is to know of a handshake that failed."""
    return f"TLS with {host_port(host, port)} failed: {_why(error, host, port)}"


def shut_down(sock: socket.socket) -> None:
    """Wake the threads that wait for ``sock``. That of an SSLSocket forgets its session first, after which
    another thread would write in the clear.
    """
    socket.socket.shutdown(sock, socket.SHUT_RDWR)


def has_unread(sock: object) -> bool:
    """Whether TLS has bytes that select(2) does not see."""
    return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0


def _why(error: OSError, host: str, port: int) -> str:
    if isinstance(error, TimeoutError):
        return "it did not end the handshake in time: is this a port with TLS?"
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it closed the connection: is this its port with TLS (secureClientPort)?"
    # Heavy, and a failure alone has need of it.
    from sparklog.network.dialing.tls_dialing import why_refused

    return _of_zookeeper(why_refused(error, host, port))


def _of_zookeeper(text: str) -> str:
    """The words for a broker, in those for ZooKeeper."""
    text = text.replace("the broker's ssl.", "ZooKeeper's ssl.").replace("the broker", "ZooKeeper")
    return re.sub(r"(?<![\w.])(?<!ZooKeeper's )ssl\.", "zookeeper.ssl.", text)
