"""Which replica of each partition should lead it where it can: as even as possible, with few changes."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sparklog.model.ids import TopicPartition

Placement = dict[TopicPartition, tuple[int, ...]]
"""The replicas of each partition, the preferred leader first."""


class PreferredLeaders:
    """Chooses the preferred leader of each partition among its replicas, changing as few as it can.

    A broker that leads too many hands one to a broker that leads too few, either directly or along a chain of
    brokers each of which takes one and gives one: without chains, a few overlapping replicas would be stuck.
    """

    def __init__(
        self,
        current: Mapping[TopicPartition, Sequence[int]],
        replicas: Mapping[TopicPartition, Sequence[int]],
    ) -> None:
        self._replicas = {
            partition: [one for one in current[partition] if one in found]
            + [one for one in found if one not in current[partition]]
            for partition, found in replicas.items()
        }
        self._leaders: dict[TopicPartition, int] = {}
        self._loads: Counter[int] = Counter()
        self._current = current

    def placement(self) -> Placement:
        topics: dict[str, list[TopicPartition]] = {}
        for partition in self._replicas:
            topics.setdefault(partition.topic, []).append(partition)
        for partitions in topics.values():
            self._choose(partitions)
            while self._hand_over(partitions):
                pass
        while self._hand_over(list(self._replicas)):
            pass
        return {
            partition: (leader, *(one for one in self._replicas[partition] if one != leader))
            for partition, leader in self._leaders.items()
        }

    def _choose(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            replicas = self._replicas[partition]
            stays = replicas[0] == next(iter(self._current[partition]), None)
            leader = replicas[0] if stays else min(replicas, key=lambda one: (self._loads[one], one))
            self._lead(partition, leader)

    def _lead(self, partition: TopicPartition, broker: int) -> None:
        if partition in self._leaders:
            self._loads[self._leaders[partition]] -= 1
        self._leaders[partition] = broker
        self._loads[broker] += 1

    def _hand_over(self, partitions: Sequence[TopicPartition]) -> bool:
        """Make the leaders of ``partitions`` more even by one; False if that cannot be done."""
        counts: Counter[int] = Counter()
        for partition in partitions:
            counts[self._leaders[partition]] += 1
            counts.update(dict.fromkeys(self._replicas[partition], 0))
        for source in sorted(counts, key=lambda one: (-counts[one], one)):
            chain = self._chain(partitions, source, counts)
            if chain:
                for partition, broker in chain:
                    self._lead(partition, broker)
                return True
        return False

    def _chain(
        self, partitions: Sequence[TopicPartition], source: int, counts: Mapping[int, int]
    ) -> list[tuple[TopicPartition, int]]:
        """The shortest chain of takers from ``source`` to a broker that leads two fewer, or more."""
        led: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            led.setdefault(self._leaders[partition], []).append(partition)
        came_by: dict[int, tuple[int, TopicPartition]] = {}
        reached, at = [source], 0
        while at < len(reached):
            giver = reached[at]
            at += 1
            if counts[giver] < counts[source] - 1:
                return self._walk_back(came_by, source, giver)
            for partition in led.get(giver, ()):
                for taker in self._replicas[partition]:
                    if taker != source and taker not in came_by:
                        came_by[taker] = (giver, partition)
                        reached.append(taker)
        return []

    @staticmethod
    def _walk_back(
        came_by: Mapping[int, tuple[int, TopicPartition]], source: int, end: int
    ) -> list[tuple[TopicPartition, int]]:
        chain = []
        while end != source:
            giver, partition = came_by[end]
            chain.append((partition, end))
            end = giver
        return chain
