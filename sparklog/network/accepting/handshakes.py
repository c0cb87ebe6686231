"""A thread that sees the TLS handshakes of accepted connections through, and refuses clients in clear words.

    acceptor -> handshakes -> processor

A handshake costs about a millisecond of CPU and several round trips. So a crowd of new clients takes turns
here, and the processors' connections do not wait for it. A processor gets a connection when its handshake is
over and its certificate has a principal.

A client has ``handshake_ms`` for all of it, however busy it keeps the line. One that is refused, as well as
its bytes in the clear on a port with TLS, gets a line in the log (``refused_connections`` bounds them). It is
read for ``_FAREWELL_MS`` more: a socket that is closed over unread bytes resets the connection, and the
client would lose the alert that says why. Who leaves without a byte was looking whether the port is open.
"""

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.acceptor import Listener
from sparklog.network.streams.tls_stream import TlsStream
from sparklog.network.tls.client_errors import ClientRefused, broken_or_refused
from sparklog.network.tls.sides import TlsServer
from sparklog.network.waker import Waker

logger: Final = logging.getLogger(__name__)

_FAREWELL_MS: Final = 1_000
_DISCARD_BYTES: Final = 64 * 1024


@dataclass(slots=True, eq=False)
class _Guest:
    """An accepted connection whose handshake is not over, or which is refused."""

    sock: socket.socket
    client_host: str
    listener: Listener
    due_ms: MonotonicMs
    stream: TlsStream | None = None
    watched: int = 0

    def __str__(self) -> str:
        return f"connection from {self.client_host} on {self.listener.name}"


