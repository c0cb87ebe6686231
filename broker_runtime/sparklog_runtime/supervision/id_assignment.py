"""Which broker a task becomes.

On one machine the answer is fixed: slot 0 is the first id, and so on. On a cluster Spark decides where a
task runs, and a broker's identity stays with its data: a task that lands on a host with the directories of
broker 2 must become broker 2. An id whose data was not seen yet is held back for a while after the start,
as the host that has it may just be slow; then a newcomer gets it, and an empty replica that catches up.

Pure: told the time, does nothing. The supervisor guards it with its lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

OWNER_WAIT_MS: Final = 15_000
"""How long an id that someone on another host may own is held back."""


class IdAssignment(Protocol):
    """Hands out broker ids; each belongs to one slot at a time."""

    def claim(self, slot: int, found: Sequence[int], now_ms: int) -> int | None:
        """The id for ``slot`` on a host that has the data of ``found``; None means ask again later."""
        ...

    def release(self, slot: int) -> None:
        """The slot's process has ended; its id is free."""
        ...


@dataclass(slots=True)
class FixedIds:
    """Slot by slot, wherever it runs: for brokers of one machine."""

    ids: Sequence[int]

    def claim(self, slot: int, found: Sequence[int], now_ms: int) -> int | None:
        return self.ids[slot]

    def release(self, slot: int) -> None:
        """Nothing to do: the id stays with the slot."""


@dataclass(slots=True)
class IdsByData:
    """Data decides; what nobody has data of goes to newcomers once all have been heard, or waited for."""

    ids: Sequence[int]
    started_ms: int
    _holders: dict[int, int] = field(default_factory=dict)
    """Slot to the broker id that it has."""
    _waiting: set[int] = field(default_factory=set)

    def claim(self, slot: int, found: Sequence[int], now_ms: int) -> int | None:
        self.release(slot)
        free = [broker_id for broker_id in self.ids if broker_id not in self._holders.values()]
        own = [broker_id for broker_id in free if broker_id in found]
        self._waiting.add(slot)
        all_heard = len(self._holders) + len(self._waiting) >= len(self.ids)
        may_take_any = all_heard or now_ms - self.started_ms >= OWNER_WAIT_MS
        given = own[0] if own else free[0] if free and may_take_any else None
        if given is not None:
            self._waiting.discard(slot)
            self._holders[slot] = given
        return given

    def release(self, slot: int) -> None:
        self._holders.pop(slot, None)
        self._waiting.discard(slot)
