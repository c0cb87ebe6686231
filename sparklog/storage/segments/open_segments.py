"""Which sealed segments of a log keep their files and indexes open after a read.

Without it, a reader of old records would open and close a segment's files with every fetch. The bound limits
the file descriptors of a broker with many logs. The segment that has been open longest is closed first.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from sparklog.storage.segments.segment import Segment

SEALED_OPEN_MAX: Final = 4
"""Sealed segments of one log that stay open."""


class OpenSegments:
    """The sealed segments of one log that are open; the partition's lock guards every call."""

    __slots__ = ("_sealed",)

    def __init__(self) -> None:
        self._sealed: deque[Segment] = deque()

    def keep(self, segment: Segment, active: Segment) -> None:
        """Keep ``segment`` open; the ``active`` segment always is."""
        if segment is active or segment in self._sealed:
            return
        self._sealed.append(segment)
        if len(self._sealed) > SEALED_OPEN_MAX:
            self._sealed.popleft().cool()

    def forget_all_but(self, sealed: Sequence[Segment]) -> None:
        """Drop all segments but ``sealed``, without closing them: the caller closes or removes them."""
        self._sealed = deque(segment for segment in self._sealed if segment in sealed)
