"""The lean fetch of a follower: what both sides of a fetch session know, so that little has to be said.

A session's Fetch names partitions by topic id and number. Both sides number them alike: each partition gets
the next *slot* when the session first has it, in the order of the request. Of each partition whose position
has changed, a lean fetch says slot and position only; its answer says slot and news.

A slot is never given twice in a session. So a slot of a partition that has left the session is nobody's, and
never that of the partition that came after it. A partition that returns gets another slot.

Failure: a slot that one side does not know shows that the two have parted; a new session is begun by Fetch.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from sparklog.model.errors import ErrorCode

KeyT = TypeVar("KeyT", bound=Hashable)

EPOCH_MAX = 2**31 - 1


class LeanPosition(NamedTuple):
    """Where a follower goes on in one partition: the fields of a partition in Fetch."""

    slot: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    """The start of the follower's log."""


class LeanAnswer(NamedTuple):
    """A leader's news of one partition. An error has neither offsets (-1) nor bytes."""

    slot: int
    error_code: ErrorCode
    high_watermark: int
    log_start_offset: int
    size_bytes: int
    """The length of its batches, which follow those of earlier answers."""


def epoch_after(epoch: int) -> int:
    """The epoch of a session's next fetch; 0 only opens sessions."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


class SessionSlots(Generic[KeyT]):
    """The slots of one session, at one of its sides."""

    def __init__(self, keys: Iterable[KeyT] = ()) -> None:
        """``keys``: what the opening fetch names, in its order."""
        self._slots: dict[KeyT, int] = {}
        self._keys: dict[int, KeyT] = {}
        self._next = 0
        """Grows with each partition that is given a slot, and never falls."""
        for key in keys:
            self.give(key)

    def give(self, key: KeyT) -> None:
        """A fetch names ``key``; nothing changes if the session has it."""
        if key in self._slots:
            return
        self._slots[key] = self._next
        self._keys[self._next] = key
        self._next += 1

    def forget(self, key: KeyT) -> None:
        """A fetch takes ``key`` out of the session."""
        if (slot := self._slots.pop(key, None)) is not None:
            del self._keys[slot]

    def slot_of(self, key: KeyT) -> int | None:
        return self._slots.get(key)

    def key_of(self, slot: int) -> KeyT | None:
        return self._keys.get(slot)
