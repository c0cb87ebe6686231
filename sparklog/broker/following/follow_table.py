"""The leaders of followed partitions, and the fetchers that fetch them.

A topic may be recreated under its name while a message about the earlier one is on its way. So an entry is of
a name *and* of one partition object. A partition that begins to follow replaces any other of its name, and a
message about a replaced partition changes nothing.

Not thread-safe; ``Fetchers`` holds its guard around it.
"""

from typing import Generic, Protocol, TypeVar

from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import TopicPartition


class RunsFetcher(Protocol):
    """Whoever makes a fetcher's rounds happen: a thread, or the simulation's loop."""

    @property
    def fetcher(self) -> Fetcher: ...


Runner = TypeVar("Runner", bound=RunsFetcher)


class FollowTable(Generic[Runner]):
    """The partitions of one broker that follow, each with the runner of its fetcher."""

    def __init__(self) -> None:
        self._followed: dict[TopicPartition, tuple[Partition, Runner]] = {}

    def follow(self, partition: Partition, runner: Runner) -> None:
        """Let ``runner`` fetch for it, instead of any earlier partition of the same name."""
        known = self._followed.get(partition.topic_partition)
        if known is not None:
            self.stop(known[0])
        self._followed[partition.topic_partition] = (partition, runner)
        runner.fetcher.add(partition)

    def stop(self, partition: Partition) -> None:
        """End the fetches for a partition. A partition that does not follow, or was replaced, changes
        nothing.
        """
        runner = self.runner_of(partition)
        if runner is not None:
            del self._followed[partition.topic_partition]
            runner.fetcher.remove(partition)

    def runner_of(self, partition: Partition) -> Runner | None:
        """The runner of the partition's fetcher; None for a partition that does not follow."""
        known = self._followed.get(partition.topic_partition)
        return None if known is None or known[0] is not partition else known[1]
