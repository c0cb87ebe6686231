"""A plain socket to a broker: frames out, whole frames in, and whether the broker has closed it."""

import select
import socket
import time
from typing import Final, Self

SIZE_BYTES: Final = 4
RECEIVE_BYTES: Final = 1 << 16
SEND_TIMEOUT_S: Final = 10.0


class Wire:
    """One connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.is_closed = False
        """Whether the broker has ended the connection."""
        self._received = bytearray()
        self._socket = socket.create_connection(address, SEND_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, octets: bytes) -> None:
        """Send everything, or find that the broker has closed the connection."""
        try:
            self._socket.sendall(octets)
        except OSError:
            self._look(0.0)  # what was received before the end counts
            self.is_closed = True

    def frame(self, wait_s: float) -> bytes | None:
        """The next frame without its size, waited for; None if there is none in time, or none any more."""
        deadline = time.monotonic() + wait_s
        while (frame := self._next_frame()) is None:
            left_s = deadline - time.monotonic()
            if self.is_closed or not self._look(max(0.0, left_s)):
                return self._next_frame()
        return frame

    def _next_frame(self) -> bytes | None:
        end = SIZE_BYTES + int.from_bytes(self._received[:SIZE_BYTES], "big")
        if len(self._received) < max(end, SIZE_BYTES):
            return None
        frame = bytes(self._received[SIZE_BYTES:end])
        del self._received[:end]
        return frame

    def _look(self, wait_s: float) -> bool:
        """Take what is there; False if nothing happened in time."""
        poll = select.poll()  # select refuses descriptors above 1,023, which a process with brokers has
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(wait_s * 1_000):
            return False
        try:
            octets = self._socket.recv(RECEIVE_BYTES)
        except OSError:
            octets = b""
        self.is_closed |= not octets
        self._received += octets
        return True

    @property
    def rest(self) -> bytes:
        """What was received and is no whole frame."""
        return bytes(self._received)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
