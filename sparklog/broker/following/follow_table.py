"""Which partition follows whom, and by which fetcher it is fetched.

A topic may be deleted and made again under its name while a message about the earlier one is on its way. So a
partition is known by its name *and* by what it is: who begins to follow takes the place of whatever had that
name, and what is said of a partition that was replaced is nothing to the one in its place.

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
        """Nobody fetches for it any more; nothing if another has its name, or it does not follow."""
        runner = self.runner_of(partition)
        if runner is not None:
            del self._followed[partition.topic_partition]
            runner.fetcher.remove(partition)

    def runner_of(self, partition: Partition) -> Runner | None:
        """Who fetches for it, if anybody."""
        known = self._followed.get(partition.topic_partition)
        return None if known is None or known[0] is not partition else known[1]
