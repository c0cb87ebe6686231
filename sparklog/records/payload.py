"""One interface for the two kinds of payload.

All code that decodes or builds a payload uses ``payload_of(header)``: brokers that validate, readers that
need columns, writers that have columns. A third kind would be one more row in ``_LOADERS``.

Kinds are imported on first use, so that code that reads only envelopes does not import Arrow.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from sparklog.records.envelope import BatchHeader, Bytes, Compression
from sparklog.records.payload_kinds import PayloadKind

if TYPE_CHECKING:
    import pyarrow as pa

    from sparklog.records.row_times import Times


class Payload(Protocol):
    """One kind of payload. ``batch`` begins with the envelope ``header``, and may be longer."""

    def validate(self, batch: Bytes, header: BatchHeader) -> None:
        """Raise CorruptBatch unless the payload matches the header. The caller checks the CRC."""
        ...

    def to_columns(self, batch: Bytes, header: BatchHeader) -> "pa.RecordBatch":
        """The rows in ROW_SCHEMA; CorruptBatch if they cannot be read.

        The rows may share memory with ``batch``: do not change it while they are in use.
        """
        ...

    def times(self, batch: Bytes, header: BatchHeader) -> "Times":
        """Offset and time of each row, from as few bytes as that takes; CorruptBatch if these cannot be read.

        It needs no schema, so that it also serves typed topics.
        """
        ...

    def keyless_rows(self, batch: Bytes, header: BatchHeader, rows_max: int) -> tuple[int, list[int]]:
        """The number of rows without a key in a valid batch, and the indexes of the first ``rows_max``."""
        ...

    def least_timestamp_ms(self, batch: Bytes, header: BatchHeader) -> int | None:
        """The least timestamp, by the producer's clock, of a valid batch; None if no row has any (all -1)."""
        ...

    def from_columns(
        self,
        columns: "pa.RecordBatch | pa.Table",
        *,
        now_ms: int,
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        """A batch of key, value[, timestamp][, headers]; base offset 0, leader epoch -1.

        Rows without a timestamp get ``now_ms``. ValueError for columns that cannot be written.
        """
        ...


def _load_records() -> Payload:
    from sparklog.records.kafka.kafka_payload import KafkaRecords

    return KafkaRecords()


def _load_arrow() -> Payload:
    from sparklog.records.arrow.arrow_payload import ArrowPayload

    return ArrowPayload()


_LOADERS: Final[dict[PayloadKind, Callable[[], Payload]]] = {
    PayloadKind.RECORDS: _load_records,
    PayloadKind.ARROW: _load_arrow,
}


@functools.cache
def payload(kind: PayloadKind) -> Payload:
    """The code for one kind of payload."""
    return _LOADERS[kind]()


def kind_of(header: BatchHeader) -> PayloadKind:
    return PayloadKind.ARROW if header.is_arrow else PayloadKind.RECORDS


def payload_of(header: BatchHeader) -> Payload:
    """The code for the payload of this batch."""
    return payload(kind_of(header))
