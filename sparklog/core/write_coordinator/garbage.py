"""Members of writes that are over, whose records are removed from the log, a piece at a time.

over --> waiting --> tombstones under way --> Written: the next piece
            ^                |
            +---- Refused ---+
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.write_coordinator.records import MemberKey

KEYS_PER_PIECE: Final = 200
"""Tombstones that are written together."""


@dataclass(slots=True)
class Garbage:
    """The garbage of one partition."""

    waiting: deque[MemberKey] = field(default_factory=deque)
    """Members whose tombstones are still to be written."""
    removing: tuple[MemberKey, ...] = ()
    """Members whose tombstones are in progress; none of them is in ``waiting``."""

    def add(self, members: Iterable[MemberKey]) -> None:
        self.waiting.extend(members)

    def begin_removal(self) -> tuple[StateRecord, ...]:
        """The next tombstones to write; none while others are under way, or if no member is left."""
        if self.removing:
            return ()
        count = min(len(self.waiting), KEYS_PER_PIECE)
        self.removing = tuple(self.waiting.popleft() for _ in range(count))
        return tuple(StateRecord(key, None) for key in self.removing)

    def end_removal(self, *, is_removed: bool) -> None:
        """The outcome of the tombstones under way. If the log refused them, they wait at the front again."""
        if not is_removed:
            self.waiting.extendleft(reversed(self.removing))
        self.removing = ()

    def clear(self) -> None:
        self.waiting.clear()
        self.removing = ()
