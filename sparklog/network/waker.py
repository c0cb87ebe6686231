"""A pipe that makes a thread return from its selector."""

import os
import threading
from typing import Final

_DRAIN_BYTES: Final = 64


class Waker:
    """Wakes one selecting thread from any other; many wakes before it looks cost one system call.

    The order is what makes it safe. Who wakes first leaves work in a queue, then calls ``wake``. The woken
    thread first calls ``clear``, then looks at the queue. So either it sees the work, or a byte is waiting.
    """

    __slots__ = ("_guard", "_is_closed", "_is_set", "_reader", "_writer")

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._is_set = False
        self._guard = threading.Lock()
        self._is_closed = False

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        """Does nothing once closed: by then the number of the descriptor may be somebody else's file."""
        if self._is_set:
            return
        with self._guard:
            if not (self._is_set or self._is_closed):
                self._is_set = True
                os.write(self._writer, b"\0")

    def clear(self) -> None:
        """Called by the woken thread after its selector has reported this pipe."""
        with self._guard:
            os.read(self._reader, _DRAIN_BYTES)
            self._is_set = False

    def close(self) -> None:
        with self._guard:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._reader)
                os.close(self._writer)
