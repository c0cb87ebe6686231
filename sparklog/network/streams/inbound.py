"""Reassembly of frames from what a stream delivers.

A frame is a 4-byte big-endian length and that many bytes. The declared length is checked against the limit
before any memory is taken, and even then memory follows what has really arrived: a peer that declares
100 MiB and sends ten bytes costs one small buffer. (A TLS greeting sent to a plaintext port reads as a
length of about 350 MB, see KIP-498.)

Every frame gets memory of its own, which is never used again for another one: a request that is parked, or
still being written to disk, cannot be overwritten by its successor.

A server bounds the frames of all its connections together (``frame_budget``). A receiver whose next frame is
not admitted yet is *held up*: it keeps the few bytes that it has, and must not receive until ``next_frame``
has been tried again. Strangers, who have yet to log in, are not charged: they could use up the bound by
frames that they announce. Theirs are small, and end with the time that a login has.
"""

from collections.abc import Callable
from typing import Final

from sparklog.model.errors import WireError
from sparklog.network.streams.byte_stream import ByteSource
from sparklog.wire.framing import FRAME_PREFIX

RECEIVE_BYTES: Final = 64 * 1024
"""Asked of the kernel at once while no frame is underway, and the least that a frame's buffer grows."""

GROWTH_BYTES_MAX: Final = 1024 * 1024
"""The most that a frame's buffer grows ahead of the bytes that arrive."""

TURN_BYTES: Final = 1024 * 1024
"""After this many bytes in one go the other connections get their turn."""

BOUND_OF_REQUESTS: Final = "socket.request.max.bytes"
BOUND_BEFORE_LOGIN: Final = "sasl.server.max.receive.size"

_ZEROS: Final = memoryview(bytes(GROWTH_BYTES_MAX))
"""What a buffer grows by. New zeros at each growth would cost ten times what the bytes themselves do."""


class FrameReceiver:
    """The receiving half of one connection; not safe for use by two threads at once."""

    __slots__ = (
        "_admit",
        "_bounding_setting",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_frame_bytes_max",
        "_position",
        "_unread",
        "charged_bytes",
        "is_held_up",
    )

    def __init__(self, frame_bytes_max: int, admit: Callable[[int], bool] | None = None) -> None:
        """``admit``: asked with the size of each frame before memory is taken for it; False holds up."""
        self._frame_bytes_max = frame_bytes_max
        self._bounding_setting = BOUND_OF_REQUESTS
        self._admit = admit
        self.is_held_up = False
        self.charged_bytes = 0
        """What of the bound on all frames the newest one is charged."""
        self._unread = b""  # received, and not given out yet: at most RECEIVE_BYTES and a few
        self._position = 0
        self._frame: bytearray | None = None  # the frame underway, once its length is known
        self._frame_bytes = 0
        self._filled = 0

    def bound(self, frame_bytes_max: int, setting: str = BOUND_OF_REQUESTS) -> None:
        """Accept at most so many bytes in each frame whose length is not read yet; ``setting`` says so."""
        self._frame_bytes_max = frame_bytes_max
        self._bounding_setting = setting

    @property
    def has_unread(self) -> bool:
        """Whether bytes are buffered that ``next_frame`` has not looked at."""
        return self._position < len(self._unread)

    @property
    def buffered_bytes(self) -> int:
        """Memory held for this peer right now."""
        return len(self._unread) + (len(self._frame) if self._frame is not None else 0)

    @property
    def underway_bytes(self) -> int | None:
        """The announced size of the frame that is being received, None between frames."""
        return None if self._frame is None else self._frame_bytes

    def receive(self, source: ByteSource) -> int:
        """Take what has arrived, up to one turn's worth; 0 means that the peer has closed its side.

        Raises BlockingIOError when nothing at all has arrived.
        """
        if self._frame is None:
            chunk = source.recv(RECEIVE_BYTES)
            self._unread = self._unread[self._position :] + chunk if self.has_unread else chunk
            self._position = 0
            return len(chunk)
        return self._receive_rest(source, self._frame)

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its prefix, writable and owned by the caller; None if incomplete.

        Raises WireError for a length that no frame may have; the stream cannot be read any further then.
        """
        if self._frame is None and not self._begin_frame():
            return None
        if self._frame is None or self._filled < self._frame_bytes:
            return None
        frame, self._frame = memoryview(self._frame), None
        return frame

    def _begin_frame(self) -> bool:
        """Read the next prefix and move what has arrived of its frame into memory of its own."""
        start = self._position + FRAME_PREFIX.size
        if start > len(self._unread):
            return False
        (size,) = FRAME_PREFIX.unpack_from(self._unread, self._position)
        if not 0 <= size <= self._frame_bytes_max:
            raise WireError(
                f"the peer announced a frame of {size} bytes, 0 to {self._frame_bytes_max} are accepted:"
                f" it speaks another protocol (TLS or HTTP?), or {self._bounding_setting} is too small for it"
            )
        charged_bytes = 0 if self._bounding_setting == BOUND_BEFORE_LOGIN else size
        self.is_held_up = self._admit is not None and charged_bytes > 0 and not self._admit(charged_bytes)
        self.charged_bytes = charged_bytes
        if self.is_held_up:
            return False
        end = min(start + size, len(self._unread))
        with memoryview(self._unread) as unread:
            self._frame = bytearray(unread[start:end])
        self._frame_bytes, self._filled = size, end - start
        if end == len(self._unread):
            self._unread, self._position = b"", 0
        else:
            self._position = end
        return True

    def _receive_rest(self, source: ByteSource, frame: bytearray) -> int:
        received = 0
        while self._filled < self._frame_bytes and received < TURN_BYTES:
            if self._filled == len(frame):
                ahead = max(RECEIVE_BYTES, min(self._filled, GROWTH_BYTES_MAX))
                frame += _ZEROS[: min(self._frame_bytes - self._filled, ahead)]
            room = len(frame) - self._filled
            with memoryview(frame) as whole, whole[self._filled :] as free:
                count = source.recv_into(free)
            self._filled += count
            received += count
            if count < room:  # no more has arrived (or the peer has closed: seen at the next turn)
                break
        return received
