"""The placement of a new topic's replicas: evenly over brokers, and over racks where brokers have racks.

This is Kafka's placement. Leaders are assigned round robin from a random start. The followers of a partition
are shifted from its leader, and the shift grows with every round, so that all other brokers share the load of
a dead broker. With racks the brokers are first interleaved by rack, and a rack or a broker is used again only
after all others. A broker without a rack has its Spark application as its rack, so that no single application
has all replicas of a partition.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from sparklog.model.cluster_facts import Broker
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId

Placement = tuple[tuple[BrokerId, ...], ...]
"""The replicas of each partition, by its number; the first of them is the preferred leader."""


def place(brokers: Sequence[Broker], *, partitions: int, replication_factor: int, seed: int) -> Placement:
    """The placement of a new topic; ``seed`` decides where it starts. Raises KafkaError."""
    if partitions <= 0:
        raise KafkaError(ErrorCode.invalid_partitions, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        message = "Replication factor must be larger than 0."
        raise KafkaError(ErrorCode.invalid_replication_factor, message)
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}. "
            f"Choose {len(brokers)} or less, or start more brokers.",
        )
    racked = [broker.id for broker in brokers if broker.rack is not None]
    if racked and len(racked) < len(brokers):
        raise KafkaError(
            ErrorCode.invalid_replica_assignment,
            f"Not all brokers have rack information for replica rack aware assignment: only {sorted(racked)} "
            "have one; start all brokers with a rack, or none.",
        )
    spread = _RackAware(brokers) if racked else _Unaware(brokers)
    start = seed % len(brokers)
    shift = (seed // len(brokers)) % len(brokers)
    return spread.place(partitions, replication_factor, start, shift)


class _Unaware:
    """Placement over brokers without racks."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self.brokers = sorted(broker.id for broker in brokers)

    def place(self, partitions: int, replication_factor: int, start: int, shift: int) -> Placement:
        count = len(self.brokers)
        placement = []
        for partition in range(partitions):
            if partition > 0 and partition % count == 0:
                shift += 1
            first = (partition + start) % count
            places = [first, *(_follower(first, shift, j, count) for j in range(replication_factor - 1))]
            placement.append(tuple(self.brokers[place] for place in places))
        return tuple(placement)


class _RackAware:
    """Placement over brokers that all name their rack."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self.racks = {broker.id: broker.rack or "" for broker in brokers}
        self.brokers = _interleave(self.racks)
        self.rack_count = len(set(self.racks.values()))

    def place(self, partitions: int, replication_factor: int, start: int, shift: int) -> Placement:
        count = len(self.brokers)
        placement = []
        for partition in range(partitions):
            if partition > 0 and partition % count == 0:
                shift += 1
            placement.append(self._replicas((partition + start) % count, replication_factor, shift))
        return tuple(placement)

    def _replicas(self, first: int, replication_factor: int, shift: int) -> tuple[BrokerId, ...]:
        replicas = [self.brokers[first]]
        step = 0
        while len(replicas) < replication_factor:
            place = _follower(first, shift * self.rack_count, step, len(self.brokers))
            step += 1
            if self._may_follow(self.brokers[place], replicas):
                replicas.append(self.brokers[place])
        return tuple(replicas)

    def _may_follow(self, broker: BrokerId, replicas: Sequence[BrokerId]) -> bool:
        if broker in replicas:
            return False
        used = {self.racks[replica] for replica in replicas}
        return len(used) == self.rack_count or self.racks[broker] not in used


def _follower(first: int, shift: int, j: int, count: int) -> int:
    """The place of follower ``j`` of a partition whose leader has place ``first``: never the leader's own."""
    return (first + 1 + (shift + j) % (count - 1)) % count


def _interleave(racks: dict[BrokerId, str]) -> list[BrokerId]:
    """The first broker of each rack, then the second of each, and so on."""
    by_rack: defaultdict[str, list[BrokerId]] = defaultdict(list)
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for one_round in rounds for broker in one_round if broker is not None]
