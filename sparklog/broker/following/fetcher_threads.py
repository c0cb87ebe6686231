"""A thread for each fetcher; follow_table.py says which partition is whose.

A partition that begins to follow must be fetched for at once, also while its fetcher's thread hangs in a long
poll at the leader: the connection is dropped to end that poll. (Kafka lets it run out: up to half a second
in which the high watermark of a fresh leader stands still.) Of many that begin together only the last one
ends it: a new topic of 1,000 partitions would cost as many connections otherwise.

With ``num.replica.fetchers`` above 1 a leader has so many fetchers, each with a thread and a connection of
its own, and the partitions are spread over them.
"""

import logging
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.following.follow_table import FollowTable
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import Peers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

logger = logging.getLogger(__name__)


class FetcherThreads:
    """All fetchers of one broker (``replica_manager.Fetchers``)."""

    def __init__(self, new_fetcher: Callable[[BrokerId, Peers], Fetcher], lanes: Sequence[Peers]) -> None:
        """``lanes`` are connections of their own for each of the fetchers that a leader has."""
        self._new_fetcher = new_fetcher
        self._lanes = lanes
        self._lock = threading.Lock()
        self._runners: dict[tuple[BrokerId, int], _Runner] = {}
        self._followed: FollowTable[_Runner] = FollowTable()
        self._together = 0
        self._late: set[_Runner] = set()
        """Those that got partitions while many begin together."""
        self._stopped = False

    def start(self, partition: Partition, leader: BrokerId) -> None:
        with self._lock:
            if self._stopped:
                return
            runner = self._runner(leader, lane_of(partition.topic_partition, len(self._lanes)))
            self._followed.follow(partition, runner)
            if self._together:
                self._late.add(runner)
                return
        self._hurry(runner)

    def _runner(self, leader: BrokerId, lane: int) -> "_Runner":
        runner = self._runners.get((leader, lane))
        if runner is None:
            peers = self._lanes[lane]
            runner = _Runner(self._new_fetcher(leader, peers), peers, lane)
            self._runners[leader, lane] = runner
        return runner

    @contextmanager
    def together(self) -> Iterator[None]:
        """Polls that are underway end once for all partitions that begin to follow within."""
        with self._lock:
            self._together += 1
        try:
            yield
        finally:
            with self._lock:
                self._together -= 1
                late, self._late = self._late, set()
            for runner in late:
                self._hurry(runner)

    def _hurry(self, runner: "_Runner") -> None:
        # In this order: the round that the lost connection ends would pause, and the waking ends that pause.
        if runner.is_polling:
            runner.peers.forget(runner.fetcher.leader)
        runner.wake()

    def stop(self, partition: Partition) -> None:
        with self._lock:
            self._followed.stop(partition)

    def ask_leader_offsets(self, partition: Partition) -> None:
        if (runner := self._runner_of(partition)) is not None:
            runner.fetcher.ask_leader_offsets(partition)

    def back_off(self, partition: Partition, error: ErrorCode) -> None:
        logger.info("%s: fetching pauses after %s", partition.topic_partition, error.name)
        if (runner := self._runner_of(partition)) is not None:
            runner.fetcher.back_off(partition)

    def close(self) -> None:
        """Stop all threads and wait for them."""
        with self._lock:
            self._stopped = True
            runners = list(self._runners.values())
        for runner in runners:
            runner.stopping = True
            runner.wake()
            runner.peers.forget(runner.fetcher.leader)
        for runner in runners:
            runner.join()

    def _runner_of(self, partition: Partition) -> "_Runner | None":
        with self._lock:
            return self._followed.runner_of(partition)


def lane_of(topic_partition: TopicPartition, lanes: int) -> int:
    """Which of a leader's fetchers pulls for a partition: those of one topic are spread evenly."""
    return (zlib.crc32(topic_partition.topic.encode()) + topic_partition.partition) % lanes


class _Runner:
    """One fetcher's thread: round after round, asleep while there is nothing to fetch."""

    def __init__(self, fetcher: Fetcher, peers: Peers, lane: int) -> None:
        self.fetcher = fetcher
        self.peers = peers
        self.stopping = False
        self.is_polling = False
        self._woken = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"fetcher-{lane}-from-{fetcher.leader}", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self.stopping:
            self._woken.clear()
            self.is_polling = True
            try:
                pause_ms = self.fetcher.run_once()
            except Exception:
                # A bug must not end replication for every partition of this leader.
                logger.exception("a round of fetching from broker %d failed", self.fetcher.leader)
                pause_ms = 1_000
            finally:
                self.is_polling = False
            if pause_ms > 0 and not self.stopping:
                self._woken.wait(pause_ms / 1_000)
