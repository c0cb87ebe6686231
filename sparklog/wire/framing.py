"""Frames out of a byte stream: a 4-byte big-endian size, then that many bytes.

A ``FrameReader`` is given bytes by whoever owns the socket, in one of two ways: ``feed(data)``, or without
a copy ``sock.recv_into(reader.writable())`` followed by ``reader.received(count)``. Small frames are cut
out of one scratch buffer, so that a single ``recv`` brings in all that a client has pipelined; a large frame
gets a buffer of its own, into which the rest is received directly.

A size below 0 or above the limit is refused before anything is allocated, and a large buffer grows only as
its bytes arrive: a peer that announces 100 MiB and sends nothing holds no more than ``GROWTH_BYTES_MIN``.
"""

import struct
from typing import Final

from sparklog.model.errors import WireError

FRAME_PREFIX: Final = struct.Struct(">i")
"""The size of what follows, itself not counted."""
assert FRAME_PREFIX.size == 4

SCRATCH_BYTES: Final = 16 * 1024
"""Small, because each idle connection keeps one."""
GROWTH_BYTES_MIN: Final = 1024 * 1024
"""A frame larger than the scratch buffer starts with this much, then doubles as it fills."""


class FrameReader:
    """Cuts a stream into frames, without their size prefixes. One per connection; not thread-safe."""

    __slots__ = ("_frame", "_frame_size", "_frame_used", "_frames_max", "_scratch", "_scratch_used")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frames_max = frame_bytes_max
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_used = 0
        self._frame: bytearray | None = None
        """The large frame that is being received, if there is one; then the scratch buffer is empty."""
        self._frame_size = 0
        self._frame_used = 0

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream may end here without cutting a frame in two."""
        return self._frame is None and self._scratch_used == 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[memoryview]:
        """The frames that ``data`` completes."""
        frames: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            target = self.writable()
            count = min(len(target), len(rest))
            target[:count] = rest[:count]
            rest = rest[count:]
            frames += self.received(count)
        return frames

    def writable(self) -> memoryview:
        """Where the next bytes belong; never empty. Use it before the next call of any method."""
        if self._frame is None:
            return memoryview(self._scratch)[self._scratch_used :]
        if self._frame_used == len(self._frame):
            self._grow_frame()
        return memoryview(self._frame)[self._frame_used :]

    def received(self, count: int) -> list[memoryview]:
        """The frames that ``count`` bytes, written into ``writable()``, complete."""
        if self._frame is None:
            self._scratch_used += count
            return self._cut_scratch()
        self._frame_used += count
        if self._frame_used < self._frame_size:
            return []
        frame = memoryview(self._frame)
        self._frame = None
        return [frame]

    def _grow_frame(self) -> None:
        assert self._frame is not None
        grown = bytearray(min(self._frame_size, 2 * len(self._frame)))
        grown[: self._frame_used] = self._frame
        self._frame = grown

    def _cut_scratch(self) -> list[memoryview]:
        frames: list[memoryview] = []
        start, used = 0, self._scratch_used
        while used - start >= FRAME_PREFIX.size:
            (size,) = FRAME_PREFIX.unpack_from(self._scratch, start)
            self._check_size(size)
            body = start + FRAME_PREFIX.size
            if body + size > used:
                if FRAME_PREFIX.size + size <= SCRATCH_BYTES:
                    break
                self._begin_large_frame(size, self._scratch[body:used])
                start = used
                break
            frames.append(memoryview(bytes(memoryview(self._scratch)[body : body + size])))
            start = body + size
        # What is left moves to the front, so that there is always room for the rest of a small frame.
        self._scratch[: used - start] = self._scratch[start:used]
        self._scratch_used = used - start
        return frames

    def _begin_large_frame(self, size: int, beginning: bytearray) -> None:
        self._frame = bytearray(min(size, GROWTH_BYTES_MIN))
        self._frame[: len(beginning)] = beginning
        self._frame_size, self._frame_used = size, len(beginning)

    def _check_size(self, size: int) -> None:
        if 0 <= size <= self._frames_max:
            return
        raise WireError(
            f"the peer announces a frame of {size} bytes, allowed are 0 to {self._frames_max}: it speaks"
            " another protocol (TLS or HTTP to a plain port?), or socket.request.max.bytes is too small"
        )
