"""A better placement of partitions that exist: even, over racks, and with as few copies as possible.

A new topic is placed from nothing (``sparklog.core.controller.topics.assignment``). Here every replica that
moves is a copy over the network, so a replica stays where it is if the rules allow that:

1. Replicas on unwanted brokers are removed, and missing replicas are added.
2. A partition with two replicas in one rack and none in another moves one of the two to the empty rack.
3. Within each topic, replicas move from the broker with most to the broker with fewest until no two differ by
   more than one; then so over all topics together, by moves that keep each topic even.
4. The first replica, which is the preferred leader, is chosen so that these are even too. That moves no data.

Racks go before evenness. They count only if every wanted broker names one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparklog.core.placement.preferred_leaders import Placement, PreferredLeaders
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition


def plan_placement(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Mapping[int, str | None],
    *,
    replication_factor: int | None = None,
) -> Placement:
    """Where the partitions of ``current`` should be: on ``brokers`` (with their racks) alone.

    Without ``replication_factor`` each keeps the number of replicas that it has. Raises ConfigError.
    """
    for partition, replicas in current.items():
        factor = replication_factor or len(replicas)
        if factor > len(brokers):
            raise ConfigError(
                f"{partition} cannot have {factor} replicas on {len(brokers)} brokers {sorted(brokers)}: "
                f"name more brokers, or a replication factor of at most {len(brokers)}"
            )
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    desk = _Desk({broker: racks[broker] if len(racks) == len(brokers) else "" for broker in brokers})
    for partition in sorted(current):
        desk.take(partition, current[partition], replication_factor or len(current[partition]))
    for partition in sorted(current):
        desk.complete(partition, replication_factor or len(current[partition]))
    desk.spread_over_racks()
    desk.even_out()
    return PreferredLeaders(current, desk.replicas).placement()


@dataclass(slots=True)
class _Desk:
    """The placement while it is being made."""

    racks: Mapping[int, str]
    replicas: dict[TopicPartition, list[int]] = field(default_factory=dict)
    loads: Counter[int] = field(default_factory=Counter)
    topics: dict[str, Counter[int]] = field(default_factory=dict)
    """Replicas that each broker has of a topic."""
    partitions: dict[str, list[TopicPartition]] = field(default_factory=dict)

    def take(self, partition: TopicPartition, present: Sequence[int], factor: int) -> None:
        """Keep as many of the ``present`` replicas as may stay; the last of those that are too many go."""
        self.replicas[partition] = []
        self.topics.setdefault(partition.topic, Counter())
        self.partitions.setdefault(partition.topic, []).append(partition)
        for broker in present:
            if broker in self.racks:
                self._add(partition, broker)
        while len(self.replicas[partition]) > factor:
            surplus = self.replicas[partition][1:]
            crowded = Counter(self.racks[broker] for broker in self.replicas[partition])
            self._remove(partition, max(reversed(surplus), key=lambda one: crowded[self.racks[one]]))

    def complete(self, partition: TopicPartition, factor: int) -> None:
        while len(self.replicas[partition]) < factor:
            used = self._racks_of(partition)
            free = [broker for broker in self.racks if broker not in self.replicas[partition]]
            self._add(
                partition, min(free, key=lambda one: (self.racks[one] in used, *self._load(partition, one)))
            )

    def spread_over_racks(self) -> None:
        rack_count = len(set(self.racks.values()))
        for partition, replicas in self.replicas.items():
            while len(used := self._racks_of(partition)) < min(rack_count, len(replicas)):
                crowded = Counter(self.racks[broker] for broker in replicas)
                leaving = max(
                    (one for one in replicas if crowded[self.racks[one]] > 1),
                    key=lambda one: self._load(partition, one),
                )
                free = [broker for broker, rack in self.racks.items() if rack not in used]
                self._move(partition, leaving, min(free, key=lambda one: self._load(partition, one)))

    def even_out(self) -> None:
        for topic, counts in self.topics.items():
            while self._move_one(counts, [topic]):
                pass
        while self._move_one(self.loads, list(self.topics)):
            pass

    def _move_one(self, counts: Counter[int], topics: Sequence[str]) -> bool:
        """Move a replica of one of ``topics`` between two brokers whose ``counts`` differ by two or more."""
        for source, target in _unequal_pairs(counts, self.loads, self.racks):
            for topic in topics:
                ahead = self.topics[topic][source] - self.topics[topic][target]
                if ahead < 1:
                    continue  # the topic would become less even
                for partition in self.partitions[topic]:
                    if self._may_move(partition, source, target):
                        self._move(partition, source, target)
                        return True
        return False

    def _may_move(self, partition: TopicPartition, source: int, target: int) -> bool:
        replicas = self.replicas[partition]
        if source not in replicas or target in replicas:
            return False
        kept = {self.racks[one] for one in replicas if one != source}
        return len(kept | {self.racks[target]}) >= len(self._racks_of(partition))

    def _racks_of(self, partition: TopicPartition) -> set[str]:
        return {self.racks[broker] for broker in self.replicas[partition]}

    def _load(self, partition: TopicPartition, broker: int) -> tuple[int, int, int]:
        return self.topics[partition.topic][broker], self.loads[broker], broker

    def _move(self, partition: TopicPartition, source: int, target: int) -> None:
        self._remove(partition, source)
        self._add(partition, target)

    def _add(self, partition: TopicPartition, broker: int) -> None:
        self.replicas[partition].append(broker)
        self.loads[broker] += 1
        self.topics[partition.topic][broker] += 1

    def _remove(self, partition: TopicPartition, broker: int) -> None:
        self.replicas[partition].remove(broker)
        self.loads[broker] -= 1
        self.topics[partition.topic][broker] -= 1


def _unequal_pairs(
    counts: Counter[int], loads: Counter[int], brokers: Mapping[int, str]
) -> Iterator[tuple[int, int]]:
    """Brokers with too much and with too little of something, the most unequal first."""
    ranked = sorted(brokers, key=lambda one: (counts[one], loads[one], one))
    pairs = [
        (source, target)
        for source in reversed(ranked)
        for target in ranked
        if counts[source] - counts[target] > 1
    ]
    pairs.sort(key=lambda pair: counts[pair[1]] - counts[pair[0]])
    return iter(pairs)
