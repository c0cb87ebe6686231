"""The bytes of one connection as its users see them: in the clear, whatever is on the wire.

Two kinds of stream exist. ``PlainStream`` is the socket itself: its methods are bound methods of the socket,
so that it costs nothing, and slices of files go by ``sendfile``. ``TlsStream`` (``tls_stream``) encrypts.

A stream does not block: what cannot be done now raises BlockingIOError. A broken or refused connection is an
OSError. TLS shows two differences from a socket:

- bytes may wait in the stream where no selector sees them (``has_pending``): a thread that stops receiving
  early must come back without waiting for the selector;
- bytes may be accepted before the kernel has taken them (``unsent_bytes``): a reply is sent after ``flush``.
"""

import os
import socket
from collections.abc import Sequence
from typing import Final, Protocol

from sparklog.model.parts import FileSlice

_SENDFILE_BYTES_MAX: Final = 0x7FFFF000
"""What Linux transfers at most in one call."""


class ByteSource(Protocol):
    """What a stream gives, and a socket too."""

    def recv(self, bytes_max: int, /) -> bytes:
        """What has arrived, at most ``bytes_max``; empty at the end of the peer's bytes."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """As ``recv``, into ``buffer``. Fewer bytes than fit mean that no more have arrived."""
        ...


class ByteStream(ByteSource, Protocol):
    """One thread may receive while another one sends."""

    @property
    def has_pending(self) -> bool:
        """Whether more can be received at once, although a selector may not say so."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """How much the kernel has not taken yet of what was accepted."""
        ...

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        """How much of ``data`` was accepted. The flag MSG_MORE holds back what fills no packet."""
        ...

    def sendmsg(
        self, buffers: Sequence[bytes | memoryview], ancillary: tuple[()] = (), flags: int = 0, /
    ) -> int:
        """As ``send``, of consecutive buffers."""
        ...

    def send_slice(self, part: FileSlice, bytes_max: int, /) -> int:
        """How much of ``part`` was accepted; 0 if its file ended before it."""
        ...

    def flush(self) -> bool:
        """Send what the kernel has not taken yet; whether it has all of it now."""
        ...

    def fileno(self) -> int:
        """The descriptor, for selectors alone."""
        ...

    def shutdown(self) -> None:
        """End both directions, which wakes threads that wait for the descriptor; from any thread."""
        ...

    def close(self) -> None:
        """Give the descriptor back. No other thread may use the stream any more."""
        ...


class PlainStream:
    """The bytes of ``sock`` as they are."""

    __slots__ = ("_sock", "fileno", "recv", "recv_into", "send", "sendmsg")

    has_pending: Final = False
    unsent_bytes: Final = 0

    def __init__(self, sock: socket.socket) -> None:
        """The stream owns ``sock``, which does not block, from now on."""
        self._sock = sock
        self.fileno = sock.fileno
        self.recv = sock.recv
        self.recv_into = sock.recv_into
        self.send = sock.send
        self.sendmsg = sock.sendmsg

    def send_slice(self, part: FileSlice, bytes_max: int, /) -> int:
        count = min(part.length, bytes_max, _SENDFILE_BYTES_MAX)
        return os.sendfile(self.fileno(), part.file.fileno(), part.position, count)

    def flush(self) -> bool:
        return True

    def shutdown(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()
