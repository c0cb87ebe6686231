"""The unwritten batches of one partition, sent in order over failing requests and leaders.

PURE: no sockets, threads or clocks; the producer's shell reports what it sent and the answers.

A batch is *waiting*, *in flight*, or *returned*: sent, and answered with a retriable obstacle (not the
leader, connection lost, too few replicas, ...). The first returned batch stops the partition. Once no batch
is in flight, the returned batches are put at the front of the queue, in their first order and with their
first sequences, and the partition waits for a leader.

Why that is exactly-once with an idempotent producer: a leader remembers the last five batches of each
producer and answers a repeated batch with success. At most five batches are in flight, and none is sent after
a returned batch, so every batch that is sent again is among those five. A batch sent after a lost one is
refused as out of order, which is retriable while an earlier batch is unsettled. Otherwise the log has lost
acknowledged records: the partition fails with all its later batches.

A leader that does not know a producer takes any first sequence. Batches are therefore sent one at a time
until the first was written, and while returned batches are sent again, so that this is never the second
batch's.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sparklog.client.errors import FailedBatch
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

IN_FLIGHT_MAX: Final = 5
"""As many batches as a leader remembers of each producer; more would break recognition of repeats."""

CORRUPT_TRIES_MAX: Final = 3
"""A batch that leaders find corrupt so many times was corrupt before it left."""

NO_OBSTACLE: Final = (ErrorCode.none, ErrorCode.duplicate_sequence_number)
"""Both mean that the batch is in the log."""

AMBIGUOUS: Final = frozenset(
    {
        ErrorCode.network_exception,
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_server_error,
    }
)
"""Answers that leave it unknown whether the batch was written."""


@dataclass(slots=True, eq=False)
class QueuedBatch:
    """One batch. ``order`` counts the batches of a producer; ``deadline_ms`` is monotonic."""

    topic_partition: TopicPartition
    data: bytes | bytearray
    record_count: int
    order: int
    deadline_ms: int
    sends: int = 0
    maybe_written: bool = False
    obstacle: ErrorCode = ErrorCode.none
    """The error code of its last try."""
    obstacle_words: str = ""
    """What the broker said to it; empty if nothing."""

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def failed(self, code: ErrorCode, message: str) -> FailedBatch:
        return FailedBatch(self.topic_partition, code, message, self.maybe_written)


class PartitionQueue:
    """See the module. Every method keeps the invariants that ``check_invariants`` states."""

    __slots__ = (
        "_in_flight",
        "_in_flight_max",
        "_is_begun",
        "_returned",
        "_returned_last",
        "_waiting",
        "failure",
        "leader",
        "obstacle_count",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self.topic_partition = topic_partition
        self.leader: BrokerId | None = None
        """The broker to send to; None until the router has found the leader."""
        self.obstacle_count = 0
        """Consecutive searches for a leader; pauses grow with it."""
        self.failure: FailedBatch | None = None
        """The failure after which no batch is accepted; None while the partition works."""
        self._in_flight_max = in_flight_max
        self._waiting: deque[QueuedBatch] = deque()
        self._in_flight: list[QueuedBatch] = []
        self._returned: list[QueuedBatch] = []
        self._is_begun = False  # whether the log has a batch of ours
        self._returned_last = -1  # order of the last batch that is, or was, to be sent again

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight) + len(self._returned)

    @property
    def is_homeless(self) -> bool:
        """Whether it has batches to send, nothing in flight, and no leader to send to."""
        return self.leader is None and bool(self._waiting) and not self._in_flight

    @property
    def next_size_bytes(self) -> int | None:
        """Size of the batch that could be sent now, or None if none can."""
        if self.leader is None or self._returned or not self._waiting:
            return None
        batch = self._waiting[0]
        is_steady = self._is_begun and batch.order > self._returned_last
        in_flight_max = self._in_flight_max if is_steady else 1
        return batch.size_bytes if len(self._in_flight) < in_flight_max else None

    def enqueue(self, batch: QueuedBatch) -> None:
        assert self.failure is None, f"{self.topic_partition} has failed; nothing more is queued"
        self._waiting.append(batch)

    def take(self) -> QueuedBatch:
        """The batch whose size ``next_size_bytes`` returned; it is in flight from now on."""
        batch = self._waiting.popleft()
        batch.sends += 1
        self._in_flight.append(batch)
        return batch

    def on_written(self, batch: QueuedBatch) -> None:
        """The batch is in the log."""
        self._in_flight.remove(batch)
        self._is_begun = True
        self.obstacle_count = 0
        self._regroup()

    def on_refused(self, batch: QueuedBatch, code: ErrorCode, words: str = "") -> bool:
        """The batch was refused with ``code``. True if it will be sent again, False if that cannot help."""
        self._in_flight.remove(batch)
        batch.obstacle, batch.obstacle_words = code, words
        batch.maybe_written |= code in AMBIGUOUS
        is_curable = self.failure is None and self._is_curable(batch, code)
        if is_curable:
            self._returned.append(batch)
            self.leader = None
        self._regroup()
        return is_curable

    def fail(self, failure: FailedBatch) -> list[QueuedBatch]:
        """Give up. Returns the batches that are given up with it; those in flight still get their answer."""
        if self.failure is None:
            self.failure = failure
        given_up = sorted([*self._waiting, *self._returned], key=_order)
        self._waiting.clear()
        self._returned.clear()
        return given_up

    def expired(self, now_ms: int) -> QueuedBatch | None:
        """The first batch not in flight whose time is up; later batches have later deadlines."""
        candidates = [*self._returned, *([self._waiting[0]] if self._waiting else [])]
        return min((b for b in candidates if b.deadline_ms <= now_ms), key=_order, default=None)

    def _is_curable(self, batch: QueuedBatch, code: ErrorCode) -> bool:
        if code is ErrorCode.out_of_order_sequence_number:
            return any(other.order < batch.order for other in self._unsettled())
        if code is ErrorCode.corrupt_message:
            return batch.sends < CORRUPT_TRIES_MAX
        return code.retriable

    def _unsettled(self) -> Iterable[QueuedBatch]:
        yield from self._in_flight
        yield from self._returned

    def _regroup(self) -> None:
        if self._returned and not self._in_flight:
            self._returned.sort(key=_order)
            self._returned_last = self._returned[-1].order
            self._waiting.extendleft(reversed(self._returned))
            self._returned.clear()
            self.obstacle_count += 1

    def check_invariants(self) -> None:
        assert len(self._in_flight) <= self._in_flight_max, self.topic_partition
        assert not (self._returned and self.leader is not None), self.topic_partition
        orders = [batch.order for batch in self._waiting]
        assert orders == sorted(orders), self.topic_partition
        sent = [batch.order for batch in self._unsettled()]
        assert not orders or not sent or max(sent) < orders[0], self.topic_partition


def _order(batch: QueuedBatch) -> int:
    return batch.order
