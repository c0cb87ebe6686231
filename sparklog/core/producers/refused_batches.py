"""Remembers refused batches, so that the batches after them are refused too until the producer retries.

An idempotent producer has up to five requests in flight to a partition. Suppose the first is refused, because
too few replicas are in sync or the broker does not lead yet, and the second arrives after that has changed.
It would leave a gap. After OUT_OF_ORDER_SEQUENCE_NUMBER librdkafka raises its producer epoch for all
partitions, and sends every batch without a definite answer again; a batch in a log that is not committed yet
would be written twice. If the log does not know the producer, the second batch would be accepted as its
first, and the first would be out of order for ever. (Kafka has this problem.)

The replica therefore remembers the lowest sequence that it refused, and refuses later batches with the same
error. The producer then sends all of them again, in order. Earlier batches are never held up: they may have
been refused without a record of it, and must be appended first. Refusals are kept in memory, in every role,
until the batch arrives or REMEMBERED_MS after the last refusal. A producer that drops the batch and continues
in the same epoch waits that long.

Some refusals cannot be remembered by a replica: the replica does not exist yet, because a client may receive
the new metadata before the leader does; or the batch is corrupt, so its producer is unknown. The broker
therefore also remembers the connection and the partition of a refusal (`RefusingConnections`). On such a
connection a gap, or a new producer's batch that is not its first, is refused and remembered as above.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.producers.producer_state import ProducerBatch, is_later
from sparklog.model.ids import ProducerId, TopicPartition

REMEMBERED_MS: Final = 10_000
"""By then every request in flight at the refusal has arrived. (A broker that pauses for longer than
``zookeeper.session.timeout.ms`` no longer leads.)"""
REMEMBERED_MAX: Final = 500
"""Producers of one partition, some 100 KB; beyond that the oldest refusals are forgotten."""
UNDER_WAY_MAX: Final = 10
"""Twice the five requests that Kafka's idempotent producers have in flight on a connection."""
CONNECTIONS_MAX: Final = 1_000
REFUSALS_MAX: Final = 100
"""Partitions on one connection. Beyond this, and beyond CONNECTIONS_MAX, the oldest are forgotten. The
maximum is some 30 MB, with long topic names."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """``at_ms`` is monotonic."""

    epoch: int
    first_sequence: int
    at_ms: int


@dataclass(slots=True)
class RefusedBatches:
    """The refused batches of one replica, by producer, in the order of the last refusal."""

    batches: dict[ProducerId, RefusedBatch] = field(default_factory=dict)

    def note(self, batch: ProducerBatch, now_ms: int) -> None:
        """Record a refused batch. An earlier refused batch of its producer stays the one to wait for."""
        producer_id = ProducerId(batch.producer_id)
        self.forget_what_is_old(now_ms)
        known = self.batches.get(producer_id)
        if known is not None and known.epoch > batch.producer_epoch:
            return
        earliest = batch.first_sequence
        if known is not None and _is_later(batch, known):
            earliest = known.first_sequence
        self.batches.pop(producer_id, None)
        if len(self.batches) >= REMEMBERED_MAX:
            del self.batches[next(iter(self.batches))]
        self.batches[producer_id] = RefusedBatch(batch.producer_epoch, earliest, now_ms)

    def is_before(self, batch: ProducerBatch, now_ms: int) -> bool:
        """Whether the producer of ``batch`` must first send an earlier batch again."""
        refused = self.batches.get(ProducerId(batch.producer_id))
        return refused is not None and now_ms - refused.at_ms < REMEMBERED_MS and _is_later(batch, refused)

    def forget(self, producer_id: int) -> None:
        """Forget a producer's refusal, because its next batch was appended."""
        self.batches.pop(ProducerId(producer_id), None)

    def forget_what_is_old(self, now_ms: int) -> None:
        while self.batches:
            producer_id, refused = next(iter(self.batches.items()))
            if now_ms - refused.at_ms < REMEMBERED_MS:
                return
            del self.batches[producer_id]


@dataclass(slots=True)
class _Connection:
    requests: int = 0
    """Produce requests since its first refusal."""
    refusals: dict[TopicPartition, int] = field(default_factory=dict)
    """The value of ``requests`` at each partition's last refusal, in the order of refusals."""
    last_refusal: int = 0


@dataclass(slots=True)
class RefusingConnections:
    """The connections, and their partitions, on which a batch was refused a few Produce requests ago.

    A producer's requests to one broker arrive over one connection, in order, so the next batch may follow the
    refused one. The refused batch's producer is not used, because its CRC may be wrong. The age of a refusal
    is counted in requests instead of time, because a request may wait for followers while later ones are
    queued.
    """

    connections: dict[int, _Connection] = field(default_factory=dict)

    def note(self, connection_id: int, topic_partition: TopicPartition) -> None:
        connection = self.connections.setdefault(connection_id, _Connection())
        connection.last_refusal = connection.requests
        connection.refusals.pop(topic_partition, None)
        connection.refusals[topic_partition] = connection.requests
        if len(connection.refusals) > REFUSALS_MAX:
            del connection.refusals[next(iter(connection.refusals))]
        if len(self.connections) > CONNECTIONS_MAX:
            del self.connections[next(iter(self.connections))]

    def on_request(self, connection_id: int) -> None:
        """Count a Produce request. After UNDER_WAY_MAX all requests in flight at the refusal have arrived."""
        connection = self.connections.get(connection_id)
        if connection is not None:
            connection.requests += 1
            if connection.requests - connection.last_refusal > UNDER_WAY_MAX:
                del self.connections[connection_id]

    def has_refused(self, connection_id: int, topic_partition: TopicPartition) -> bool:
        connection = self.connections.get(connection_id)
        if connection is None or topic_partition not in connection.refusals:
            return False
        return connection.requests - connection.refusals[topic_partition] <= UNDER_WAY_MAX


def _is_later(batch: ProducerBatch, refused: RefusedBatch) -> bool:
    return batch.producer_epoch == refused.epoch and is_later(batch.first_sequence, refused.first_sequence)
