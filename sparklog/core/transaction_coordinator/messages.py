"""What the machine tells the shell, beside replies and writes."""

from dataclasses import dataclass

from sparklog.core.transaction_coordinator.records import TransactionTopic


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Write the marker of this end into every partition of ``topics``; then ask ``MarkersWritten``.

    The decision is in the log below the high watermark. ``is_commit`` False aborts.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    topics: tuple[TransactionTopic, ...]
