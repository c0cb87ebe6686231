"""All fetchers of a broker, each with a loop of its own, and the table of which fetches for which partition.

A partition that begins to follow must be fetched for at once, also while its fetcher waits in a long poll at
the leader: its connection is closed to end that poll. (Kafka lets the poll run out, and the high watermark of
a fresh leader stands still for up to half a second.) Of many partitions that begin together only the last one
ends the poll: a new topic of 1,000 partitions would cost as many connections otherwise.

With ``num.replica.fetchers`` above 1 a leader has so many fetchers, each on a lane of its own, which is a
connection, and the partitions are spread over them.

A topic may be recreated under its name while a message about the earlier one is on its way. So an entry of
the table is of a name *and* of one partition object. A partition that begins to follow replaces any other of
its name, and a message about a replaced partition changes nothing.
"""

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.loops import Await, Loop, Loops, Signal
from sparklog.model.ports import Guard

logger: Final = logging.getLogger(__name__)


class Fetchers:
    """``replicas.effects.Fetchers`` over ``Loops``."""

    def __init__(
        self,
        new_fetcher: Callable[[BrokerId, int], Fetcher],
        loops: Loops,
        hang_up: Callable[[BrokerId, int], None],
        *,
        lanes: int,
        guard: Guard,
    ) -> None:
        """``new_fetcher`` and ``hang_up`` are given leader and lane; ``hang_up`` ends the call there."""
        self._new_fetcher = new_fetcher
        self._loops = loops
        self._hang_up = hang_up
        self._lanes = lanes
        self._guard = guard
        self._runners: dict[tuple[BrokerId, int], _Runner] = {}
        self._followed: dict[TopicPartition, tuple[Partition, _Runner]] = {}
        self._together = 0
        self._late: dict[_Runner, None] = {}
        """Those that got partitions while many begin together, in the order of their first one."""

    def start(self, partition: Partition, leader: BrokerId) -> None:
        with self._guard:
            runner = self._runner(leader, lane_of(partition.topic_partition, self._lanes))
            self._follow(partition, runner)
            if self._together:
                self._late[runner] = None
                return
        self._hurry(runner)

    def _runner(self, leader: BrokerId, lane: int) -> "_Runner":
        runner = self._runners.get((leader, lane))
        if runner is None:
            runner = self._runners[leader, lane] = _Runner(self._new_fetcher(leader, lane), lane)
            self._loops.start(f"fetcher-{lane}-from-{leader}", runner.loop)
        return runner

    @contextmanager
    def together(self) -> Iterator[None]:
        """Polls that are underway end once for all partitions that begin to follow within."""
        with self._guard:
            self._together += 1
        try:
            yield
        finally:
            with self._guard:
                self._together -= 1
                late, self._late = self._late, {}
            for runner in late:
                self._hurry(runner)

    def _hurry(self, runner: "_Runner") -> None:
        # In this order: the round that the lost connection ends would pause, and the waking ends that pause.
        if runner.is_polling:
            self._hang_up(runner.fetcher.leader, runner.lane)
        runner.woken.give()

    def stop(self, partition: Partition) -> None:
        with self._guard:
            self._stop(partition)

    def ask_leader_offsets(self, partition: Partition) -> None:
        if (runner := self._runner_of(partition)) is not None:
            runner.fetcher.ask_leader_offsets(partition)

    def back_off(self, partition: Partition, error: ErrorCode) -> None:
        logger.info("%s: fetching pauses after %s", partition.topic_partition, error.name)
        if (runner := self._runner_of(partition)) is not None:
            runner.fetcher.back_off(partition)

    def _runner_of(self, partition: Partition) -> "_Runner | None":
        with self._guard:
            return self._follower(partition)

    # Within the guard

    def _follow(self, partition: Partition, runner: "_Runner") -> None:
        """Let ``runner`` fetch for it, instead of any earlier partition of the same name."""
        known = self._followed.get(partition.topic_partition)
        if known is not None:
            self._stop(known[0])
        self._followed[partition.topic_partition] = (partition, runner)
        runner.fetcher.add(partition)

    def _stop(self, partition: Partition) -> None:
        """Nothing changes if the partition does not follow, or was replaced."""
        runner = self._follower(partition)
        if runner is not None:
            del self._followed[partition.topic_partition]
            runner.fetcher.remove(partition)

    def _follower(self, partition: Partition) -> "_Runner | None":
        """None for a partition that does not follow."""
        known = self._followed.get(partition.topic_partition)
        return None if known is None or known[0] is not partition else known[1]


def lane_of(topic_partition: TopicPartition, lanes: int) -> int:
    """Which of a leader's fetchers pulls for a partition: those of one topic are spread evenly."""
    return (zlib.crc32(topic_partition.topic.encode()) + topic_partition.partition) % lanes


class _Runner:
    """Round after round of one fetcher, asleep while there is nothing to fetch."""

    def __init__(self, fetcher: Fetcher, lane: int) -> None:
        self.fetcher = fetcher
        self.lane = lane
        self.is_polling = False
        self.woken = Signal()

    def loop(self) -> Loop:
        while True:
            self.woken.take()
            self.is_polling = True
            try:
                pause_ms = yield from self.fetcher.round()
            finally:
                self.is_polling = False
            if pause_ms > 0:
                yield Await(self.woken, pause_ms)
