"""TLS over one socket: OpenSSL encrypts and decrypts in memory, and this file moves the bytes.

    received -> [unfed] -> incoming -> OpenSSL -> plaintext for recv
    plaintext of send -> OpenSSL -> outgoing -> [unsent] -> the kernel

Python's SSLSocket does not fit. Its ``sendfile`` and its ``shutdown`` can put clear text on the wire, a full
socket wants the same bytes again, and ``sendmsg`` is missing. With memory in between, only ciphertext ever
reaches the socket, and what was encrypted is accepted for good (docs/decisions/0016).

A session takes one thread at a time, and a connection may have a sender beside its receiver. So a lock is
held over each step. No step blocks. A slice of a file is read outside of the lock.

OpenSSL gets and gives one record at a time, because its memory never shrinks: an idle connection holds about
60 KB, whatever it has transferred. For the kernel records are taken together.

Either side may change its keys (TLS 1.3). OpenSSL answers with its next record, so that nothing is lost while
the socket is full. New keys cost the side that gets them far more than the side that sends 27 bytes. So a
stream breaks when its peer has sent ``_BARREN_BYTES_MAX`` more without plaintext than plaintext.
"""

import contextlib
import itertools
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sparklog.model.parts import FileSlice

RECORD_BYTES: Final = 16 * 1024
"""The plaintext of the largest record of TLS."""

_FEED_BYTES: Final = RECORD_BYTES + 1024
"""Given to OpenSSL at once: a record with its header, padding and authentication."""

_PULL_BYTES: Final = 64 * 1024
"""Asked of the kernel at once."""

_UNSENT_BYTES_MAX: Final = 64 * 1024
"""With so much ciphertext that the kernel has not taken, nothing more is encrypted."""

_SEND_BYTES_MAX: Final = 1024 * 1024
"""Accepted in one call, however fast the peer takes it."""

_SLICE_BYTES: Final = 64 * 1024
"""Read of a file at once."""

_BARREN_BYTES_MAX: Final = 32 * 1024
"""More than a record that is not complete yet, beside a server's tickets."""

_RECORD_OVERHEAD: Final = 64
"""What a record has at most beside its plaintext. More padding is barren, and no client of Kafka pads."""

_FEEDS_MAX: Final = 128
_BUFFERS_MAX: Final = 16
_MORE_FOLLOWS: Final = int(getattr(socket, "MSG_MORE", 0))  # flags of the enum are slow
_NOTHING: Final = memoryview(b"")
_GREETING_BYTES: Final = 3

Buffer = bytes | memoryview

Explain = Callable[[ssl.SSLError, bytes], OSError]
"""The error to raise for one of OpenSSL, given the first bytes that the peer has sent."""


