"""Which sealed segments of a log keep their files and indexes open after a read.

Readers of old records would otherwise open and close a segment's files with every fetch. The bound limits the
file descriptors of a broker with many logs. The segment that was kept longest is closed first.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from sparklog.storage.segment import Segment

SEALED_OPEN_MAX: Final = 4
"""Sealed segments of one log that stay open."""


class OpenSegments:
    """The sealed segments of one log that are open; the partition's lock guards every call."""

    __slots__ = ("_sealed",)

    def __init__(self) -> None:
        self._sealed: deque[Segment] = deque()

    def keep(self, segment: Segment, active: Segment) -> None:
        """Keep ``segment`` open unless it is the ``active`` one, which always is."""
        if segment is active or segment in self._sealed:
            return
        self._sealed.append(segment)
        if len(self._sealed) > SEALED_OPEN_MAX:
            self._sealed.popleft().cool()

    def forget_all_but(self, sealed: Sequence[Segment]) -> None:
        """Drop segments that the log no longer has; their owner closes or removes them."""
        self._sealed = deque(segment for segment in self._sealed if segment in sealed)
