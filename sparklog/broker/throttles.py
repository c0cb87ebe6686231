"""The throttles of a broker's replication, one for what it sends and one for what it fetches.

They apply to replicas that their topic's setting names and that are out of sync. A replica in sync is never
throttled, because it would leave the ISR. Rates and names are dynamic settings.
"""

from collections.abc import Callable, Iterable

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.throttle import Throttle, ThrottledPartitions
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig, TopicConfig
from sparklog.model.time import Clock


class ReplicationThrottle:
    """One of the two. ``is_active`` is read without the guard, because a late change is harmless."""

    def __init__(self, clock: Clock, guard: Guard) -> None:
        self._clock = clock
        self._guard = guard
        self._throttle = Throttle()
        self._topics: dict[str, ThrottledPartitions] = {}
        self.is_active = False

    def set_rate(self, bytes_per_s: int) -> None:
        with self._guard:
            self._throttle.set_rate(bytes_per_s, self._clock.monotonic_ms())
            self.is_active = self._throttle.is_limited and bool(self._topics)

    def set_topic(self, topic: str, setting: Iterable[str], broker: BrokerId) -> None:
        """Which partitions of ``topic`` are throttled, by its setting."""
        partitions = ThrottledPartitions.of(setting, broker)
        with self._guard:
            if partitions:
                self._topics[topic] = partitions
            else:
                self._topics.pop(topic, None)
            self.is_active = self._throttle.is_limited and bool(self._topics)

    def names(self, topic_partition: TopicPartition) -> bool:
        partitions = self._topics.get(topic_partition.topic)
        return partitions is not None and topic_partition.partition in partitions

    def left(self) -> int:
        """Bytes that may go now."""
        with self._guard:
            return self._throttle.left(self._clock.monotonic_ms())

    def spend(self, size_bytes: int) -> None:
        with self._guard:
            self._throttle.spend(size_bytes, self._clock.monotonic_ms())

    # For leaders

    def allowance(self) -> "Allowance | None":
        """What one answer to a fetch may have; None if nothing is held back."""
        return Allowance(self, self.left()) if self.is_active else None

    def limits(self, partition: Partition, request: ReadRequest) -> bool:
        """Whether what ``request`` gets of ``partition`` counts."""
        follower = request.follower
        if follower is None or not self.names(partition.topic_partition):
            return False
        return not partition.is_in_sync(follower)

    def count(
        self,
        wanted: Iterable[tuple[TopicPartition, Partition, ReadRequest]],
        results: dict[TopicPartition, ReadResult],
    ) -> None:
        """An answer goes out: count what is throttled of it."""
        if self.is_active:
            size_bytes = sum(
                results[topic_partition].size_bytes
                for topic_partition, partition, request in wanted
                if results[topic_partition].size_bytes and self.limits(partition, request)
            )
            if size_bytes:
                self.spend(size_bytes)

    # For followers

    def holds_back(self, topic_partition: TopicPartition) -> bool:
        """Whether a replica that lags must not be fetched for now."""
        return self.is_active and self.names(topic_partition) and self.left() <= 0


class Allowance:
    """What is left for one answer, from partition to partition; it counts once the answer goes out."""

    __slots__ = ("_throttle", "left")

    def __init__(self, throttle: ReplicationThrottle, left: int) -> None:
        self._throttle = throttle
        self.left = left

    def limits(self, partition: Partition, request: ReadRequest) -> bool:
        return self._throttle.limits(partition, request)


class ReplicationThrottles:
    """Both throttles of a broker, with the rates and the partitions that settings name."""

    def __init__(self, clock: Clock, new_guard: Callable[[], Guard]) -> None:
        self.leader = ReplicationThrottle(clock, new_guard())
        """Limits what this broker sends to replicas out of sync."""
        self.follower = ReplicationThrottle(clock, new_guard())
        """Limits what this broker fetches."""

    def set_rates(self, config: BrokerConfig) -> None:
        self.leader.set_rate(config.get_int("leader.replication.throttled.rate"))
        self.follower.set_rate(config.get_int("follower.replication.throttled.rate"))

    def set_topic(self, topic: str, config: TopicConfig, broker: BrokerId) -> None:
        for side, throttle in (("leader", self.leader), ("follower", self.follower)):
            throttle.set_topic(topic, config.get_list(f"{side}.replication.throttled.replicas"), broker)