class Handshakes:
    """``adopt`` and ``stop`` may be called from any thread."""

    def __init__(
        self,
        *,
        name: str,
        handshake_ms: int,
        clock: Clock,
        welcome: Callable[[TlsStream, str, Listener, str, MonotonicMs], None],
        on_refused: Callable[[str, str, str], None],
        on_closed: Callable[[str, str], None],
    ) -> None:
        """``welcome`` takes over a stream, with its client's address, listener and principal, and the time by
        which a login must be done. ``on_refused`` gets an address, the listener and the reason, ``on_closed``
        address and listener of each connection that ends here.
        """
        self._handshake_ms = handshake_ms
        self._clock = clock
        self._welcome = welcome
        self._on_refused = on_refused
        self._on_closed = on_closed
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker, selectors.EVENT_READ, None)
        self._newcomers: deque[_Guest] = deque()
        self._guests: dict[_Guest, None] = {}
        """Handshakes under way; like those who leave, in the order in which they are due."""
        self._leaving: dict[_Guest, None] = {}
        self._is_stopping = self._has_ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close what is not handed over, and end the thread; returns when that is done."""
        self._is_stopping = True
        self._waker.wake()
        if self._thread.ident is None:
            self._close_everything()
        else:
            self._thread.join()

    def adopt(self, sock: socket.socket, client_host: str, listener: Listener) -> None:
        due_ms = MonotonicMs(self._clock.monotonic_ms() + self._handshake_ms)
        self._newcomers.append(_Guest(sock, client_host, listener, due_ms))
        self._waker.wake()
        if self._has_ended:
            self._turn_away_newcomers()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except Exception:
            logger.exception("%s ends, and closes its connections", self._thread.name)
            raise
        finally:
            self._close_everything()

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._wait_s()):
            if key.data is None:
                self._waker.clear()
            else:
                self._serve(self._discard if key.data in self._leaving else self._go_on, key.data)
        for _ in range(len(self._newcomers)):
            self._serve(self._begin, self._newcomers.popleft())
        self._end_overdue(self._clock.monotonic_ms())

    def _serve(self, step: Callable[[_Guest], None], guest: _Guest) -> None:
        """A failure, such as no more watched descriptors, costs this connection and no other."""
        try:
            step(guest)
        except Exception:
            logger.exception("%s is closed: its handshake failed", guest)
            self._close(guest)

    def _wait_s(self) -> float | None:
        if self._newcomers:
            return 0
        due = [next(iter(guests)).due_ms for guests in (self._guests, self._leaving) if guests]
        return max(0, min(due) - self._clock.monotonic_ms()) / 1_000 if due else None

    # Handshakes

    def _begin(self, guest: _Guest) -> None:
        self._guests[guest] = None
        try:
            guest.stream = TlsStream(guest.sock, _tls_of(guest.listener).context(), explain=broken_or_refused)
        except Exception:
            logger.exception("%s is closed: its TLS settings cannot be used", guest)
            self._close(guest)
            return
        self._go_on(guest)

    def _go_on(self, guest: _Guest) -> None:
        """Take the handshake further, hand over who is through it, and refuse whom it shows to be wrong."""
        stream = guest.stream
        assert stream is not None, f"{guest} has not begun"
        try:
            if not stream.shake_hands():
                writes = selectors.EVENT_WRITE if stream.unsent_bytes else 0
                self._watch(guest, selectors.EVENT_READ | writes)
                return
            principal = _tls_of(guest.listener).principal_of(stream.peer_certificate())
        except ClientRefused as error:
            self._refuse(guest, str(error))
        except ValueError as error:
            self._refuse(guest, f"its certificate gives no principal: {error}")
        except OSError as error:
            if stream.has_heard:
                self._on_refused(guest.client_host, guest.listener.name, str(error))
            self._close(guest)
        else:
            self._hand_over(guest, stream, principal)

    def _hand_over(self, guest: _Guest, stream: TlsStream, principal: str) -> None:
        self._watch(guest, 0)
        del self._guests[guest]
        self._welcome(stream, guest.client_host, guest.listener, principal, guest.due_ms)

    # The end

    def _refuse(self, guest: _Guest, why: str) -> None:
        self._on_refused(guest.client_host, guest.listener.name, why)
        try:
            guest.sock.shutdown(socket.SHUT_WR)
        except OSError:  # it has gone already
            self._close(guest)
            return
        del self._guests[guest]
        guest.due_ms = MonotonicMs(self._clock.monotonic_ms() + _FAREWELL_MS)
        self._leaving[guest] = None
        self._watch(guest, selectors.EVENT_READ)

    def _discard(self, guest: _Guest) -> None:
        try:
            has_left = not guest.sock.recv(_DISCARD_BYTES)
        except BlockingIOError:
            return
        except OSError:  # the same as an end
            has_left = True
        if has_left:
            self._close(guest)

    def _end_overdue(self, now_ms: MonotonicMs) -> None:
        while self._guests and (guest := next(iter(self._guests))).due_ms <= now_ms:
            why = f"its handshake has not ended within {self._handshake_ms} ms"
            self._on_refused(guest.client_host, guest.listener.name, why)
            self._close(guest)
        while self._leaving and (guest := next(iter(self._leaving))).due_ms <= now_ms:
            self._close(guest)

    def _watch(self, guest: _Guest, events: int) -> None:
        if guest.watched == events:
            return
        before, guest.watched = guest.watched, 0  # nothing is watched after a failure
        if not events:
            self._selector.unregister(guest.sock)
        elif before:
            self._selector.modify(guest.sock, events, guest)
        else:
            self._selector.register(guest.sock, events, guest)
        guest.watched = events

    def _close(self, guest: _Guest) -> None:
        self._guests.pop(guest, None)
        self._leaving.pop(guest, None)
        self._watch(guest, 0)
        guest.sock.close()
        self._on_closed(guest.client_host, guest.listener.name)

    def _close_everything(self) -> None:
        self._has_ended = True
        for guest in [*self._guests, *self._leaving]:
            self._close(guest)
        self._turn_away_newcomers()
        self._selector.close()
        self._waker.close()

    def _turn_away_newcomers(self) -> None:
        """Close what was accepted too late; the acceptor and this thread may both come here."""
        while True:
            try:
                guest = self._newcomers.popleft()
            except IndexError:
                return
            self._close(guest)


def _tls_of(listener: Listener) -> TlsServer:
    assert listener.tls is not None, f"listener {listener.name} has no TLS"
    return listener.tls
