"""The two kinds of payload behind one interface, kinds in a table.

Everything that looks inside a batch goes through ``payload_of(header)``: brokers that validate, readers that
want columns, writers that have them. A third kind is one more row in ``_LOADERS``.

Kinds are imported when first asked for, so that reading envelopes stays cheap for those who need no Arrow.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from sparklog.records.envelope import BatchHeader, Bytes, Compression
from sparklog.records.payload_kinds import PayloadKind

if TYPE_CHECKING:
    import pyarrow as pa


class Payload(Protocol):
    """One kind. ``batch`` begins with the envelope that ``header`` was parsed from, and may run on."""

    def validate(self, batch: Bytes, header: BatchHeader) -> None:
        """Raise CorruptBatch unless the payload is what the header says; the CRC is the caller's to check."""
        ...

    def to_columns(self, batch: Bytes, header: BatchHeader) -> "pa.RecordBatch":
        """The rows in ROW_SCHEMA; CorruptBatch if they cannot be read.

        They may share memory with ``batch``: do not write into it while they are in use.
        """
        ...

    def keyless_rows(self, batch: Bytes, header: BatchHeader, rows_max: int) -> tuple[int, list[int]]:
        """How many rows of a valid batch have no key, and the indexes of the first ``rows_max`` of them."""
        ...

    def least_timestamp_ms(self, batch: Bytes, header: BatchHeader) -> int:
        """The least timestamp of the rows, by their producer's clock, of a valid batch that has rows."""
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
    from sparklog.records.kafka import KafkaRecords

    return KafkaRecords()


def _load_arrow() -> Payload:
    from sparklog.records.arrow import ArrowPayload

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
