"""A thread that accepts the connections of one listener and deals them out to the processors.

Out of file descriptors (EMFILE, ENFILE) or memory, ``accept`` fails while the listening socket stays
readable: a naive loop would then burn a whole core. The acceptor instead pauses, twice as long each time up
to a second, and meanwhile new clients wait in the kernel's queue. A pause itself takes no file descriptor.

So do clients that are above a limit of the server or of the listener (``Turns``): one is accepted and waits,
the others stay in that queue. One that is above a limit of its address is closed, at once or later.
"""

import errno
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sparklog.model.cluster_facts import host_port
from sparklog.network.waker import Waker

if TYPE_CHECKING:
    from sparklog.network.login.connection_login import LoginSettings
    from sparklog.network.tls.sides import TlsServer

logger: Final = logging.getLogger(__name__)

_QUEUE_LENGTH: Final = 512
"""Connections that may wait in the kernel to be accepted."""

_ACCEPTS_PER_TURN: Final = 64
_LOOK_AGAIN_S: Final = 1.0
"""A limit may be raised while a connection waits for another one's end."""

_REPORT_INTERVAL_S: Final = 60.0
_CLOSING_MAX: Final = 1_000
"""Connections that are kept open to be closed later, so that their clients do not come again at once."""

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


class Turns(Protocol):
    """Whose turn it is. Any thread may ask."""

    def delay_ms(self, listener: str) -> int:
        """A connection has come: how long it waits because of rates."""

    def full(self, listener: str) -> str | None:
        """Why it waits until another one ends; None if it need not."""

    def enter(self, address: str, listener: str) -> int | None:
        """None if it is welcome, else after how many milliseconds it is closed."""


class EverybodysTurn:
    """``Turns`` without limits."""

    def delay_ms(self, listener: str) -> int:
        return 0

    def full(self, listener: str) -> str | None:
        return None

    def enter(self, address: str, listener: str) -> int | None:
        return None


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
        turns: Turns | None = None,
    ) -> None:
        """``welcome`` takes over the accepted socket. ``upkeep`` is called on the acceptor's thread before
        each wait, and returns the seconds until it must be called again, None for none.
        """
        self.port: int = sock.getsockname()[1]
        self._listener = listener
        self._sock = sock
        self._welcome = welcome
        self._turns = turns or EverybodysTurn()
        self._closing: list[tuple[float, socket.socket]] = []
        """Connections above a limit of their address, by the time when each is closed."""
        self._reported_s = -_REPORT_INTERVAL_S
        self._upkeep = upkeep
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._selector.register(self._sock, selectors.EVENT_READ)
        self._patience = selectors.DefaultSelector()
        """For a wait in which nobody is accepted."""
        self._patience.register(self._waker, selectors.EVENT_READ)
        self._stopping = threading.Event()
        self._pause_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """A connection has ended, for which one may wait."""
        self._waker.wake()

    def stop(self) -> None:
        """Close the listening socket and end the thread; returns when that is done."""
        self._stopping.set()
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        for _, sock in self._closing:
            sock.close()
        self._selector.close()
        self._patience.close()
        self._sock.close()
        self._waker.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._select(self._selector, None)
            if not self._stopping.is_set() and not self._accept_some():
                self._stopping.wait(self._pause_s)

    def _select(self, selector: selectors.BaseSelector, wait_s: float | None) -> None:
        """Wait for what the selector watches, for what upkeep there is, and no longer than ``wait_s``."""
        due = [one for one in (wait_s, self._upkeep(), self._close_due()) if one is not None]
        for key, _ in selector.select(min(due, default=None)):
            if key.fileobj is self._waker:
                self._waker.clear()

    def _close_due(self) -> float | None:
        """Close the connections whose time has come; returns the seconds until the next one's."""
        now_s = time.monotonic()
        for due_s, sock in self._closing:
            if due_s <= now_s:
                sock.close()
        self._closing = [one for one in self._closing if one[0] > now_s]
        return min((due_s - now_s for due_s, _ in self._closing), default=None)

    def _await_turn(self) -> bool:
        """Wait until the connection that was accepted may go on; False if the acceptor stops."""
        name = self._listener.name
        due_s = time.monotonic() + self._turns.delay_ms(name) / 1_000
        while not self._stopping.is_set():
            left_s, why = due_s - time.monotonic(), self._turns.full(name)
            if left_s <= 0 and why is None:
                return True
            if why is not None:
                self._report(why)
            self._select(self._patience, _LOOK_AGAIN_S if why is not None else left_s)
        return False

    def _report(self, why: str) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s >= _REPORT_INTERVAL_S:
            self._reported_s = now_s
            logger.warning("listener %s lets connections wait: %s", self._listener.name, why)

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
            if not self._await_turn():
                sock.close()
                break
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
        close_after_ms = self._turns.enter(client_host, self._listener.name)
        if close_after_ms is None:
            self._welcome(sock, client_host)
        elif close_after_ms == 0 or len(self._closing) >= _CLOSING_MAX:
            sock.close()
        else:
            self._closing.append((time.monotonic() + close_after_ms / 1_000, sock))
