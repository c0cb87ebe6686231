"""Placements in which only what must move does: a broker is emptied, or a new broker gets its share.

``plan_placement`` makes everything even, and would copy far more. Here replicas of other brokers stay:

- *Drained* brokers: each of their replicas goes to a broker that has none of the partition, in a rack that
  has none if there is one, and with the fewest replicas of the topic, then of all.
- *Filled* brokers: each takes replicas from those that have most, until it has as many as the average, and of
  preferred leaders as well. No partition loses a rack by that.

A replica is replaced at its place in the order, so preferred leaders spread as replicas do. Plans are made in
parts: what was planned before counts as moved, and then the next part follows from the placement alone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparklog.core.placement.preferred_leaders import Placement
from sparklog.model.ids import TopicPartition


@dataclass(slots=True)
class _Loads:
    """How many replicas each broker has, of each topic and of all, and how many it is preferred to lead."""

    racks: Mapping[int, str]
    """Racks of the brokers that may get replicas; all alike if any of them names none."""
    total: Counter[int] = field(default_factory=Counter)
    preferred: Counter[int] = field(default_factory=Counter)
    topics: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(
        cls, current: Mapping[TopicPartition, Sequence[int]], brokers: Mapping[int, str | None]
    ) -> "_Loads":
        named = {broker: rack for broker, rack in brokers.items() if rack is not None}
        loads = cls(named if len(named) == len(brokers) else dict.fromkeys(brokers, ""))
        for partition, replicas in current.items():
            loads.total.update(replicas)
            loads.topics[partition.topic].update(replicas)
            loads.preferred.update(replicas[:1])
        return loads

    def move(self, partition: TopicPartition, source: int, target: int, *, leads: bool) -> None:
        for counts in (self.total, self.topics[partition.topic]):
            counts[source] -= 1
            counts[target] += 1
        if leads:
            self.preferred[source] -= 1
            self.preferred[target] += 1

    def racks_of(self, replicas: Iterable[int]) -> set[str]:
        return {self.racks[one] for one in replicas if one in self.racks}

    def best_for(
        self, partition: TopicPartition, replicas: Collection[int], others: Collection[int]
    ) -> int | None:
        """The broker to take a replica beside ``others``; None if none is left."""
        used, of_topic = self.racks_of(others), self.topics[partition.topic]
        free = [broker for broker in self.racks if broker not in replicas]
        order = {one: (self.racks[one] in used, of_topic[one], self.total[one], one) for one in free}
        return min(free, key=order.__getitem__, default=None)


def plan_drain(
    current: Mapping[TopicPartition, Sequence[int]],
    moving: Iterable[TopicPartition],
    leaving: Collection[int],
    brokers: Mapping[int, str | None],
) -> tuple[Placement, list[TopicPartition]]:
    """New replicas of the partitions ``moving``, without those on brokers that are ``leaving``; and the
    partitions for which there are too few of ``brokers`` (with their racks), which are those that may take
    replicas.

    ``current`` has all partitions, those that are being moved with their target.
    """
    loads = _Loads.of(current, {one: rack for one, rack in brokers.items() if one not in leaving})
    planned: Placement = {}
    stuck = []
    for partition in moving:
        replicas = list(current[partition])
        for place, broker in enumerate(replicas):
            if broker not in leaving:
                continue
            others = [one for one in replicas if one not in leaving]
            target = loads.best_for(partition, replicas, others)
            if target is None:
                stuck.append(partition)
                break
            loads.move(partition, broker, target, leads=place == 0)
            replicas[place] = target
        else:
            planned[partition] = tuple(replicas)
    return planned, stuck


def plan_fill(
    current: Mapping[TopicPartition, Sequence[int]],
    filled: Collection[int],
    brokers: Mapping[int, str | None],
    *,
    at_most: int,
    fixed: Collection[TopicPartition] = (),
) -> Placement:
    """New replicas of at most ``at_most`` partitions that give ``filled`` their share of what ``brokers``,
    which include them, have. Empty once they have it. ``current``: as in ``plan_drain``. Partitions that are
    ``fixed`` count, and do not move.
    """
    return _Fill(current, filled, brokers, frozenset(fixed)).plan(at_most)


class _Fill:
    def __init__(
        self,
        current: Mapping[TopicPartition, Sequence[int]],
        filled: Collection[int],
        brokers: Mapping[int, str | None],
        fixed: Collection[TopicPartition],
    ) -> None:
        self._loads = _Loads.of(current, brokers)
        self._filled = sorted(filled)
        self._brokers = brokers
        self._replicas = {partition: tuple(replicas) for partition, replicas in current.items()}
        self._held: defaultdict[int, defaultdict[str, list[TopicPartition]]]
        self._held = defaultdict(lambda: defaultdict(list))
        for partition, replicas in self._replicas.items():
            for broker in () if partition in fixed else replicas:
                self._held[broker][partition.topic].append(partition)
        counted = sum(self._loads.total[broker] for broker in brokers)
        self._share = counted // max(1, len(brokers))
        self._leads_share = len(current) // max(1, len(brokers))

    def plan(self, at_most: int) -> Placement:
        planned: Placement = {}
        wanting = list(self._filled)
        while wanting and len(planned) < at_most:
            target = min(wanting, key=lambda one: (self._loads.total[one], one))
            found = self._next(target, planned) if self._loads.total[target] < self._share else None
            if found is None:
                wanting.remove(target)
                continue
            partition, source = found
            replicas = self._replicas[partition]
            self._loads.move(partition, source, target, leads=replicas[0] == source)
            planned[partition] = tuple(target if one == source else one for one in replicas)
        return planned

    def _next(
        self, target: int, planned: Mapping[TopicPartition, object]
    ) -> tuple[TopicPartition, int] | None:
        """The next partition to take a replica of, and from which broker."""
        givers = [one for one in self._brokers if one not in self._filled]
        for source in sorted(givers, key=lambda one: (-self._loads.total[one], one)):
            if self._loads.total[source] <= self._loads.total[target] + 1:
                return None
            found = self._from(source, target, planned)
            if found is not None:
                return found, source
        return None

    def _from(
        self, source: int, target: int, planned: Mapping[TopicPartition, object]
    ) -> TopicPartition | None:
        """A partition of the topic of which ``source`` has most more than ``target``; a led one if it lacks
        such.
        """
        wants_lead = self._loads.preferred[target] < self._leads_share
        topics, second_best = self._loads.topics, None
        for topic in sorted(
            self._held[source], key=lambda one: (topics[one][target] - topics[one][source], one)
        ):
            for partition in self._held[source][topic]:
                replicas = self._replicas[partition]
                if (
                    partition in planned
                    or target in replicas
                    or not self._keeps_racks(replicas, source, target)
                ):
                    continue
                if (replicas[0] == source) == wants_lead:
                    return partition
                second_best = second_best or partition
        return second_best

    def _keeps_racks(self, replicas: Sequence[int], source: int, target: int) -> bool:
        after = [target if one == source else one for one in replicas]
        return len(self._loads.racks_of(after)) >= len(self._loads.racks_of(replicas))
