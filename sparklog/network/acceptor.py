"""A thread that accepts the connections of one listener and deals them out to the processors.

Out of file descriptors (EMFILE, ENFILE) or memory, ``accept`` fails while the listening socket stays
readable: a naive loop would then burn a whole core. The acceptor instead pauses, twice as long each time up
to a second, and meanwhile new clients wait in the kernel's queue. A pause itself takes no file descriptor.
"""

import errno
import logging
import selectors
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sparklog.model.cluster_facts import host_port
from sparklog.network.waker import Waker

if TYPE_CHECKING:
    from sparklog.network.login.connection_login import LoginSettings
    from sparklog.network.tls.sides import TlsServer

logger: Final = logging.getLogger(__name__)

_QUEUE_LENGTH: Final = 512
"""Connections that may wait in the kernel to be accepted."""

_ACCEPTS_PER_TURN: Final = 64
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Listener:
    """An address to listen on. Port 0 lets the kernel choose."""

    host: str
    port: int
    name: str = "PLAINTEXT"
    tls: "TlsServer | None" = None
    """None for connections in the clear."""
    login: "LoginSettings | None" = None
    """None where clients do not log in."""


def bind(listener: Listener) -> socket.socket:
    """A non-blocking listening socket, or an OSError that names the address and the remedy."""
    where = host_port(listener.host, listener.port)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(
            error.errno, f"listener {listener.name} cannot use {where}: {error.strerror}"
        ) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_QUEUE_LENGTH)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        remedy = "choose a free port, or 0 for any, and an address of this machine"
        raise OSError(
            error.errno, f"listener {listener.name} cannot listen on {where}: {error.strerror}; {remedy}"
        ) from error
    return sock


class Acceptor:
    """Accepts on one bound socket, which it owns, until stopped.

    All descriptors that it needs it takes when it is made, or raises OSError: a thread without them would
    end unheard, and the listener with it.
    """

    def __init__(
        self,
        listener: Listener,
        sock: socket.socket,
        *,
        name: str,
        welcome: Callable[[socket.socket, str], None],
        upkeep: Callable[[], float | None] = lambda: None,
    ) -> None:
        """``welcome`` takes over the accepted socket. ``upkeep`` is called on the acceptor's thread before
        each wait, and returns the seconds until it must be called again, None for none.
        """
        self.port: int = sock.getsockname()[1]
        self._listener = listener
        self._sock = sock
        self._welcome = welcome
        self._upkeep = upkeep
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._selector.register(self._sock, selectors.EVENT_READ)
        self._stopping = threading.Event()
        self._pause_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the listening socket and end the thread; returns when that is done."""
        self._stopping.set()
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()
        self._sock.close()
        self._waker.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._selector.select(self._upkeep())
            if not self._stopping.is_set() and not self._accept_some():
                self._stopping.wait(self._pause_s)

    def _accept_some(self) -> bool:
        """Accept who waits; False if the machine cannot take more at this time."""
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause_s = min(max(self._pause_s * 2, _PAUSE_FIRST_S), _PAUSE_MAX_S)
                    logger.warning(
                        "listener %s accepts nobody for %.2f s: %s; raise the limit of open files",
                        self._listener.name, self._pause_s, error,
                    )  # fmt: skip
                    return False
                logger.info(
                    "listener %s lost a connection before it was accepted: %s", self._listener.name, error
                )
                continue
            self._pause_s = 0.0
            self._hand_over(sock, address[0])
        return True

    def _hand_over(self, sock: socket.socket, client_host: str) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as error:  # it was reset already
            logger.debug("connection from %s is gone: %s", client_host, error)
            sock.close()
            return
        self._welcome(sock, client_host)
