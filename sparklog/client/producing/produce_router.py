"""The producer's router: finds leaders for partitions without one, and gives up batches at their deadline.

The router has its own thread, because it waits (for metadata, and in growing pauses between tries) where the
caller and the senders must not, and because deadlines pass without any other event.
"""

import threading
from collections.abc import Sequence
from typing import Final

from sparklog.client.calls.retry import BACKOFF_MAX_MS, BACKOFF_MS
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import HOPELESS, ClientClosed
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.producing.leader_sender import LeaderSender, ProduceTerms
from sparklog.client.producing.produce_ledger import ProduceLedger
from sparklog.client.producing.produce_queue import PartitionQueue, QueuedBatch
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerId, TopicPartition

REFRESH_TIMEOUT_MS: Final = 5_000
"""How long to ask for metadata before looking at the deadlines again."""
LOOK_AT_CLOCK_MS: Final = 200
"""How late a deadline may be noticed."""
JOIN_TIMEOUT_S: Final = 5.0

REMEDIES: Final = {
    ErrorCode.not_enough_replicas: (
        ", fewer replicas are in sync than the topic's min.insync.replicas: bring their brokers back"
    ),
    ErrorCode.listener_not_found: (
        ", its leader lacks the listener of this client's bootstrap.servers: give all brokers the same"
    ),
    ErrorCode.leader_not_available: ", no replica that may lead is alive: bring their brokers back",
}
"""The remedies of obstacles that last, for when a broker says no more than the error code."""


class ProduceRouter:
    """Owns the senders. ``start`` and ``close`` may be called more than once."""

    def __init__(
        self, cluster: ClusterClient, ledger: ProduceLedger, terms: ProduceTerms, timeout_ms: int
    ) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._terms = terms
        self._timeout_ms = timeout_ms
        self._senders: dict[BrokerId, LeaderSender] = {}
        self._due_ms: dict[TopicPartition, int] = {}  # when to search again, after an obstacle
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sparklog-produce-router", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End all threads; the ledger must be closing."""
        if self._thread is not None:
            self._thread.join(JOIN_TIMEOUT_S)
        for sender in self._senders.values():
            sender.close()
        for sender in self._senders.values():
            sender.join(JOIN_TIMEOUT_S)

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as error:  # noqa: BLE001 (flush raises it)
            self._ledger.crash(error)

    def _turn(self) -> bool:
        with self._ledger.changed:
            if self._ledger.is_closing:
                return False
            now_ms = self._cluster.clock.monotonic_ms()
            self._ledger.give_up_expired_locked(now_ms, self._why_expired)
            due, next_ms = self._due(self._ledger.homeless_locked(), now_ms)
            if not due:
                self._ledger.changed.wait(min(next_ms - now_ms, LOOK_AT_CLOCK_MS) / 1_000)
                return True
        self._route(due)
        return True

    def _due(self, homeless: Sequence[PartitionQueue], now_ms: int) -> tuple[list[PartitionQueue], int]:
        """Partitions to find a leader for now, and when the next one's pause ends."""
        due: list[PartitionQueue] = []
        next_ms = now_ms + LOOK_AT_CLOCK_MS
        for queue in homeless:
            due_ms = self._due_ms.setdefault(queue.topic_partition, now_ms + _pause_ms(queue.obstacle_count))
            if due_ms <= now_ms:
                due.append(queue)
            else:
                next_ms = min(next_ms, due_ms)
        return due, next_ms

    def _route(self, queues: Sequence[PartitionQueue]) -> None:
        seen = self._cluster.latest_metadata
        met_obstacle = [
            q for q in queues if q.obstacle_count or not _has_leader(seen.leader(q.topic_partition))
        ]
        if met_obstacle:
            topics = list(dict.fromkeys(queue.topic_partition.topic for queue in met_obstacle))
            try:
                seen = self._cluster.refresh(topics, seen, self._cluster.deadline(REFRESH_TIMEOUT_MS))
            except (ClientClosed, *HOPELESS):
                raise
            except SparklogError:
                seen = self._cluster.latest_metadata  # no broker answers; the batches' deadline ends this
        with self._ledger.changed:
            for queue in queues:
                self._due_ms.pop(queue.topic_partition, None)
                leader = seen.leader(queue.topic_partition)
                if isinstance(leader, KnownLeader):
                    queue.leader = leader.broker_id
                    self._start_sender(leader.broker_id)
                else:
                    queue.obstacle_count += 1
            self._ledger.changed.notify_all()

    def _start_sender(self, broker_id: BrokerId) -> None:
        if broker_id not in self._senders:
            sender = LeaderSender(self._cluster, self._ledger, broker_id, self._terms)
            self._senders[broker_id] = sender
            sender.start()

    def _why_expired(self, batch: QueuedBatch) -> str:
        last = "" if batch.obstacle is ErrorCode.none else f"; the last obstacle was {_last_obstacle(batch)}"
        return f"not acknowledged within {self._timeout_ms} ms by {self._cluster.bootstrap_servers}{last}"


def _last_obstacle(batch: QueuedBatch) -> str:
    """The error code with the broker's words: they know more than a remedy of the code's."""
    name = batch.obstacle.name.upper()
    said = batch.obstacle_words
    return f"{name}: {said}" if said else f"{name}{REMEDIES.get(batch.obstacle, '')}"


def _has_leader(leader: KnownLeader | ErrorCode) -> bool:
    return isinstance(leader, KnownLeader)


def _pause_ms(obstacle_count: int) -> int:
    """None before the first obstacle, then 50 ms, doubling up to a second."""
    return min(BACKOFF_MS << min(obstacle_count - 1, 8), BACKOFF_MAX_MS) if obstacle_count else 0
