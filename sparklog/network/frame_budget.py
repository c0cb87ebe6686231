"""The bound on the bytes of requests that all connections together hold: ``queued.max.request.bytes``.

A frame is charged when its size is known and before memory is taken for it, and credited when its handler has
returned. Handlers never wait for another request, so every charge of a whole frame ends by itself. A request
that waits for followers is charged no longer, and the fetches that it waits for can be read.

A frame is admitted while any of the budget is left, whatever its size, so the frame of a client can be larger
than the whole budget (as in Kafka's SimpleMemoryPool). The excess is at most one frame.

While the budget is used up no thread blocks and no frame is dropped: processors stop reading new frames, and
the senders' windows fill up.
"""

import threading
from collections.abc import Callable


class FrameBudget:
    """``bytes_max`` bytes of frames for any number of threads."""

    def __init__(self, bytes_max: int) -> None:
        if bytes_max < 1:
            raise ValueError(f"a budget of {bytes_max} bytes admits no frame; it needs at least 1")
        self._bytes_max = self._bytes_left = bytes_max
        self._guard = threading.Lock()
        self._refused: dict[int, Callable[[], None]] = {}

    @property
    def held_bytes(self) -> int:
        """What is charged now; more than the budget if the last admitted frame exceeds it."""
        return self._bytes_max - self._bytes_left

    def charge(self, frame_bytes: int, processor: int, wake: Callable[[], None]) -> bool:
        """Whether a frame of this size may be read now; otherwise ``wake`` is called once when one may."""
        with self._guard:
            if self._bytes_left <= 0:
                self._refused[processor] = wake
                return False
            self._bytes_left -= frame_bytes
            return True

    def credit(self, frame_bytes: int) -> None:
        """End the charge of a frame."""
        with self._guard:
            self._bytes_left += frame_bytes
            if self._bytes_left <= 0 or not self._refused:
                return
            refused, self._refused = self._refused, {}
        for wake in refused.values():
            wake()
