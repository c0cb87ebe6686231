"""Producer snapshots for a person to read, in our format and in Kafka's, which has fewer fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.core.producers.producer_state import ProducerStates, RememberedBatch, has_history

NO_TIMESTAMP: Final = -1


@dataclass(frozen=True, slots=True)
class SnapshotProducer:
    """One producer of a snapshot; ``batches`` oldest first, ``last_seen_ms`` None in Kafka's format."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    open_since: int
    last_seen_ms: int | None
    batches: Sequence[RememberedBatch]

    @property
    def last_timestamp_ms(self) -> int:
        return self.batches[-1].timestamp_ms if self.batches else NO_TIMESTAMP


def read_producers(data: bytes) -> list[SnapshotProducer]:
    """The producers of a snapshot in either format; CorruptSnapshot if ``data`` is in neither, or damaged."""
    states = ProducerStates.restore(data)
    is_ours = has_history(data)
    return [
        SnapshotProducer(
            producer_id,
            state.epoch,
            state.coordinator_epoch,
            state.open_since,
            state.last_seen_ms if is_ours else None,
            tuple(state.batches),
        )
        for producer_id, state in states.producers.items()
    ]
