"""Batches that a broker refused and would take now, until they come again: what follows them must wait.

An idempotent producer has up to five requests under way to a partition. The first is refused, because too few
replicas are in sync, or because its broker does not lead yet. Then that changes, and the second, which
continues the first, finds a gap. Answered with OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka gives up its producer
epoch in all partitions, and sends again under the next one whatever came back without a definite answer: a
batch that is in a log, not committed yet, is there twice. Of a producer that the log does not know yet the
second batch would even be taken for the first, which is out of order for ever then. (So it is with Kafka.)

So the replica remembers the earliest batch, by its sequence, that it refused, and refuses what is behind that
alike, as it was not appended either: the producer sends all of them again, in order. What is in front of it
is never held up: that may have been refused where nobody remembers, and must come first.

It is remembered in memory, in whatever role the replica is, until it comes or REMEMBERED_MS have gone by
since the last refusal. A producer that gives it up, and goes on in the same epoch, waits that long.

Some batches are refused where no replica can remember them: there is none yet, as a client may hear who leads
before the leader does; or a bit has flipped on the way, and nobody knows whose batch it was. So the broker
also remembers on which connection it refused something for which partition (`RefusingConnections`). There a
gap, or a new producer that does not begin with its first number, is refused alike, and remembered as above.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.transaction.producer_state import ProducerBatch, is_later
from sparklog.model.ids import ProducerId, TopicPartition

REMEMBERED_MS: Final = 10_000
"""What was under way when a batch was refused has come by then. (A broker that stands still for longer than
``zookeeper.session.timeout.ms`` leads no more.)"""
REMEMBERED_MAX: Final = 500
"""Producers of one partition, some 100 KB; of more those that were refused earliest are forgotten."""
UNDER_WAY_MAX: Final = 10
"""Twice as many requests as Kafka's idempotent producers have under way on a connection, which is five."""
CONNECTIONS_MAX: Final = 1_000
REFUSALS_MAX: Final = 100
"""Partitions on one connection. Of more, and of more connections, the earliest are forgotten: some 30 MB if
somebody fills them all with long names."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """``at_ms`` is monotonic."""

    epoch: int
    first_sequence: int
    at_ms: int


@dataclass(slots=True)
class RefusedBatches:
    """Of one replica, by producer, in the order in which they were refused last."""

    batches: dict[ProducerId, RefusedBatch] = field(default_factory=dict)

    def note(self, batch: ProducerBatch, now_ms: int) -> None:
        """This batch was refused. One in front of it that has not come again counts on instead."""
        producer_id = ProducerId(batch.producer_id)
        self.forget_what_is_old(now_ms)
        known = self.batches.get(producer_id)
        if known is not None and known.epoch > batch.producer_epoch:
            return
        earliest = batch.first_sequence
        if known is not None and _is_behind(batch, known):
            earliest = known.first_sequence
        self.batches.pop(producer_id, None)
        if len(self.batches) >= REMEMBERED_MAX:
            del self.batches[next(iter(self.batches))]
        self.batches[producer_id] = RefusedBatch(batch.producer_epoch, earliest, now_ms)

    def is_before(self, batch: ProducerBatch, now_ms: int) -> bool:
        """Whether the producer of ``batch`` has one to send again before it."""
        refused = self.batches.get(ProducerId(batch.producer_id))
        return refused is not None and now_ms - refused.at_ms < REMEMBERED_MS and _is_behind(batch, refused)

    def forget(self, producer_id: int) -> None:
        """It has gone on."""
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
    """How many came since its first refusal."""
    refusals: dict[TopicPartition, int] = field(default_factory=dict)
    """After how many requests something was refused last, in the order of refusals."""
    last_refusal: int = 0


@dataclass(slots=True)
class RefusingConnections:
    """On which connections batches of which partitions were refused a few Produce requests ago.

    A producer's requests to one broker come over one connection, in order, so what comes next may be behind
    what was refused, whatever that was: nothing is believed that a batch with a wrong CRC says. Requests are
    counted, and not time: one of them may wait for followers while what is behind it was sent long ago.
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
        """Another Produce request came. What was under way at the last refusal is here, once so many came."""
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


def _is_behind(batch: ProducerBatch, refused: RefusedBatch) -> bool:
    return batch.producer_epoch == refused.epoch and is_later(batch.first_sequence, refused.first_sequence)
