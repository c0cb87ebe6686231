"""Which broker a task becomes.

On one machine the answer is fixed: slot 0 is the first id, and so on. On a cluster Spark decides where a
task runs, and a broker's identity stays with its data: a task that lands on a host with the directories of
broker 2 must become broker 2. An id whose data no host has reported is held back for a while after the start,
because its host may be slow. After that, a task without data gets the id, and its empty replicas catch up.

Pure: time is an argument. The supervisor guards it with its lock.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

OWNER_WAIT_MS: Final = 15_000
"""How long an id is held back whose data may be on a host that has not reported yet."""


class IdAssignment(Protocol):
    """Hands out broker ids; each belongs to one slot at a time."""

    @property
    def ids(self) -> Sequence[int]: ...

    def id_of(self, slot: int) -> int | None:
        """The id that the slot will have wherever it runs; None if that shows only there."""
        ...

    def claim(self, slot: int, found: Sequence[int], now_ms: int, wanted: Collection[int]) -> int | None:
        """The id for ``slot`` on a host that has the data of ``found``, one of those that are ``wanted``;
        None means ask again later.
        """
        ...

    def release(self, slot: int) -> None:
        """The slot's process has ended; its id is free."""
        ...


@dataclass(slots=True)
class FixedIds:
    """Slot by slot, wherever it runs: for brokers of one machine."""

    ids: Sequence[int]

    def id_of(self, slot: int) -> int | None:
        return self.ids[slot]

    def claim(self, slot: int, found: Sequence[int], now_ms: int, wanted: Collection[int]) -> int | None:
        return self.ids[slot] if self.ids[slot] in wanted else None

    def release(self, slot: int) -> None:
        """Nothing to do: the id stays with the slot."""


@dataclass(slots=True)
class IdsByData:
    """A task gets an id whose data its host has. Other ids go to any host, once all slots have reported
    or ``OWNER_WAIT_MS`` have passed.
    """

    ids: Sequence[int]
    started_ms: int
    _holders: dict[int, int] = field(default_factory=dict)
    """Slot to the broker id that it has."""
    _waiting: set[int] = field(default_factory=set)

    def id_of(self, slot: int) -> int | None:
        return None

    def claim(self, slot: int, found: Sequence[int], now_ms: int, wanted: Collection[int]) -> int | None:
        self.release(slot)
        held = self._holders.values()
        free = [broker_id for broker_id in self.ids if broker_id in wanted and broker_id not in held]
        own = [broker_id for broker_id in free if broker_id in found]
        self._waiting.add(slot)
        all_heard = len(self._holders) + len(self._waiting) >= len(wanted)
        may_take_any = all_heard or now_ms - self.started_ms >= OWNER_WAIT_MS
        given = own[0] if own else free[0] if free and may_take_any else None
        if given is not None:
            self._waiting.discard(slot)
            self._holders[slot] = given
        return given

    def release(self, slot: int) -> None:
        self._holders.pop(slot, None)
        self._waiting.discard(slot)
