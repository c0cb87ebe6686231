"""A thread for each fetcher, and the table of which partition follows whom.

A partition that begins to follow must be fetched for at once, also while its fetcher's thread hangs in a long
poll at the leader: the connection is dropped to end that poll. (Kafka lets it run out: up to half a second
in which the high watermark of a fresh leader stands still.)
"""

import logging
import threading
from collections.abc import Callable

from sparklog.broker.fetcher import Fetcher
from sparklog.broker.partition import Partition
from sparklog.broker.ports import Peers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

logger = logging.getLogger(__name__)


class FetcherThreads:
    """All fetchers of one broker (``replica_manager.Fetchers``)."""

    def __init__(self, new_fetcher: Callable[[BrokerId], Fetcher], peers: Peers) -> None:
        self._new_fetcher = new_fetcher
        self._peers = peers
        self._lock = threading.Lock()
        self._runners: dict[BrokerId, _Runner] = {}
        self._followed: dict[TopicPartition, tuple[Partition, BrokerId]] = {}
        self._stopped = False

    def start(self, partition: Partition, leader: BrokerId) -> None:
        with self._lock:
            if self._stopped:
                return
            known = self._followed.get(partition.topic_partition)
            if known is not None:
                self._remove(known[0])
            self._followed[partition.topic_partition] = (partition, leader)
            runner = self._runners.get(leader)
            if runner is None:
                runner = self._runners[leader] = _Runner(self._new_fetcher(leader))
            runner.fetcher.add(partition)
        # In this order: the round that the lost connection ends would pause, and the waking ends that pause.
        if runner.is_polling:
            self._peers.forget(leader)
        runner.wake()

    def stop(self, partition: Partition) -> None:
        with self._lock:
            self._remove(partition)

    def ask_leader_offsets(self, partition: Partition, leader_epoch: int) -> None:
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
            self._peers.forget(runner.fetcher.leader)
        for runner in runners:
            runner.join()

    def _remove(self, partition: Partition) -> None:
        """End fetching for ``partition``, but not for another of the same name: a topic made anew."""
        known = self._followed.get(partition.topic_partition)
        if known is not None and known[0] is partition:
            del self._followed[partition.topic_partition]
            self._runners[known[1]].fetcher.remove(partition)

    def _runner_of(self, partition: Partition) -> "_Runner | None":
        with self._lock:
            known = self._followed.get(partition.topic_partition)
            return None if known is None or known[0] is not partition else self._runners[known[1]]


class _Runner:
    """One fetcher's thread: round after round, asleep while there is nothing to fetch."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self.stopping = False
        self.is_polling = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fetcher-from-{fetcher.leader}", daemon=True)
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
