"""The state that a producer's threads share: queues, results of batches, and the memory in use.

One lock guards it, held for bookkeeping only, never during input or output. ``changed`` is notified whenever
a thread may have work: a batch was queued or answered, or its partition has a leader.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.client.errors import FailedBatch
from sparklog.client.producing.produce_queue import NO_OBSTACLE, PartitionQueue, QueuedBatch
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Batches of several partitions share a request up to this size; a larger batch goes alone."""

REFUSED: Final = "refused by the leader"
"""The words of a refusal that has none."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A batch in the log. ``base_offset`` is -1 if the leader did not report it (acks=0, an old repeat)."""

    topic_partition: TopicPartition
    base_offset: int
    record_count: int


class ProduceLedger:
    """Methods named ``…_locked`` and all fields are for holders of ``changed``; the others take it."""

    def __init__(self, in_flight_max: int) -> None:
        self.changed = threading.Condition()
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.buffered_bytes = 0
        self.unsettled_count = 0
        self.broken: Exception | None = None
        """What ended a thread that should not have ended: a bug, or a client that was closed under it."""
        self.is_closing = False
        self._in_flight_max = in_flight_max
        self._failures: list[FailedBatch] = []
        self._delivered: list[tuple[int, Delivered]] = []
        self._turn = 0

    # For the caller of the producer.

    def queue_locked(self, topic_partition: TopicPartition) -> PartitionQueue:
        if topic_partition not in self.queues:
            self.queues[topic_partition] = PartitionQueue(topic_partition, self._in_flight_max)
        return self.queues[topic_partition]

    def add_locked(self, batch: QueuedBatch) -> None:
        self.queue_locked(batch.topic_partition).enqueue(batch)
        self.buffered_bytes += batch.size_bytes
        self.unsettled_count += 1
        self.changed.notify_all()

    def take_delivered_locked(self) -> list[Delivered]:
        """The batches delivered since the last call, in the order of sending."""
        delivered = [result for _, result in sorted(self._delivered, key=lambda entry: entry[0])]
        self._delivered.clear()
        return delivered

    def take_failures_locked(self) -> list[FailedBatch]:
        failures, self._failures = self._failures, []
        return failures

    @property
    def has_failures(self) -> bool:
        return bool(self._failures)

    # For the router.

    def homeless_locked(self) -> list[PartitionQueue]:
        return [queue for queue in self.queues.values() if queue.is_homeless]

    def give_up_expired_locked(self, now_ms: int, why: Callable[[QueuedBatch], str]) -> None:
        for queue in self.queues.values():
            batch = queue.expired(now_ms)
            if batch is not None:
                self.give_up_locked(queue, batch, ErrorCode.request_timed_out, why(batch))

    def give_up_locked(
        self, queue: PartitionQueue, culprit: QueuedBatch, code: ErrorCode, message: str
    ) -> None:
        """Fail a partition because of one batch; all batches queued after it are given up with it."""
        failure = culprit.failed(code, message)
        later = [batch for batch in queue.fail(failure) if batch is not culprit]
        self._settled_locked(culprit)
        self._failures.append(failure)
        for batch in later:
            self._settled_locked(batch)
            self._failures.append(batch.failed(code, f"given up with an earlier batch: {message}"))

    # For the senders.

    def take_locked(self, broker_id: BrokerId) -> list[QueuedBatch]:
        """What can be sent to a broker now: one batch of each partition at most, up to a request's size."""
        queues = [queue for queue in self.queues.values() if queue.leader == broker_id]
        self._turn += 1  # so that no partition is always first, and another never in
        taken: list[QueuedBatch] = []
        size_bytes = 0
        for i in range(len(queues)):
            queue = queues[(self._turn + i) % len(queues)]
            next_bytes = queue.next_size_bytes
            if next_bytes is None or (taken and size_bytes + next_bytes > REQUEST_BYTES_MAX):
                continue
            size_bytes += next_bytes
            taken.append(queue.take())
        return taken

    def on_written(self, batch: QueuedBatch, base_offset: int) -> None:
        with self.changed:
            self.queues[batch.topic_partition].on_written(batch)
            result = Delivered(batch.topic_partition, base_offset, batch.record_count)
            self._delivered.append((batch.order, result))
            self._settled_locked(batch)

    def on_answer(self, batch: QueuedBatch, code: ErrorCode, base_offset: int, message: str = "") -> None:
        """Record a leader's answer to a batch, and its words, or the error of the connection to it."""
        if code in NO_OBSTACLE:
            self.on_written(batch, base_offset)
            return
        with self.changed:
            queue = self.queues[batch.topic_partition]
            if queue.on_refused(batch, code, message):
                self.changed.notify_all()
            elif queue.failure is None:
                self.give_up_locked(queue, batch, code, message or REFUSED)
            else:
                self._settled_locked(batch)
                self._failures.append(batch.failed(code, message or REFUSED))

    def on_lost(self, batches: Sequence[QueuedBatch], code: ErrorCode) -> None:
        """The same obstacle for several batches, latest first, so that none is sent before an earlier one."""
        for batch in reversed(batches):
            self.on_answer(batch, code, -1)

    def crash(self, error: Exception) -> None:
        """Record the error that ended a thread: the producer's caller gets it from ``send`` or ``flush``."""
        with self.changed:
            self.broken = self.broken or error
            self.changed.notify_all()

    def _settled_locked(self, batch: QueuedBatch) -> None:
        self.buffered_bytes -= batch.size_bytes
        self.unsettled_count -= 1
        self.changed.notify_all()
