"""Writing a list of parts to a stream that takes only some of it at a time.

Consecutive bytes go out in one ``sendmsg``. A slice of a file goes to a plain stream by ``sendfile``, from
the page cache to the socket without passing through this process; for TLS it is read in pieces. The stream
does not block: when it is full, the position is kept, and the rest is written when the selector says so.

A short reply is read and leaves in one call: so much less is copied than another system call costs.
"""

import socket
from collections import deque
from collections.abc import Iterable
from typing import Final

from sparklog.model.parts import FileSlice, Part, part_length, parts_length, read_parts
from sparklog.network.streams.byte_stream import ByteStream

READ_BYTES_MAX: Final = 16 * 1024
"""Longer replies go out in pieces, slices of files among them by ``sendfile``."""

_BUFFERS_MAX: Final = 64
"""Buffers in one sendmsg; the kernel's limit is 1,024, and more than a few dozen gain nothing."""

_MORE_FOLLOWS: Final[int] = getattr(socket, "MSG_MORE", 0)
"""Linux: hold back the last, incomplete packet, because a file's bytes follow at once."""


class OutboundParts:
    """What is still to be written of one reply."""

    __slots__ = ("_parts", "sent_bytes")

    def __init__(self, parts: Iterable[Part]) -> None:
        """Raises OSError if a file ended before a short slice of it."""
        parts = [part for part in parts if part_length(part) > 0]
        if len(parts) > 1 and parts_length(parts) <= READ_BYTES_MAX:
            parts = [read_parts(parts)]
        self._parts = deque(parts)
        self.sent_bytes = 0

    def write(self, stream: ByteStream, turn_bytes: int) -> bool:
        """Write until the stream is full, all is written, or about ``turn_bytes`` have gone.

        Returns whether the kernel has all of it. Raises OSError when the peer is gone or a file ended before
        its slice.
        """
        stop_at = self.sent_bytes + turn_bytes
        try:
            while self._parts and self.sent_bytes < stop_at:
                first = self._parts[0]
                if isinstance(first, FileSlice):
                    self._send_slice(stream, first, stop_at - self.sent_bytes)
                elif not self._send_bytes(stream):
                    return False
        except BlockingIOError:
            return False
        return not self._parts and (not stream.unsent_bytes or stream.flush())

    def _send_slice(self, stream: ByteStream, part: FileSlice, bytes_max: int) -> None:
        sent = stream.send_slice(part, max(bytes_max, 1))
        if sent == 0:
            raise OSError(f"{part.file} ended {part.length} bytes before a slice of it that was being sent")
        self.sent_bytes += sent
        if sent == part.length:
            self._parts.popleft()
        else:
            self._parts[0] = FileSlice(part.file, part.position + sent, part.length - sent)

    def _send_bytes(self, stream: ByteStream) -> bool:
        """Write the leading run of bytes in one call; False if the stream did not take all of it."""
        first = self._parts[0]
        if len(self._parts) == 1 and not isinstance(first, FileSlice):
            sent = stream.send(first)
            self.sent_bytes += sent
            return self._forget(sent)
        buffers: list[bytes | memoryview] = []
        flags = 0
        for part in self._parts:
            if isinstance(part, FileSlice):
                flags = _MORE_FOLLOWS
                break
            if len(buffers) == _BUFFERS_MAX:
                break
            buffers.append(part)
        sent = stream.sendmsg(buffers, (), flags) if len(buffers) > 1 else stream.send(buffers[0], flags)
        self.sent_bytes += sent
        return self._forget(sent)

    def _forget(self, sent: int) -> bool:
        """Drop ``sent`` bytes from the front; whether the cut is at the end of a part."""
        while sent:
            part = self._parts[0]
            assert not isinstance(part, FileSlice), part
            if sent < len(part):
                self._parts[0] = memoryview(part)[sent:]
                return False
            sent -= len(part)
            self._parts.popleft()
        return True