class TlsStream:
    """``ByteStream``; usable once ``shake_hands`` has returned True."""

    __slots__ = (
        "_barren_bytes",
        "_explain",
        "_failure",
        "_greeting",
        "_has_ended",
        "_incoming",
        "_is_kernel_empty",
        "_is_over",
        "_lock",
        "_outgoing",
        "_sock",
        "_tls",
        "_unfed",
        "_unsent",
        "fileno",
        "has_pending",
        "unsent_bytes",
    )

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, *, explain: Explain, dialled: str | None = None
    ) -> None:
        """The stream owns ``sock``, which does not block, from now on. ``dialled``: the host, for the side
        that has dialled.
        """
        self._sock = sock
        self.fileno = sock.fileno
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=dialled is None, server_hostname=dialled
        )
        self._explain = explain
        self._lock = threading.Lock()
        self._greeting = b""
        self._unfed = _NOTHING
        self._barren_bytes = 0
        self._unsent: deque[Buffer] = deque()
        self._is_over = False  # the handshake
        self._is_kernel_empty = False
        self._has_ended = False
        self._failure: OSError | None = None
        self.has_pending = False
        self.unsent_bytes = 0

    # The handshake

    def shake_hands(self) -> bool:
        """Take the handshake as far as the peer's bytes go; whether it is over.

        If it is not, it goes on when the socket is readable, or writable while there are ``unsent_bytes``.
        Raises OSError if the peer is refused, refuses this side, or leaves.
        """
        with self._lock:
            for _ in range(_FEEDS_MAX):
                if self._is_over:
                    break
                if not self._advance():
                    return False
            self.has_pending = self._has_ciphertext() or bool(self._unfed)
            return self._flush() and self._is_over

    def _advance(self) -> bool:
        try:
            self._tls.do_handshake()
            self._is_over = True
            self._barren_bytes = 0
            return True
        except ssl.SSLWantReadError:
            # A peer that has gone has perhaps said why: its bytes are looked at before that is an error.
            with contextlib.suppress(ConnectionError):
                self._flush()
            has_more = self._pull()
            if self._failure is not None:
                raise self._failure from None
            if self._has_ended:
                early = ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the peer has closed the connection")
                raise self._explain(early, self._greeting) from None
            return has_more
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):
                self._flush()  # the alert, which says to the peer what is wrong
            raise self._explain(error, self._greeting) from error

    @property
    def has_heard(self) -> bool:
        """Whether the peer has sent anything at all."""
        return bool(self._greeting)

    def peer_certificate(self) -> bytes | None:
        """The peer's certificate (DER), once the handshake is over; None if it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    # Receiving

    def recv(self, bytes_max: int, /) -> bytes:
        chunks: list[bytes] = []

        def take(room: int) -> int:
            chunk = self._tls.read(room)
            chunks.append(chunk)
            return len(chunk)

        self._receive(bytes_max, take)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def recv_into(self, buffer: memoryview, /) -> int:
        size = len(buffer)

        def take(room: int) -> int:
            with buffer[size - room :] as free:
                return self._tls.read(room, free)  # type: ignore[return-value]  # typeshed: bytes

        return self._receive(size, take)

    def _receive(self, bytes_max: int, take: Callable[[int], int]) -> int:
        """Fill up to ``bytes_max`` bytes by calls of ``take``, of which each decrypts what one record has."""
        with self._lock:
            if self._failure is None and not self._has_ended:
                left = self._decrypt(bytes_max, take)
                if self._outgoing.pending:
                    self._send_answers()
            else:
                left = bytes_max
            is_at_end = self._has_ended or self._failure is not None
            received = bytes_max - left
            if received:
                self.has_pending = is_at_end or self._has_ciphertext() or bool(self._unfed)
                return received
            self.has_pending = not is_at_end and (self._has_ciphertext() or bool(self._unfed))
            if self._failure is not None:
                raise self._failure
            if not self._has_ended:
                raise BlockingIOError("no plaintext has arrived")
            return 0

    def _decrypt(self, left: int, take: Callable[[int], int]) -> int:
        wanted = left
        is_hungry = not self._has_ciphertext()
        for _ in range(_FEEDS_MAX):
            if is_hungry:
                may_stop = left < wanted and self._is_kernel_empty and not self._unfed
                if may_stop or self._is_barren() or not self._pull():
                    break
            try:
                count = take(left)
            except ssl.SSLWantReadError:
                is_hungry = True
                continue
            except ssl.SSLError as error:
                self._failure = self._explain(error, self._greeting)
                self._failure.__cause__ = error
                break
            if count == 0:  # the peer has announced the end
                self._has_ended = True
                break
            self._barren_bytes = max(0, self._barren_bytes - 2 * count - _RECORD_OVERHEAD)
            left -= count
            if not left:
                break
            is_hungry = not self._has_ciphertext()
        return left

    def _is_barren(self) -> bool:
        """Whether the peer keeps this side at work without plaintext, which breaks the stream."""
        if self._barren_bytes <= _BARREN_BYTES_MAX:
            return False
        self._failure = ConnectionAbortedError(
            f"the peer has sent {self._barren_bytes} bytes of TLS without content"
        )
        return True

    def _has_ciphertext(self) -> bool:
        """Whether OpenSSL has something that it can decrypt, as far as it shows."""
        return bool(self._incoming.pending or self._tls.pending())

    def _pull(self) -> bool:
        """Give OpenSSL more of the peer's bytes; False if none have arrived, or no more ever will."""
        if not self._unfed:
            try:
                received = self._sock.recv(_PULL_BYTES)
            except BlockingIOError:
                self._is_kernel_empty = True
                return False
            except OSError as error:
                self._failure = error
                return False
            self._is_kernel_empty = len(received) < _PULL_BYTES
            if not received:
                # Not for OpenSSL, which would refuse to encrypt what this side still has to say.
                self._has_ended = True
                return False
            if len(self._greeting) < _GREETING_BYTES:
                self._greeting = (self._greeting + received)[:_GREETING_BYTES]
            self._unfed = memoryview(received)
        self._barren_bytes += self._incoming.write(self._unfed[:_FEED_BYTES])
        self._unfed = self._unfed[_FEED_BYTES:] or _NOTHING  # an empty slice would keep all of it in memory
        return True

    def _send_answers(self) -> None:
        """Send what OpenSSL answers by itself: an alert, new keys."""
        try:
            self._flush()
        except OSError as error:
            if not self._has_ended:
                self._failure = self._failure or error

    # Sending

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        return self.sendmsg((data,), (), flags)

    def sendmsg(self, buffers: Sequence[Buffer], _ancillary: tuple[()] = (), flags: int = 0, /) -> int:
        accepted = 0
        with self._lock:
            for record in _records(buffers):
                if accepted >= _SEND_BYTES_MAX:
                    break
                if self.unsent_bytes >= _UNSENT_BYTES_MAX and not self._flush():
                    if accepted:
                        break
                    raise BlockingIOError("the kernel takes no more ciphertext")
                self._encrypt(record)
                accepted += len(record)
            if not flags & _MORE_FOLLOWS:
                self._flush()
        return accepted

    def send_slice(self, part: FileSlice, bytes_max: int, /) -> int:
        if self.unsent_bytes >= _UNSENT_BYTES_MAX and not self.flush():
            raise BlockingIOError("the kernel takes no more ciphertext")
        data = part.file.pread(min(part.length, bytes_max, _SLICE_BYTES), part.position)
        return self.send(data) if data else 0

    def flush(self) -> bool:
        with self._lock:
            return self._flush()

    def _encrypt(self, record: Buffer) -> None:
        try:
            self._tls.write(record)
        except ssl.SSLError as error:
            raise self._explain(error, self._greeting) from error
        self._take_outgoing()

    def _take_outgoing(self) -> None:
        if self._outgoing.pending:
            ciphertext = self._outgoing.read()
            self._unsent.append(ciphertext)
            self.unsent_bytes += len(ciphertext)

    def _flush(self) -> bool:
        self._take_outgoing()
        while self._unsent:
            buffers = list(itertools.islice(self._unsent, _BUFFERS_MAX))
            try:
                sent = self._sock.sendmsg(buffers)
            except BlockingIOError:
                return False
            except OSError as error:
                raise self._why_broken(error) from error
            self._forget(sent)
            if sent < sum(map(len, buffers)):
                return False
        return True

    def _forget(self, sent: int) -> None:
        self.unsent_bytes -= sent
        while sent:
            first = self._unsent.popleft()
            if sent < len(first):
                self._unsent.appendleft(memoryview(first)[sent:])
                return
            sent -= len(first)

    def _why_broken(self, error: OSError) -> OSError:
        """The alert by which the peer has said why it closed the connection, or else ``error``. Nothing is
        received any more, because this has looked at what comes before the alert.
        """
        if not self._is_over:
            return error
        if self._failure is None:
            self._decrypt(RECORD_BYTES, lambda room: len(self._tls.read(room)))
            self._failure = self._failure or error
        return self._failure

    # The end

    def shutdown(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            if self._is_over and self._failure is None:
                # The end is announced, so that the peer can tell it from a cut: best effort, and no wait.
                with contextlib.suppress(OSError):
                    self._tls.unwrap()
                with contextlib.suppress(OSError):
                    self._flush()
            self._sock.close()


def _records(buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    """The bytes of ``buffers`` in pieces that fill a record; copied only where a piece has several parts."""
    parts: list[Buffer] = []
    room = RECORD_BYTES
    for buffer in buffers:
        rest = memoryview(buffer)
        while rest:
            parts.append(rest[:room])
            room -= len(parts[-1])
            rest = rest[len(parts[-1]) :]
            if not room:
                yield parts[0] if len(parts) == 1 else b"".join(parts)
                parts, room = [], RECORD_BYTES
    if parts:
        yield parts[0] if len(parts) == 1 else b"".join(parts)
