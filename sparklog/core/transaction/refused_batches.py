"""Batches that a broker refused and would take now, until they come again: what follows them must wait.

An idempotent producer has up to five requests under way to a partition. The first is refused, because too few
replicas are in sync, or because its broker does not lead yet. Then that changes, and the second, which
continues the first, finds a gap. Answered with OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka gives up its producer
epoch in all partitions, and sends again under the next one what it has no answer for: a batch that is in a
log, not committed yet, is there twice. Of a producer that the log does not know yet the second batch would
even be taken for the first, which then is out of order for ever. (So it is with Apache Kafka.)

So the replica remembers which batch it refused, and refuses those behind it alike, as they were not appended
either: the producer sends all of them again, in order. Only the first batch that was refused counts, and only
for as long as requests may be under way. It is remembered in memory, in whatever role the replica is.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.transaction.producer_state import ProducerBatch
from sparklog.model.ids import ProducerId

REMEMBERED_MS: Final = 30_000
"""As clients' ``request.timeout.ms``: what was under way when a batch was refused has come by then."""
REMEMBERED_MAX: Final = 500
"""Producers of one partition, some 100 KB; of more the earliest are forgotten."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """``at_ms`` is monotonic."""

    epoch: int
    first_sequence: int
    at_ms: int


@dataclass(slots=True)
class RefusedBatches:
    """Of one replica, by producer, in the order in which they were refused."""

    batches: dict[ProducerId, RefusedBatch] = field(default_factory=dict)

    def note(self, batch: ProducerBatch, now_ms: int) -> None:
        """This batch was refused; one that was refused before, and has not come again, counts instead."""
        if self.is_before(batch, now_ms):
            return
        producer_id = ProducerId(batch.producer_id)
        self.batches.pop(producer_id, None)
        self._forget_what_is_old(now_ms)
        self.batches[producer_id] = RefusedBatch(batch.producer_epoch, batch.first_sequence, now_ms)

    def is_before(self, batch: ProducerBatch, now_ms: int) -> bool:
        """Whether the producer of ``batch`` has one to send again before it."""
        refused = self.batches.get(ProducerId(batch.producer_id))
        return (
            refused is not None
            and refused.epoch == batch.producer_epoch
            and refused.first_sequence != batch.first_sequence
            and now_ms - refused.at_ms < REMEMBERED_MS
        )

    def forget(self, producer_id: int) -> None:
        """It has gone on."""
        self.batches.pop(ProducerId(producer_id), None)

    def _forget_what_is_old(self, now_ms: int) -> None:
        for producer_id, refused in list(self.batches.items()):
            if now_ms - refused.at_ms < REMEMBERED_MS and len(self.batches) < REMEMBERED_MAX:
                return
            del self.batches[producer_id]
