"""What the entities of one kind of quota have used: of each that has a quota and was active lately.

An entity that was idle for long is as one that never was, and is forgotten, so that clients that come under
ever new names take no memory. Beyond ``ENTITIES_MAX`` the one that was idle longest is forgotten early.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from sparklog.core.client_quotas.quota_table import QuotaTable, Shared
from sparklog.core.client_quotas.sampled_rate import DELAY_MAX_MS, SampledRate, Windows
from sparklog.core.client_quotas.token_bucket import TokenBucket
from sparklog.model.time import MonotonicMs

ENTITIES_MAX: Final = 10_000
"""Entities of one kind that are remembered at the same time; each takes some two kilobytes."""

Measure = TypeVar("Measure", SampledRate, TokenBucket)


@dataclass(slots=True)
class Recent(Generic[Measure]):
    """A measure for each entity; the one that was active last is at the end."""

    new: Callable[[], Measure]
    entities_max: int = ENTITIES_MAX
    by_entity: OrderedDict[Shared, Measure] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self.by_entity)

    def of(self, entity: Shared, now_ms: MonotonicMs) -> Measure:
        measure = self.by_entity.pop(entity, None)
        if measure is None:
            self._forget_idle(now_ms)
            measure = self.new()
        self.by_entity[entity] = measure
        return measure

    def _forget_idle(self, now_ms: MonotonicMs) -> None:
        while self.by_entity:
            oldest = next(iter(self.by_entity.values()))
            if now_ms < oldest.idle_from_ms and len(self.by_entity) < self.entities_max:
                return
            self.by_entity.popitem(last=False)


class UsedRate(NamedTuple):
    """How much of its quota an entity uses now, for metrics."""

    shared: Shared
    bound: float
    rate: float
    delay_ms: int


@dataclass(slots=True)
class RateUsage:
    """One kind of quota that bounds a rate, and what was used of it."""

    table: QuotaTable
    windows: Windows
    delay_max_ms: int = DELAY_MAX_MS
    recent: Recent[SampledRate] = field(init=False)

    def __post_init__(self) -> None:
        self.recent = Recent(lambda: SampledRate(self.windows))

    def record(self, user: str, client_id: str, amount: float, now_ms: MonotonicMs) -> int:
        """How long the client must wait, now that it has used ``amount`` more; 0 if not at all.

        A negative ``amount`` was recorded, and was not used.
        """
        limit = self.table.find(user, client_id)
        if limit is None:
            return 0
        rate = self.recent.of(limit.shared, now_ms)
        rate.record(amount, now_ms)
        return rate.delay_ms(limit.bound, now_ms, self.delay_max_ms)

    def most_at_once(self, user: str, client_id: str) -> int | None:
        """What a request may use at most without waiting for ever after it: all of the shortest measured
        time. None: anything.
        """
        limit = self.table.find(user, client_id)
        return None if limit is None else int(limit.bound * self.windows.full_ms / 1_000)

    def used(self, entities_max: int, now_ms: MonotonicMs) -> list[UsedRate]:
        """The entities that were active last, at most so many."""
        found = []
        for shared, rate in islice(reversed(self.recent.by_entity.items()), entities_max):
            limit = self.table.find(shared.user, shared.client_id)
            if limit is not None and limit.shared == shared:
                delay_ms = rate.delay_ms(limit.bound, now_ms, self.delay_max_ms)
                found.append(UsedRate(shared, limit.bound, rate.rate(now_ms), delay_ms))
        return found
